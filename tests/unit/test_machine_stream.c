/* SPDX-License-Identifier: Apache-2.0 */
/* Lists as a stream (streamingLists). */
#include "tests/unit/machine_rig.h"

static void start_streaming(const char *rv, bool list_open)
{
	static struct config_policy streaming;

	streaming = default_policy();
	streaming.streaming_lists = true;
	start(rv, list_open);
	run.feed.policy = &streaming;
}

Test(machine, c68_initial_events_move_no_rv_and_a_lost_stream_starts_over)
{
	start_streaming("", false);
	PLAY({FEED_ON_TURN, .what = FEED_DO_STREAM, .want_rv = ""},
		{FEED_ON_ALIVE, .what = FEED_DO_NOTHING},
		{FEED_ON_EVENT, .rv = "7", .what = FEED_DO_NOTHING},
		{FEED_ON_EVENT, .rv = "3", .what = FEED_DO_NOTHING},
		{FEED_ON_ENDED, .after_ms = 5000, .what = FEED_DO_WAIT, .least_ms = 800,
			.most_ms = 1600},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE},
		{FEED_ON_TURN, .what = FEED_DO_STREAM, .want_rv = ""});
}

Test(machine, c48_a_refused_stream_is_a_list_at_once_and_for_a_while)
{
	static const enum failure_kind kinds[] = {FAILURE_REQUEST, FAILURE_FORBIDDEN};

	for (size_t i = 0; i < 2; i++) {
		struct step refused = {FEED_ON_FAILED, .kind = kinds[i], .what = FEED_DO_LIST,
			.want_rv = "", .limit = 500};
		start_streaming("", false);
		PLAY({FEED_ON_TURN, .what = FEED_DO_STREAM});
		play(&refused, 1);
		PLAY({FEED_ON_PAGE, .rv = "10", .what = FEED_DO_FINISH_LIST},
			{FEED_ON_LISTED, .what = FEED_DO_WATCH, .want_rv = "10", .phase = LISTED});
		cr_assert(!run.action.keep);
		/* Remembered for half an hour, then tried again. */
		PLAY({FEED_ON_RELIST, .after_ms = 1700000, .what = FEED_DO_QUEUE, .phase = LISTED},
			{FEED_ON_TURN, .what = FEED_DO_LIST, .limit = 500, .phase = LISTED},
			{FEED_ON_RELIST, .after_ms = 200000, .what = FEED_DO_QUEUE,
				.phase = LISTED},
			{FEED_ON_TURN, .what = FEED_DO_STREAM, .want_rv = "", .phase = LISTED});
	}
}

Test(machine, a_server_that_is_away_or_busy_says_nothing_about_streams)
{
	start_streaming("", false);
	PLAY({FEED_ON_TURN, .what = FEED_DO_STREAM});
	for (int i = 0; i < 5; i++)
		PLAY({FEED_ON_FAILED, .kind = FAILURE_NETWORK, .what = FEED_DO_WAIT,
			     .most_ms = 60000},
			{FEED_ON_TICK, .what = FEED_DO_QUEUE},
			{FEED_ON_TURN, .what = FEED_DO_STREAM},
			{FEED_ON_FAILED, .kind = FAILURE_BUSY, .what = FEED_DO_WAIT,
				.most_ms = 60000},
			{FEED_ON_TICK, .what = FEED_DO_QUEUE},
			{FEED_ON_TURN, .what = FEED_DO_STREAM});
}

Test(machine, a_stream_at_a_refused_rv_asks_for_the_newest_state_at_once)
{
	start_streaming("50", true);
	PLAY({FEED_ON_TURN, .what = FEED_DO_STREAM, .want_rv = "50", .phase = LISTED},
		{FEED_ON_FAILED, .kind = FAILURE_RV_AHEAD, .what = FEED_DO_STREAM, .want_rv = "",
			.phase = LISTED},
		/* Only this one proves a rollback. */
		{FEED_ON_INITIAL, .rv = "40", .what = FEED_DO_ROLLED_BACK, .phase = LISTED});
	cr_assert(!run.action.keep);
}

Test(machine, events_of_an_ended_request_change_nothing)
{
	start("", false);
	PLAY({FEED_ON_PAGE, .rv = "10", .what = FEED_DO_NOTHING},
		{FEED_ON_EVENT, .rv = "10", .what = FEED_DO_NOTHING},
		{FEED_ON_ENDED, .what = FEED_DO_NOTHING}, {FEED_ON_LISTED, .what = FEED_DO_NOTHING},
		{FEED_ON_RESUME, .what = FEED_DO_NOTHING},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .limit = 500});
}
