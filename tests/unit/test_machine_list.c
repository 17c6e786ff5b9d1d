/* SPDX-License-Identifier: Apache-2.0 */
/* Lists: pages, tokens, RVs of no use. */
#include "tests/unit/machine_rig.h"

Test(machine, c11_c12_c13_a_list_at_a_refused_rv_asks_for_the_newest_state_at_once)
{
	start("50", true);
	PLAY({FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "50", .limit = 0, .phase = LISTED},
		{FEED_ON_FAILED, .kind = FAILURE_EXPIRED, .what = FEED_DO_LIST, .want_rv = "",
			.limit = 500, .phase = LISTED},
		{FEED_ON_FAILED, .kind = FAILURE_EXPIRED, .what = FEED_DO_WAIT, .least_ms = 800,
			.most_ms = 1600, .phase = LISTED});
	start("50", true);
	PLAY({FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "50", .limit = 0, .phase = LISTED},
		{FEED_ON_FAILED, .kind = FAILURE_RV_AHEAD, .retry_after_s = 1, .what = FEED_DO_WAIT,
			.least_ms = 1000, .most_ms = 1000, .phase = LISTED},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE, .phase = LISTED},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .limit = 500, .phase = LISTED});
}

Test(machine, only_a_list_for_the_newest_state_proves_a_restored_etcd)
{
	start("50", true);
	PLAY({FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "50", .limit = 0, .phase = LISTED},
		{FEED_ON_PAGE, .rv = "40", .what = FEED_DO_FINISH_LIST, .phase = LISTED});
	start("50", true);
	PLAY({FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "50", .limit = 0, .phase = LISTED},
		{FEED_ON_FAILED, .kind = FAILURE_RV_AHEAD, .what = FEED_DO_LIST, .want_rv = "",
			.limit = 500, .phase = LISTED},
		{FEED_ON_PAGE, .rv = "40", .what = FEED_DO_ROLLED_BACK, .phase = LISTED});
}

Test(machine, a_bookmark_older_than_the_checkpoint_lists_the_newest_state)
{
	start("50", false);
	PLAY({FEED_ON_BOOKMARK, .rv = "40", .what = FEED_DO_WAIT, .least_ms = 800, .most_ms = 1600,
		     .phase = LISTED},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE, .phase = LISTED},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .limit = 500, .phase = LISTED});
}

Test(machine, c08_an_expired_list_without_pages_is_asked_for_again)
{
	start("", false);
	PLAY({FEED_ON_TURN, .what = FEED_DO_LIST, .limit = 500},
		{FEED_ON_PAGE, .rv = "10", .continue_ = "a", .what = FEED_DO_LIST, .limit = 500},
		{FEED_ON_FAILED, .kind = FAILURE_EXPIRED, .what = FEED_DO_WAIT, .most_ms = 1600},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .want_continue = "",
			.limit = 0},
		{FEED_ON_FAILED, .kind = FAILURE_EXPIRED, .what = FEED_DO_WAIT, .least_ms = 1600,
			.most_ms = 3200},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .want_continue = "",
			.limit = 0});
}

Test(machine, a_list_without_pages_that_is_lost_is_tried_in_pages_again)
{
	start("", false);
	PLAY({FEED_ON_TURN, .what = FEED_DO_LIST, .limit = 500},
		{FEED_ON_PAGE, .rv = "10", .continue_ = "a", .what = FEED_DO_LIST, .limit = 500},
		{FEED_ON_FAILED, .kind = FAILURE_EXPIRED, .what = FEED_DO_WAIT, .most_ms = 1600},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .limit = 0});
	for (int i = 0; i < 5; i++)
		PLAY({FEED_ON_FAILED, .kind = FAILURE_NETWORK, .what = FEED_DO_WAIT,
			     .most_ms = 60000},
			{FEED_ON_TICK, .what = FEED_DO_QUEUE},
			{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .limit = 0});
	PLAY({FEED_ON_FAILED, .kind = FAILURE_NETWORK, .what = FEED_DO_WAIT, .most_ms = 60000},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .limit = 500});
}

Test(machine, c10_an_empty_page_with_a_token_is_followed_but_not_for_ever)
{
	struct feed_input page = {.on = FEED_ON_PAGE, .rv = BYTES_LIT("10")};
	char token[16];

	start("", false);
	PLAY({FEED_ON_TURN, .what = FEED_DO_LIST, .limit = 500});
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(token, sizeof(token), "t%d", i);
		page.continue_ = bytes_str(token);
		step(page);
		cr_assert_eq(run.action.what, FEED_DO_LIST, "page %d", i);
		cr_assert_str_eq(run.action.continue_, token);
	}
	page.continue_ = BYTES_LIT("last");
	step(page);
	cr_assert_eq(run.action.what, FEED_DO_FAIL);
	cr_assert_str_eq(run.action.why, "the pages of the list do not come to an end");
	PLAY({FEED_ON_FAILED, .kind = FAILURE_PROTOCOL, .what = FEED_DO_WAIT, .least_ms = 800,
		.most_ms = 1600});
}

Test(machine, c15_a_list_that_timed_out_is_asked_for_again_as_it_was)
{
	start("50", true);
	PLAY({FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "50", .limit = 0, .phase = LISTED},
		{FEED_ON_FAILED, .kind = FAILURE_BUSY, .what = FEED_DO_WAIT, .least_ms = 800,
			.most_ms = 1600, .phase = LISTED},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE, .phase = LISTED},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "50", .limit = 0, .phase = LISTED});
}

Test(machine, c33_a_list_comes_again_when_the_server_said)
{
	start("", false);
	PLAY({FEED_ON_TURN, .what = FEED_DO_LIST, .limit = 500});
	for (int i = 0; i < 2; i++)
		PLAY({FEED_ON_FAILED, .kind = FAILURE_BUSY, .retry_after_s = 4,
			     .what = FEED_DO_WAIT, .least_ms = 4000, .most_ms = 8000},
			{FEED_ON_TICK, .what = FEED_DO_QUEUE},
			{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .limit = 500});
	PLAY({FEED_ON_PAGE, .rv = "10", .what = FEED_DO_FINISH_LIST});
}

Test(machine, a_lost_page_is_asked_for_five_times_again)
{
	start("", false);
	PLAY({FEED_ON_TURN, .what = FEED_DO_LIST, .limit = 500},
		{FEED_ON_PAGE, .rv = "10", .continue_ = "a", .what = FEED_DO_LIST, .limit = 500});
	for (int i = 0; i < 5; i++)
		PLAY({FEED_ON_FAILED, .kind = FAILURE_NETWORK, .what = FEED_DO_WAIT,
			     .most_ms = 60000},
			{FEED_ON_TICK, .what = FEED_DO_QUEUE},
			{FEED_ON_TURN, .what = FEED_DO_LIST, .want_continue = "a", .limit = 500});
	PLAY({FEED_ON_FAILED, .kind = FAILURE_NETWORK, .what = FEED_DO_WAIT, .most_ms = 60000},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_continue = "", .limit = 500});
}

Test(machine, c09_pages_that_never_end_are_given_up)
{
	start("", false);
	PLAY({FEED_ON_TURN, .what = FEED_DO_LIST, .limit = 500},
		{FEED_ON_PAGE, .rv = "10", .continue_ = "a", .what = FEED_DO_LIST, .limit = 500},
		{FEED_ON_PAGE, .rv = "10", .continue_ = "a", .what = FEED_DO_FAIL},
		{FEED_ON_FAILED, .kind = FAILURE_PROTOCOL, .what = FEED_DO_WAIT, .least_ms = 800,
			.most_ms = 1600});
}
