/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <stdio.h>

#include "reflector/feed/guard.h"
#include "tests/unit/record_rig.h"

struct bench {
	struct record_rig record;
	struct guard guard;
};

static void set_up(struct bench *b)
{
	*b = (struct bench){0};
	record_rig_open(&b->record);
	record_rig_add_feed(&b->record, "", NULL, NULL);
	guard_init(&b->guard);
}

static void tear_down(struct bench *b)
{
	guard_release(&b->guard);
	record_rig_close(&b->record);
}

/* A list of the pods number FROM to TO - 1. */
static void list(struct bench *b, unsigned from, unsigned to)
{
	cr_assert_eq(record_list_begin(&b->record.feed), 0);
	for (unsigned i = from; i < to; i++) {
		char text[200];

		snprintf(text, sizeof(text),
			"{\"metadata\":{\"name\":\"p%u\",\"namespace\":\"d\","
			"\"uid\":\"u%u\",\"resourceVersion\":\"5\"}}",
			i, i);
		cr_assert_eq(
			record_item(&b->record.feed, bytes_str(text), false, false), RECORD_TAKEN);
	}
}

static int look(struct bench *b, uint32_t percent)
{
	int r;

	guard_begin(&b->guard);
	do
		r = guard_look(&b->guard, &b->record.feed, percent);
	while (r == AGAIN);
	return r;
}

static void take(struct bench *b)
{
	int r;

	while ((r = record_list_end(&b->record.feed, BYTES_LIT("9"))) == AGAIN)
		cr_assert_eq(recorder_flush(b->record.recorder), 0);
	cr_assert_eq(r, 0);
	guard_end(&b->guard);
}

Test(guard, more_than_the_share_is_held_and_the_share_itself_is_not)
{
	struct bench b;

	set_up(&b);
	list(&b, 0, 100);
	take(&b);
	list(&b, 0, 50);
	cr_assert_eq(look(&b, 50), GUARD_PASS);
	list(&b, 0, 49);
	cr_assert_eq(look(&b, 50), GUARD_HOLD);
	cr_assert_eq(b.guard.missing, 51);
	cr_assert_eq(b.guard.known, 100);
	tear_down(&b);
}

Test(guard, new_objects_of_a_list_do_not_hide_missing_ones)
{
	struct bench b;

	set_up(&b);
	list(&b, 0, 100);
	take(&b);
	list(&b, 90, 300);
	cr_assert_eq(look(&b, 50), GUARD_HOLD);
	cr_assert_eq(b.guard.missing, 90);
	cr_assert_eq(b.guard.known, 100);
	tear_down(&b);
}

Test(guard, the_second_list_is_believed_and_the_third_is_checked_again)
{
	struct bench b;

	set_up(&b);
	list(&b, 0, 100);
	take(&b);
	list(&b, 0, 10);
	cr_assert_eq(look(&b, 50), GUARD_HOLD);
	list(&b, 0, 10);
	cr_assert_eq(look(&b, 50), GUARD_PASS);
	take(&b);
	list(&b, 0, 1);
	cr_assert_eq(look(&b, 50), GUARD_HOLD);
	tear_down(&b);
}

Test(guard, heads_are_counted_in_slices)
{
	struct bench b;

	set_up(&b);
	list(&b, 0, 10000);
	take(&b);
	list(&b, 0, 4000);
	guard_begin(&b.guard);
	cr_assert_eq(guard_look(&b.guard, &b.record.feed, 50), AGAIN);
	cr_assert_eq(guard_look(&b.guard, &b.record.feed, 50), AGAIN);
	cr_assert_eq(guard_look(&b.guard, &b.record.feed, 50), GUARD_HOLD);
	cr_assert_eq(b.guard.missing, 6000);
	tear_down(&b);
}

Test(guard, first_lists_and_feeds_without_a_guard_pass)
{
	struct bench b;

	set_up(&b);
	list(&b, 0, 0);
	cr_assert_eq(look(&b, 1), GUARD_PASS);
	take(&b);
	list(&b, 0, 100);
	cr_assert_eq(look(&b, 1), GUARD_PASS, "nothing was known");
	take(&b);
	list(&b, 0, 0);
	cr_assert_eq(look(&b, 0), GUARD_PASS, "off");
	tear_down(&b);
}
