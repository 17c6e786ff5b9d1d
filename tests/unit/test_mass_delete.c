/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/mass_delete.h"
#include "tests/unit/record_rig.h"

static struct record_rig rig;
static struct mass_delete check;

static void set_up(void)
{
	record_rig_open(&rig);
	record_rig_add_feed(&rig, "", NULL, NULL);
	mass_delete_init(&check);
}

static void tear_down(void)
{
	mass_delete_release(&check);
	record_rig_close(&rig);
}

TestSuite(mass_delete, .init = set_up, .fini = tear_down);

/* A list of the pods number FROM to TO - 1. */
static void list(unsigned from, unsigned to)
{
	cr_assert_eq(record_list_begin(&rig.feed), 0);
	for (unsigned i = from; i < to; i++) {
		char text[200];

		snprintf(text, sizeof(text),
			"{\"metadata\":{\"name\":\"p%u\",\"namespace\":\"d\","
			"\"uid\":\"u%u\",\"resourceVersion\":\"5\"}}",
			i, i);
		cr_assert_eq(record_item(&rig.feed, bytes_str(text), false, false), RECORD_TAKEN);
	}
}

static int look(uint32_t percent)
{
	int r;

	mass_delete_begin(&check);
	do
		r = mass_delete_check(&check, &rig.feed, percent);
	while (r == AGAIN);
	return r;
}

static void take(void)
{
	int r;

	while ((r = record_list_end(&rig.feed, BYTES_LIT("9"))) == AGAIN)
		cr_assert_eq(recorder_flush(rig.recorder), 0);
	cr_assert_eq(r, 0);
	mass_delete_end(&check);
}

Test(mass_delete, new_objects_of_a_list_do_not_hide_missing_ones)
{
	list(0, 100);
	take();
	list(90, 300);
	cr_assert_eq(look(50), MASS_DELETE_HOLD);
	cr_assert_eq(check.missing, 90);
	cr_assert_eq(check.known, 100);
}

Test(mass_delete, the_second_list_is_believed_and_the_third_is_checked_again)
{
	list(0, 100);
	take();
	list(0, 10);
	cr_assert_eq(look(50), MASS_DELETE_HOLD);
	list(0, 10);
	cr_assert_eq(look(50), MASS_DELETE_PASS);
	take();
	list(0, 1);
	cr_assert_eq(look(50), MASS_DELETE_HOLD);
}

Test(mass_delete, heads_are_counted_in_slices)
{
	list(0, 10000);
	take();
	list(0, 4000);
	mass_delete_begin(&check);
	cr_assert_eq(mass_delete_check(&check, &rig.feed, 50), AGAIN);
	cr_assert_eq(mass_delete_check(&check, &rig.feed, 50), AGAIN);
	cr_assert_eq(mass_delete_check(&check, &rig.feed, 50), MASS_DELETE_HOLD);
	cr_assert_eq(check.missing, 6000);
}

Test(mass_delete, first_lists_and_feeds_without_a_limit_pass)
{
	list(0, 0);
	cr_assert_eq(look(1), MASS_DELETE_PASS);
	take();
	list(0, 100);
	cr_assert_eq(look(1), MASS_DELETE_PASS, "nothing was known");
	take();
	list(0, 0);
	cr_assert_eq(look(0), MASS_DELETE_PASS, "off");
}
