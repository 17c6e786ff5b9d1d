/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/machine_rig.h"

Test(machine, c01_c06_an_empty_feed_lists_the_newest_state_in_pages_then_watches)
{
	start("", false);
	cr_assert_eq(run.action.what, FEED_DO_QUEUE);
	PLAY({FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .want_continue = "", .limit = 500},
		{FEED_ON_PAGE, .rv = "10", .continue_ = "a+/=", .what = FEED_DO_LIST, .want_rv = "",
			.want_continue = "a+/=", .limit = 500},
		{FEED_ON_PAGE, .rv = "11", .continue_ = "b", .what = FEED_DO_LIST,
			.want_continue = "b", .limit = 500},
		{FEED_ON_PAGE, .rv = "12", .what = FEED_DO_FINISH_LIST, .want_rv = "10"},
		{FEED_ON_LISTED, .what = FEED_DO_WATCH, .want_rv = "10", .phase = LISTED});
}

Test(machine, a_feed_with_a_checkpoint_watches_and_never_lists)
{
	start("50", false);
	cr_assert_eq(run.action.what, FEED_DO_WATCH);
	cr_assert_str_eq(run.action.rv, "50");
}

Test(machine, progress_moves_the_watch_on_and_says_nothing_about_it)
{
	start("50", false);
	PLAY({FEED_ON_PROGRESS, .rv = "70", .phase = LISTED},
		{FEED_ON_PROGRESS, .rv = "60",
			.phase = LISTED}); /* older: no list, as a bookmark would cause */
	cr_assert_not(run.feed.alive);
	cr_assert_not(run.feed.progress);
	PLAY({FEED_ON_ALIVE, .phase = LISTED},
		{FEED_ON_ENDED, .after_ms = 5000, .what = FEED_DO_WATCH, .want_rv = "70",
			.phase = LISTED});
}

/* The two watches may be of two servers of one cluster with different caches. */
Test(machine, a_bookmark_behind_the_progress_but_not_behind_its_own_watch_causes_no_list)
{
	start("50", false);
	PLAY({FEED_ON_ALIVE, .phase = LISTED}, {FEED_ON_PROGRESS, .rv = "70", .phase = LISTED},
		{FEED_ON_BOOKMARK, .rv = "60", .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_PROGRESS, .rv = "80", .phase = LISTED},
		{FEED_ON_BOOKMARK, .rv = "60", .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_ENDED, .after_ms = 5000, .what = FEED_DO_WATCH, .want_rv = "80",
			.phase = LISTED},
		{FEED_ON_ALIVE, .phase = LISTED}, {FEED_ON_PROGRESS, .rv = "90", .phase = LISTED},
		{FEED_ON_BOOKMARK, .rv = "85", .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_BOOKMARK, .rv = "84", .what = FEED_DO_WAIT, .least_ms = 800,
			.most_ms = 1600, .phase = LISTED});
}

Test(machine, a_feed_with_an_open_list_lists_again)
{
	start("50", true);
	cr_assert_eq(run.action.what, FEED_DO_QUEUE);
	PLAY({FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "50", .limit = 0, .phase = LISTED});
}

Test(machine, an_unresolved_feed_asks_discovery_first)
{
	begin();
	step((struct feed_input){.on = FEED_ON_START, .phase = FEED_LISTING});
	cr_assert_eq(run.action.what, FEED_DO_RESOLVE);
	PLAY({FEED_ON_FAILED, .kind = FAILURE_NETWORK, .what = FEED_DO_WAIT, .least_ms = 800,
		     .most_ms = 1600},
		{FEED_ON_TICK, .what = FEED_DO_RESOLVE},
		{FEED_ON_FAILED, .kind = FAILURE_ABSENT, .what = FEED_DO_WAIT, .least_ms = 15000,
			.most_ms = 30000, .phase = FEED_GONE},
		{FEED_ON_TICK, .what = FEED_DO_RESOLVE, .phase = FEED_GONE},
		{FEED_ON_RESOLVED, .what = FEED_DO_QUEUE, .phase = FEED_GONE},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .limit = 500,
			.phase = FEED_GONE},
		{FEED_ON_ALIVE, .what = FEED_DO_NOTHING, .phase = FEED_LISTING});
}

Test(machine, c16_c17_c18_the_rv_follows_events_and_bookmarks_and_a_clean_end_watches_on)
{
	start("50", false);
	PLAY({FEED_ON_ALIVE, .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_EVENT, .rv = "51", .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_EVENT, .rv = "9", .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_BOOKMARK, .rv = "100", .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_ENDED, .what = FEED_DO_WATCH, .want_rv = "100", .phase = LISTED},
		{FEED_ON_ALIVE, .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_ENDED, .after_ms = 400000, .what = FEED_DO_WATCH, .want_rv = "100",
			.phase = LISTED});
}

