/* SPDX-License-Identifier: Apache-2.0 */
/* Resyncs of a follower. */
#include "tests/unit/follow_rig.h"

TestSuite(follow, .init = setup, .fini = teardown, .timeout = 120);

Test(follow, a_resync_gives_each_object_once_more)
{
	begin(NULL);
	cr_assert_not(follow_resync(w.follow), "nothing was given yet");
	drain();
	cr_assert(follow_resync(w.follow));
	cr_assert_not(follow_resync(w.follow), "one is under way");
	drain();
	cr_assert_eq(w.resyncs, KEYS);
	cr_assert_eq(w.syncs, 1, "it has no end of its own");
	put(0, 0);
	rig_take(&w.rig);
	drain();
	cr_assert_eq(w.changes, 1);
	cr_assert(follow_resync(w.follow));
	drain();
	cr_assert_eq(w.resyncs, 2 * KEYS);
	replica_is_model();
}

/* take() holds every item against the replica. */
Test(follow, changes_come_between_the_ranges_of_a_resync)
{
	const struct follow_options options = {.max_hold_ns = 1};

	random_state = 5;
	begin(&options);
	drain();
	for (unsigned round = 0; round < 10; round++) {
		cr_assert(follow_resync(w.follow));
		for (unsigned step = 0; step < 20; step++) {
			for (unsigned n = dice(4); n--;)
				change_something();
			rig_take(&w.rig);
			int r = follow(1 + dice(5));
			cr_assert(r == FOUND || r == AGAIN, "%d %s", r, err_text(r));
		}
		close_lists();
		drain();
		replica_is_model();
	}
	cr_assert_gt(w.resyncs, 100);
	cr_assert_gt(w.changes, 100);
	cr_assert_eq(w.lapses, 0);
}
