/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <stdio.h>

#include "reflector/feed/mass_delete.h"
#include "tests/unit/record_rig.h"

struct bench {
	struct record_rig record;
	struct mass_delete check;
};

static void set_up(struct bench *b)
{
	*b = (struct bench){0};
	record_rig_open(&b->record);
	record_rig_add_feed(&b->record, "", NULL, NULL);
	mass_delete_init(&b->check);
}

static void tear_down(struct bench *b)
{
	mass_delete_release(&b->check);
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

	mass_delete_begin(&b->check);
	do
		r = mass_delete_check(&b->check, &b->record.feed, percent);
	while (r == AGAIN);
	return r;
}

static void take(struct bench *b)
{
	int r;

	while ((r = record_list_end(&b->record.feed, BYTES_LIT("9"))) == AGAIN)
		cr_assert_eq(recorder_flush(b->record.recorder), 0);
	cr_assert_eq(r, 0);
	mass_delete_end(&b->check);
}

Test(mass_delete, more_than_the_share_is_held_and_the_share_itself_is_not)
{
	struct bench b;

	set_up(&b);
	list(&b, 0, 100);
	take(&b);
	list(&b, 0, 50);
	cr_assert_eq(look(&b, 50), MASS_DELETE_PASS);
	list(&b, 0, 49);
	cr_assert_eq(look(&b, 50), MASS_DELETE_HOLD);
	cr_assert_eq(b.check.missing, 51);
	cr_assert_eq(b.check.known, 100);
	tear_down(&b);
}

Test(mass_delete, new_objects_of_a_list_do_not_hide_missing_ones)
{
	struct bench b;

	set_up(&b);
	list(&b, 0, 100);
	take(&b);
	list(&b, 90, 300);
	cr_assert_eq(look(&b, 50), MASS_DELETE_HOLD);
	cr_assert_eq(b.check.missing, 90);
	cr_assert_eq(b.check.known, 100);
	tear_down(&b);
}

Test(mass_delete, the_second_list_is_believed_and_the_third_is_checked_again)
{
	struct bench b;

	set_up(&b);
	list(&b, 0, 100);
	take(&b);
	list(&b, 0, 10);
	cr_assert_eq(look(&b, 50), MASS_DELETE_HOLD);
	list(&b, 0, 10);
	cr_assert_eq(look(&b, 50), MASS_DELETE_PASS);
	take(&b);
	list(&b, 0, 1);
	cr_assert_eq(look(&b, 50), MASS_DELETE_HOLD);
	tear_down(&b);
}

Test(mass_delete, heads_are_counted_in_slices)
{
	struct bench b;

	set_up(&b);
	list(&b, 0, 10000);
	take(&b);
	list(&b, 0, 4000);
	mass_delete_begin(&b.check);
	cr_assert_eq(mass_delete_check(&b.check, &b.record.feed, 50), AGAIN);
	cr_assert_eq(mass_delete_check(&b.check, &b.record.feed, 50), AGAIN);
	cr_assert_eq(mass_delete_check(&b.check, &b.record.feed, 50), MASS_DELETE_HOLD);
	cr_assert_eq(b.check.missing, 6000);
	tear_down(&b);
}

Test(mass_delete, first_lists_and_feeds_without_a_limit_pass)
{
	struct bench b;

	set_up(&b);
	list(&b, 0, 0);
	cr_assert_eq(look(&b, 1), MASS_DELETE_PASS);
	take(&b);
	list(&b, 0, 100);
	cr_assert_eq(look(&b, 1), MASS_DELETE_PASS, "nothing was known");
	take(&b);
	list(&b, 0, 0);
	cr_assert_eq(look(&b, 0), MASS_DELETE_PASS, "off");
	tear_down(&b);
}