Test(machine, c72_a_watch_after_a_deletion_begins_before_its_rv)
{
	start("50", false);
	PLAY({FEED_ON_EVENT, .rv = "60", .deletion = true, .what = FEED_DO_NOTHING,
		     .phase = LISTED},
		{FEED_ON_ENDED, .what = FEED_DO_WATCH, .want_rv = "59", .phase = LISTED},
		{FEED_ON_BOOKMARK, .rv = "59", .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_EVENT, .rv = "60", .deletion = true, .what = FEED_DO_NOTHING,
			.phase = LISTED},
		{FEED_ON_BOOKMARK, .rv = "60", .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_ENDED, .what = FEED_DO_WATCH, .want_rv = "59", .phase = LISTED},
		{FEED_ON_BOOKMARK, .rv = "61", .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_ENDED, .what = FEED_DO_WATCH, .want_rv = "61", .phase = LISTED},
		{FEED_ON_EVENT, .rv = "70", .deletion = true, .what = FEED_DO_NOTHING,
			.phase = LISTED},
		{FEED_ON_EVENT, .rv = "71", .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_ENDED, .what = FEED_DO_WATCH, .want_rv = "71", .phase = LISTED},
		{FEED_ON_EVENT, .rv = "x", .deletion = true, .what = FEED_DO_NOTHING,
			.phase = LISTED},
		{FEED_ON_ENDED, .what = FEED_DO_WATCH, .want_rv = "x", .phase = LISTED});
	begin();
	step((struct feed_input){.on = FEED_ON_START,
		.rv = BYTES_LIT("60"),
		.deletion = true,
		.resolved = true,
		.listed = true,
		.phase = FEED_SYNCED});
	cr_assert_str_eq(run.action.rv, "59");
}

/* A watch from "" would bring the existing objects, but no deletions. */
Test(machine, an_rv_that_is_too_long_leaves_the_one_before)
{
	char rv[RV_MAX + 2];

	memset(rv, '7', sizeof(rv) - 1);
	rv[sizeof(rv) - 1] = '\0';
	start("50", false);
	step((struct feed_input){.on = FEED_ON_ALIVE});
	step((struct feed_input){.on = FEED_ON_BOOKMARK, .rv = bytes_str(rv)});
	run.now_ns += 400 * SECOND;
	step((struct feed_input){.on = FEED_ON_ENDED});
	cr_assert_eq(run.action.what, FEED_DO_WATCH);
	cr_assert_str_eq(run.action.rv, "50");
	rv[RV_MAX] = '\0';
	step((struct feed_input){.on = FEED_ON_BOOKMARK, .rv = bytes_str(rv)});
	run.now_ns += 400 * SECOND;
	step((struct feed_input){.on = FEED_ON_ENDED});
	cr_assert_str_eq(run.action.rv, rv);
}

Test(machine, c40_opaque_rvs_are_followed_in_the_order_they_come)
{
	start("abc-9", false);
	PLAY({FEED_ON_EVENT, .rv = "abc-1", .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_ENDED, .what = FEED_DO_WATCH, .want_rv = "abc-1", .phase = LISTED});
}

Test(machine, c19_very_short_watches_wait_longer_each_time_and_then_list)
{
	start("50", false);
	PLAY({FEED_ON_ENDED, .after_ms = 999, .what = FEED_DO_WAIT, .least_ms = 800,
		     .most_ms = 1600, .phase = LISTED},
		{FEED_ON_TICK, .what = FEED_DO_WATCH, .want_rv = "50", .phase = LISTED},
		{FEED_ON_ENDED, .what = FEED_DO_WAIT, .least_ms = 1600, .most_ms = 3200,
			.phase = LISTED},
		{FEED_ON_TICK, .what = FEED_DO_WATCH, .want_rv = "50", .phase = LISTED},
		{FEED_ON_ENDED, .what = FEED_DO_WAIT, .least_ms = 3200, .most_ms = 6400,
			.phase = LISTED},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE, .phase = LISTED},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "50", .limit = 0, .phase = LISTED});
}

