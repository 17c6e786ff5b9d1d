/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/record/retention.h"

#include <criterion/criterion.h>

#include "common/err.h"
#include "tests/unit/rig.h"

#define DAY (24ull * 3600 * 1000000000)

/* The goal after three changes that the index has taken. */
static struct trim_goal goal_after_changes(uint64_t time_ns, uint64_t *ret_last)
{
	struct retention_options options = {.time_ns = time_ns, .cursor_ns = DAY};
	struct retention *retention = NULL;
	struct trim_goal goal = {0};
	struct rig rig;

	rig_open(&rig, "feeds: []\n");
	uint32_t feed = rig_add_feed(&rig, "things");
	rig_record(&rig, feed, RECORD_LIST_BEGIN, NULL, NULL);
	rig_record(&rig, feed, RECORD_ADDED, "a/b", "{}");
	rig_record(&rig, feed, RECORD_LIST_END, NULL, NULL);
	*ret_last = rig_record(&rig, feed, RECORD_MODIFIED, "a/b", "{}");
	rig_settle(&rig);
	pair_close(&rig.pair); /* a process opens an environment once */
	cr_assert_eq(retention_new(rig.p.home, rig.journal, &options, &retention), 0);
	int r = retention_goal(retention, UINT64_MAX, false, &goal);
	cr_assert_eq(r, 0, "%s", err_text(r));
	retention_free(&retention);
	rig_close(&rig);
	return goal;
}

Test(retention, what_is_older_may_go_and_what_is_not_stays)
{
	uint64_t last;

	cr_assert_eq(goal_after_changes(0, &last).target, last);
	cr_assert_eq(goal_after_changes(DAY, &last).target, 0);
}

/* "36500d" is how one says "for ever", and reaches to before the clock's zero. */
Test(retention, time_longer_than_the_clocks_keeps_everything)
{
	uint64_t last;

	cr_assert_eq(goal_after_changes(36500 * DAY, &last).target, 0);
	cr_assert_eq(goal_after_changes(UINT64_MAX, &last).target, 0);
}
