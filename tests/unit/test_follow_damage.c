/* SPDX-License-Identifier: Apache-2.0 */
/* Followers of a log damaged in places: they lapse once, and end with the existing objects. */
#include "tests/unit/follow_rig.h"
#include "tests/unit/journal_damage.h"

TestSuite(follow_damage, .init = setup, .fini = teardown, .timeout = 60);

enum { HEADER_PREV = 8, HEADER_TYPE = 28, LAST_BYTE = 1000 };

/* A follower has come to the end; then two versions of an object, and some of others, follow. */
static uint64_t replaced_version(void)
{
	begin(NULL);
	drain();
	replica_is_model();
	(void)follow_rest(w.follow);
	put(0, 4);
	uint64_t seq = w.model[0][4];
	put(0, 4);
	put(1, 6);
	put(0, 8);
	rig_take(&w.rig); /* it is damaged after the index has taken it */
	return seq;
}

static void lapses_once(unsigned feeds)
{
	drain();
	replica_is_model();
	cr_expect_eq(w.lapses, feeds, "%u", w.lapses);
	put(0, 4);
	put(1, 6);
	rig_commit(&w.rig);
	drain();
	replica_is_model();
	cr_expect_eq(w.lapses, feeds, "%u", w.lapses);
}

Test(follow_damage, a_header_that_is_damaged_and_replaced)
{
	damage(w.rig.journal, replaced_version(), HEADER_PREV, 0);
	lapses_once(FEEDS);
}

Test(follow_damage, a_type_that_is_damaged_and_replaced)
{
	damage(w.rig.journal, replaced_version(), HEADER_TYPE, 0);
	lapses_once(FEEDS);
}

Test(follow_damage, a_record_that_is_missing)
{
	lose(w.rig.journal, replaced_version());
	lapses_once(FEEDS);
}

Test(follow_damage, many_records_that_are_missing)
{
	uint64_t seq = replaced_version();

	for (int i = 0; i < 30; i++)
		put(0, 10);
	put(0, 12);
	rig_take(&w.rig);
	for (uint64_t lost = seq + 4; lost < seq + 30; lost++)
		lose(w.rig.journal, lost);
	lapses_once(FEEDS);
}

Test(follow_damage, a_body_that_is_damaged_and_replaced_concerns_its_feed)
{
	damage(w.rig.journal, replaced_version(), LAST_BYTE, 0);
	lapses_once(1);
}

/* Nothing else has its state: the follower gets an error instead, until it is mended. */
Test(follow_damage, a_newest_version_is_not_given)
{
	struct follow_item item;
	(void)replaced_version();
	uint64_t seq = w.model[0][8];

	damage(w.rig.journal, seq, HEADER_PREV, 0);
	for (int i = 0; i < 3; i++) {
		int r;

		while ((r = follow_next(w.follow, &item)) == FOUND)
			take(&item);
		cr_assert_eq(r, ERR_CORRUPT, "%d", r);
		cr_assert_eq(w.lapses, FEEDS, "once");
	}
	damage(w.rig.journal, seq, HEADER_PREV, 0); /* back */
	drain();
	replica_is_model();
	cr_expect_eq(w.lapses, FEEDS);
}