Test(machine, c34_a_lost_server_is_asked_after_growing_pauses_from_the_same_rv)
{
	static const uint64_t least[] = {800, 1600, 3200, 6400, 12800, 15000, 15000, 15000};

	start("50", false);
	for (size_t i = 0; i < sizeof(least) / sizeof(least[0]); i++) {
		struct step failed = {FEED_ON_FAILED, .kind = FAILURE_NETWORK, .what = FEED_DO_WAIT,
			.least_ms = least[i], .most_ms = 2 * least[i], .phase = LISTED};
		struct step again = {
			FEED_ON_TICK, .what = FEED_DO_WATCH, .want_rv = "50", .phase = LISTED};

		play(&failed, 1);
		play(&again, 1);
	}
	/* One good minute is not enough, two are. */
	PLAY({FEED_ON_ALIVE, .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_FAILED, .after_ms = 60000, .kind = FAILURE_BUSY, .what = FEED_DO_WAIT,
			.least_ms = 15000, .most_ms = 30000, .phase = LISTED},
		{FEED_ON_TICK, .what = FEED_DO_WATCH, .phase = LISTED},
		{FEED_ON_ALIVE, .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_FAILED, .after_ms = 120000, .kind = FAILURE_BUSY, .what = FEED_DO_WAIT,
			.least_ms = 800, .most_ms = 1600, .phase = LISTED});
}

Test(machine, the_first_expired_watch_resets_the_back_off_and_later_ones_do_not)
{
	start("50", false);
	for (size_t i = 0; i < 8; i++)
		PLAY({FEED_ON_FAILED, .kind = FAILURE_NETWORK, .what = FEED_DO_WAIT,
			     .most_ms = 30000, .phase = LISTED},
			{FEED_ON_TICK, .what = FEED_DO_WATCH, .want_rv = "50", .phase = LISTED});
	for (uint64_t least = 800; least <= 3200; least *= 2) {
		struct step expired = {FEED_ON_FAILED, .kind = FAILURE_EXPIRED,
			.what = FEED_DO_WAIT, .least_ms = least, .most_ms = 2 * least,
			.phase = LISTED};

		play(&expired, 1);
		PLAY({FEED_ON_TICK, .what = FEED_DO_QUEUE, .phase = LISTED},
			{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .limit = 500,
				.phase = LISTED},
			{FEED_ON_PAGE, .rv = "60", .what = FEED_DO_FINISH_LIST, .want_rv = "60",
				.phase = LISTED},
			{FEED_ON_LISTED, .what = FEED_DO_WATCH, .want_rv = "60", .phase = LISTED});
	}
}

Test(machine, a_stream_that_breaks_is_opened_again_at_once)
{
	start("50", false);
	PLAY({FEED_ON_ALIVE, .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_FAILED, .after_ms = 5000, .kind = FAILURE_NETWORK, .what = FEED_DO_WATCH,
			.want_rv = "50", .phase = LISTED},
		/* It never answered this time: a failure, after any time. */
		{FEED_ON_FAILED, .after_ms = 30000, .kind = FAILURE_NETWORK, .what = FEED_DO_WAIT,
			.least_ms = 800, .most_ms = 1600, .phase = LISTED});
}

/* client-go repeats such a request ten times by itself; then it is a failure, with growing pauses
 * of at least as long. An answer begins the count again. */
Test(machine, c30_a_watch_comes_again_when_the_server_said)
{
	start("50", false);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 10; i++)
			PLAY({FEED_ON_FAILED, .kind = FAILURE_BUSY, .retry_after_s = 1,
				     .what = FEED_DO_WAIT, .least_ms = 1000, .most_ms = 2000,
				     .phase = LISTED},
				{FEED_ON_TICK, .what = FEED_DO_WATCH, .want_rv = "50",
					.phase = LISTED});
		PLAY({FEED_ON_ALIVE, .what = FEED_DO_NOTHING, .phase = LISTED},
			{FEED_ON_ENDED, .after_ms = 5000, .what = FEED_DO_WATCH, .want_rv = "50",
				.phase = LISTED});
	}
	for (int i = 0; i < 10; i++)
		PLAY({FEED_ON_FAILED, .kind = FAILURE_BUSY, .retry_after_s = 7,
			     .what = FEED_DO_WAIT, .least_ms = 7000, .most_ms = 14000,
			     .phase = LISTED},
			{FEED_ON_TICK, .what = FEED_DO_WATCH, .want_rv = "50", .phase = LISTED});
	PLAY({FEED_ON_FAILED, .kind = FAILURE_BUSY, .retry_after_s = 7, .what = FEED_DO_WAIT,
		     .least_ms = 7000, .most_ms = 7000, .phase = LISTED},
		{FEED_ON_TICK, .what = FEED_DO_WATCH, .want_rv = "50", .phase = LISTED},
		{FEED_ON_FAILED, .kind = FAILURE_BUSY, .retry_after_s = 7, .what = FEED_DO_WAIT,
			.least_ms = 7000, .most_ms = 7000, .phase = LISTED},
		{FEED_ON_TICK, .what = FEED_DO_WATCH, .want_rv = "50", .phase = LISTED},
		{FEED_ON_FAILED, .kind = FAILURE_BUSY, .retry_after_s = 7, .what = FEED_DO_WAIT,
			.least_ms = 7000, .most_ms = 7000, .phase = LISTED},
		{FEED_ON_TICK, .what = FEED_DO_WATCH, .want_rv = "50", .phase = LISTED},
		{FEED_ON_FAILED, .kind = FAILURE_BUSY, .retry_after_s = 7, .what = FEED_DO_WAIT,
			.least_ms = 7000, .most_ms = 12800, .phase = LISTED},
		{FEED_ON_TICK, .what = FEED_DO_WATCH, .want_rv = "50", .phase = LISTED},
		{FEED_ON_FAILED, .kind = FAILURE_BUSY, .retry_after_s = 7, .what = FEED_DO_WAIT,
			.least_ms = 12800, .most_ms = 25600, .phase = LISTED},
		{FEED_ON_TICK, .what = FEED_DO_WATCH, .want_rv = "50", .phase = LISTED});
}

Test(machine, a_request_that_the_server_rejects_is_an_error_of_the_feed)
{
	start("", false);
	PLAY({FEED_ON_TURN, .what = FEED_DO_LIST, .limit = 500},
		{FEED_ON_FAILED, .kind = FAILURE_REQUEST, .what = FEED_DO_WAIT, .least_ms = 15000,
			.most_ms = 30000, .phase = FEED_ERROR},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE, .phase = FEED_ERROR});
}

Test(machine, c28_a_server_fault_in_the_stream_is_retried_then_listed)
{
	start("50", false);
	for (int i = 0; i < 2; i++)
		PLAY({FEED_ON_FAILED, .kind = FAILURE_SERVER, .what = FEED_DO_WAIT,
			     .most_ms = 60000, .phase = LISTED},
			{FEED_ON_TICK, .what = FEED_DO_WATCH, .want_rv = "50", .phase = LISTED});
	PLAY({FEED_ON_FAILED, .kind = FAILURE_SERVER, .what = FEED_DO_WAIT, .most_ms = 60000,
		     .phase = LISTED},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE, .phase = LISTED});
}

Test(machine, the_third_attempt_passes_over_an_unreadable_object)
{
	start("50", false);
	for (int i = 0; i < 3; i++) {
		cr_assert(!run.feed.tolerant);
		PLAY({FEED_ON_FAILED, .kind = FAILURE_UNREADABLE, .what = FEED_DO_WAIT,
			     .most_ms = 60000, .phase = LISTED},
			{FEED_ON_TICK, .what = FEED_DO_WATCH, .want_rv = "50", .phase = LISTED});
	}
	cr_assert(run.feed.tolerant);
	/* Until a list meets none. */
	PLAY({FEED_ON_RELIST, .what = FEED_DO_QUEUE, .phase = LISTED},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .limit = 500, .phase = LISTED},
		{FEED_ON_PAGE, .rv = "60", .what = FEED_DO_FINISH_LIST, .phase = LISTED},
		{FEED_ON_LISTED, .what = FEED_DO_WATCH, .want_rv = "60", .phase = LISTED});
	cr_assert(!run.feed.tolerant);
}

Test(machine, a_readable_event_resets_the_count_of_unreadable_ones)
{
	start("50", false);
	for (int i = 0; i < 4; i++)
		PLAY({FEED_ON_FAILED, .kind = FAILURE_UNREADABLE, .what = FEED_DO_WAIT,
			     .most_ms = 60000, .phase = LISTED},
			{FEED_ON_TICK, .what = FEED_DO_WATCH, .phase = LISTED},
			{FEED_ON_EVENT, .rv = "50", .what = FEED_DO_NOTHING, .phase = LISTED});
	cr_assert(!run.feed.tolerant);
}

Test(machine, a_rewound_feed_waits_and_goes_on_from_the_committed_checkpoint)
{
	start("50", false);
	PLAY({FEED_ON_EVENT, .rv = "60", .what = FEED_DO_NOTHING, .phase = LISTED});
	step((struct feed_input){
		.on = FEED_ON_REWIND, .rv = BYTES_LIT("50"), .listed = true, .phase = FEED_SYNCED});
	cr_assert_eq(run.action.what, FEED_DO_WAIT);
	cr_assert_eq(run.action.until_ns, UINT64_MAX);
	PLAY({FEED_ON_TICK, .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_FAILED, .kind = FAILURE_NETWORK, .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_RESUME, .what = FEED_DO_WATCH, .want_rv = "50", .phase = LISTED});
	/* A list without a commit begins again at its first page. */
	start("", false);
	PLAY({FEED_ON_TURN, .what = FEED_DO_LIST, .limit = 500},
		{FEED_ON_PAGE, .rv = "10", .continue_ = "a", .what = FEED_DO_LIST, .limit = 500},
		{FEED_ON_PAGE, .rv = "10", .what = FEED_DO_FINISH_LIST},
		{FEED_ON_LISTED, .what = FEED_DO_WATCH, .want_rv = "10", .phase = LISTED});
	step((struct feed_input){.on = FEED_ON_REWIND, .list_open = true, .phase = FEED_LISTING});
	PLAY({FEED_ON_RESUME, .what = FEED_DO_QUEUE},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .want_continue = "",
			.limit = 500});
}

Test(machine, times_are_those_of_the_policy)
{
	begin();
	run.policy.backoff_min_ns = 10 * MS;
	run.policy.backoff_max_ns = 40 * MS;
	run.policy.watch_ns = 10 * SECOND + 1;
	step((struct feed_input){.on = FEED_ON_START,
		.rv = BYTES_LIT("50"),
		.resolved = true,
		.listed = true,
		.phase = FEED_SYNCED});
	cr_assert_eq(run.action.what, FEED_DO_WATCH);
	cr_assert(run.action.timeout_s >= 11 && run.action.timeout_s < 22);
	for (int i = 0; i < 4; i++) {
		uint64_t least = i < 2 ? 10ull << i : 40;
		struct status status;

		status_set(FAILURE_BUSY, "later", &status);
		step((struct feed_input){.on = FEED_ON_FAILED, .status = &status});
		cr_assert_eq(run.action.what, FEED_DO_WAIT);
		cr_assert_geq(run.action.until_ns, run.now_ns + least * MS);
		cr_assert_lt(run.action.until_ns, run.now_ns + 2 * least * MS);
		run.now_ns = run.action.until_ns;
		step((struct feed_input){.on = FEED_ON_TICK});
		cr_assert_eq(run.action.what, FEED_DO_WATCH);
	}
}

/* Many watches ended at once are not opened at once; one alone is opened at once. */
Test(machine, a_feed_among_many_waits_a_random_part_of_their_span)
{
	uint64_t least = UINT64_MAX, most = 0;

	start("50", false);
	for (int i = 0; i < 200; i++) {
		run.now_ns += 10 * SECOND;
		step((struct feed_input){.on = FEED_ON_ENDED, .span_ns = 4 * SECOND});
		cr_assert_eq(run.action.what, FEED_DO_WAIT);
		uint64_t pause = run.action.until_ns - run.now_ns;
		cr_assert_lt(pause, 4 * SECOND);
		least = pause < least ? pause : least;
		most = pause > most ? pause : most;
		run.now_ns = run.action.until_ns;
		step((struct feed_input){.on = FEED_ON_TICK});
		cr_assert_eq(run.action.what, FEED_DO_WATCH);
	}
	cr_assert(least < SECOND && most > 3 * SECOND);
	run.now_ns += 10 * SECOND;
	step((struct feed_input){.on = FEED_ON_ENDED});
	cr_assert_eq(run.action.what, FEED_DO_WATCH);
}

Test(machine, a_held_list_is_repeated_after_a_pause)
{
	start("50", false);
	PLAY({FEED_ON_FAILED, .kind = FAILURE_EXPIRED, .what = FEED_DO_WAIT, .least_ms = 800,
		     .most_ms = 1600, .phase = LISTED},
		{FEED_ON_TICK, .after_ms = 1600, .what = FEED_DO_QUEUE, .phase = LISTED},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .limit = 500, .phase = LISTED},
		{FEED_ON_PAGE, .rv = "90", .what = FEED_DO_FINISH_LIST, .phase = LISTED},
		{FEED_ON_DOUBTED, .what = FEED_DO_WAIT, .least_ms = 30000, .most_ms = 60000,
			.phase = LISTED},
		{FEED_ON_DOUBTED, .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_TICK, .after_ms = 60000, .what = FEED_DO_QUEUE, .phase = LISTED},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .limit = 500, .phase = LISTED},
		{FEED_ON_PAGE, .rv = "91", .what = FEED_DO_FINISH_LIST, .phase = LISTED},
		{FEED_ON_LISTED, .what = FEED_DO_WATCH, .want_rv = "91", .phase = LISTED});
}
