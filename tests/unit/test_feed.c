/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "common/err.h"
#include "reflector/feed.h"
#include "reflector/object.h"

#define MS     1000000ull
#define SECOND 1000000000ull

/* One line of a script: what comes in, after how long, and what must go out. */
struct step {
	enum feed_on on;
	uint64_t after_ms;
	const char *rv, *continue_;
	enum failure_kind kind;      /* FEED_ON_FAILED */
	uint64_t retry_after_s;
	enum feed_do what;           /* expected */
	const char *want_rv, *want_continue; /* NULL: not looked at */
	int limit;                   /* -1: not looked at */
	uint64_t least_ms, most_ms;  /* of a wait, from now */
	enum feed_phase phase;
};

struct run {
	struct feed feed;
	struct config_policy policy;
	uint64_t now_ns;
	uint64_t random;
	struct feed_action action;
};

static void begin(struct run *run)
{
	*run = (struct run){.now_ns = 1000 * SECOND, .random = 12345678901234567ull};
	run->policy = config_policy_default();
	feed_init(&run->feed, 500, &run->policy);
}

static void step(struct run *run, struct feed_input in)
{
	in.now_ns = run->now_ns;
	in.random = run->random;
	run->random = run->random * 6364136223846793005ull + 1442695040888963407ull;
	feed_step(&run->feed, &in, &run->action);
}

static void start(struct run *run, const char *rv, bool list_open)
{
	begin(run);
	step(run, (struct feed_input){.on = FEED_ON_START, .rv = bytes_str(rv), .resolved = true,
		.list_open = list_open, .listed = *rv != '\0',
		.phase = *rv ? FEED_SYNCED : FEED_LISTING});
}

static const char *const do_names[FEED_DO_MAX] = {
	[FEED_DO_NOTHING] = "nothing",
	[FEED_DO_RESOLVE] = "resolve",
	[FEED_DO_QUEUE] = "queue",
	[FEED_DO_LIST] = "list",
	[FEED_DO_STREAM] = "stream",
	[FEED_DO_FINISH_LIST] = "finish-list",
	[FEED_DO_WATCH] = "watch",
	[FEED_DO_WAIT] = "wait",
	[FEED_DO_FORGET] = "forget",
};

static void check(struct run *run, const struct step *s, size_t line)
{
	const struct feed_action *a = &run->action;

	cr_assert_eq(a->what, s->what, "step %zu: %s instead of %s", line, do_names[a->what],
		do_names[s->what]);
	if (s->want_rv)
		cr_assert_str_eq(a->rv, s->want_rv, "step %zu: rv", line);
	if (s->want_continue)
		cr_assert_str_eq(a->continue_, s->want_continue, "step %zu: continue", line);
	if (s->what == FEED_DO_LIST && s->limit >= 0)
		cr_assert_eq(a->limit, s->limit, "step %zu: limit %u", line, a->limit);
	if (s->what == FEED_DO_STREAM || (s->what == FEED_DO_WATCH && !a->keep))
		cr_assert(a->timeout_s >= 300 && a->timeout_s < 600, "step %zu", line);
	if (s->what == FEED_DO_WAIT) {
		uint64_t ms = (a->until_ns - run->now_ns) / MS;

		cr_assert(ms >= s->least_ms && ms <= s->most_ms, "step %zu: waits %llu ms", line,
			(unsigned long long)ms);
	}
	cr_assert_eq(feed_phase(&run->feed), s->phase, "step %zu: phase %d", line,
		feed_phase(&run->feed));
}

/* Waits that an action asked for are over when the next FEED_ON_TICK comes. */
static void play(struct run *run, const struct step *steps, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct step *s = &steps[i];
		struct status status;

		if (s->on == FEED_ON_TICK && run->action.what == FEED_DO_WAIT)
			run->now_ns = run->action.until_ns;
		run->now_ns += s->after_ms * MS;
		status_set(s->kind, "a failure", &status);
		status.retry_after_ns = s->retry_after_s * SECOND;
		step(run, (struct feed_input){.on = s->on, .rv = bytes_str(s->rv),
			.continue_ = bytes_str(s->continue_), .status = &status, .items = 1});
		check(run, s, i);
	}
}

#define PLAY(run, ...)                                                                             \
	do {                                                                                       \
		static const struct step steps_[] = {__VA_ARGS__};                                 \
		play(run, steps_, sizeof(steps_) / sizeof(steps_[0]));                             \
	} while (0)

#define LISTED FEED_SYNCED

Test(feed, c01_c06_an_empty_one_lists_the_newest_in_pages_then_watches)
{
	struct run run;

	start(&run, "", false);
	cr_assert_eq(run.action.what, FEED_DO_QUEUE);
	PLAY(&run,
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .want_continue = "", .limit = 500},
		{FEED_ON_PAGE, .rv = "10", .continue_ = "a+/=", .what = FEED_DO_LIST, .want_rv = "",
			.want_continue = "a+/=", .limit = 500},
		{FEED_ON_PAGE, .rv = "11", .continue_ = "b", .what = FEED_DO_LIST, .want_continue = "b",
			.limit = 500},
		{FEED_ON_PAGE, .rv = "12", .what = FEED_DO_FINISH_LIST, .want_rv = "10"},
		{FEED_ON_LISTED, .what = FEED_DO_WATCH, .want_rv = "10", .phase = LISTED});
	feed_release(&run.feed);
}

Test(feed, with_a_checkpoint_it_watches_and_never_lists)
{
	struct run run;

	start(&run, "50", false);
	cr_assert_eq(run.action.what, FEED_DO_WATCH);
	cr_assert_str_eq(run.action.rv, "50");
	feed_release(&run.feed);
}

Test(feed, an_open_list_means_list_again)
{
	struct run run;

	start(&run, "50", true);
	cr_assert_eq(run.action.what, FEED_DO_QUEUE);
	PLAY(&run, {FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "50", .limit = 0, .phase = LISTED});
	feed_release(&run.feed);
}

Test(feed, what_is_not_resolved_asks_discovery_first)
{
	struct run run;

	begin(&run);
	step(&run, (struct feed_input){.on = FEED_ON_START, .phase = FEED_LISTING});
	cr_assert_eq(run.action.what, FEED_DO_RESOLVE);
	PLAY(&run,
		{FEED_ON_FAILED, .kind = FAILURE_NETWORK, .what = FEED_DO_WAIT, .least_ms = 800,
			.most_ms = 1600},
		{FEED_ON_TICK, .what = FEED_DO_RESOLVE},
		{FEED_ON_FAILED, .kind = FAILURE_ABSENT, .what = FEED_DO_WAIT, .least_ms = 15000,
			.most_ms = 30000, .phase = FEED_GONE},
		{FEED_ON_TICK, .what = FEED_DO_RESOLVE, .phase = FEED_GONE},
		{FEED_ON_RESOLVED, .what = FEED_DO_QUEUE, .phase = FEED_GONE},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .limit = 500, .phase = FEED_GONE},
		{FEED_ON_ALIVE, .what = FEED_DO_NOTHING, .phase = FEED_LISTING});
	feed_release(&run.feed);
}

Test(feed, c16_c17_c18_the_rv_follows_events_and_bookmarks_and_a_clean_end_watches_on)
{
	struct run run;

	start(&run, "50", false);
	PLAY(&run,
		{FEED_ON_ALIVE, .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_EVENT, .rv = "51", .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_EVENT, .rv = "9", .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_BOOKMARK, .rv = "100", .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_ENDED, .what = FEED_DO_WATCH, .want_rv = "100", .phase = LISTED},
		{FEED_ON_ALIVE, .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_ENDED, .after_ms = 400000, .what = FEED_DO_WATCH, .want_rv = "100",
			.phase = LISTED});
	feed_release(&run.feed);
}

/* To watch on from "" would bring what is there, and none of what went. */
Test(feed, too_long_an_rv_leaves_the_one_before)
{
	struct run run;
	char rv[RV_MAX + 2];

	memset(rv, '7', sizeof(rv) - 1);
	rv[sizeof(rv) - 1] = '\0';
	start(&run, "50", false);
	step(&run, (struct feed_input){.on = FEED_ON_ALIVE});
	step(&run, (struct feed_input){.on = FEED_ON_BOOKMARK, .rv = bytes_str(rv)});
	run.now_ns += 400 * SECOND;
	step(&run, (struct feed_input){.on = FEED_ON_ENDED});
	cr_assert_eq(run.action.what, FEED_DO_WATCH);
	cr_assert_str_eq(run.action.rv, "50");
	rv[RV_MAX] = '\0';
	step(&run, (struct feed_input){.on = FEED_ON_BOOKMARK, .rv = bytes_str(rv)});
	run.now_ns += 400 * SECOND;
	step(&run, (struct feed_input){.on = FEED_ON_ENDED});
	cr_assert_str_eq(run.action.rv, rv);
	feed_release(&run.feed);
}

Test(feed, c40_opaque_rvs_are_followed_in_the_order_they_come)
{
	struct run run;

	start(&run, "abc-9", false);
	PLAY(&run,
		{FEED_ON_EVENT, .rv = "abc-1", .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_ENDED, .what = FEED_DO_WATCH, .want_rv = "abc-1", .phase = LISTED});
	feed_release(&run.feed);
}

Test(feed, c19_very_short_watches_wait_longer_each_time_and_then_list)
{
	struct run run;

	start(&run, "50", false);
	PLAY(&run,
		{FEED_ON_ENDED, .after_ms = 999, .what = FEED_DO_WAIT, .least_ms = 800, .most_ms = 1600,
			.phase = LISTED},
		{FEED_ON_TICK, .what = FEED_DO_WATCH, .want_rv = "50", .phase = LISTED},
		{FEED_ON_ENDED, .what = FEED_DO_WAIT, .least_ms = 1600, .most_ms = 3200, .phase = LISTED},
		{FEED_ON_TICK, .what = FEED_DO_WATCH, .want_rv = "50", .phase = LISTED},
		{FEED_ON_ENDED, .what = FEED_DO_WAIT, .least_ms = 3200, .most_ms = 6400, .phase = LISTED},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE, .phase = LISTED},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "50", .limit = 0, .phase = LISTED});
	feed_release(&run.feed);
}

Test(feed, c34_a_lost_server_is_asked_again_ever_slower_from_the_same_rv)
{
	static const uint64_t least[] = {800, 1600, 3200, 6400, 12800, 15000, 15000, 15000};
	struct run run;

	start(&run, "50", false);
	for (size_t i = 0; i < sizeof(least) / sizeof(least[0]); i++) {
		struct step failed = {FEED_ON_FAILED, .kind = FAILURE_NETWORK, .what = FEED_DO_WAIT,
			.least_ms = least[i], .most_ms = 2 * least[i], .phase = LISTED};
		struct step again = {FEED_ON_TICK, .what = FEED_DO_WATCH, .want_rv = "50",
			.phase = LISTED};

		play(&run, &failed, 1);
		play(&run, &again, 1);
	}
	/* One good minute is not enough, two are. */
	PLAY(&run,
		{FEED_ON_ALIVE, .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_FAILED, .after_ms = 60000, .kind = FAILURE_BUSY, .what = FEED_DO_WAIT,
			.least_ms = 15000, .most_ms = 30000, .phase = LISTED},
		{FEED_ON_TICK, .what = FEED_DO_WATCH, .phase = LISTED},
		{FEED_ON_ALIVE, .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_FAILED, .after_ms = 120000, .kind = FAILURE_BUSY, .what = FEED_DO_WAIT,
			.least_ms = 800, .most_ms = 1600, .phase = LISTED});
	feed_release(&run.feed);
}

Test(feed, after_an_outage_an_expired_rv_is_listed_soon_but_not_ever_again)
{
	struct run run;

	start(&run, "50", false);
	for (size_t i = 0; i < 8; i++)
		PLAY(&run,
			{FEED_ON_FAILED, .kind = FAILURE_NETWORK, .what = FEED_DO_WAIT, .most_ms = 30000,
				.phase = LISTED},
			{FEED_ON_TICK, .what = FEED_DO_WATCH, .want_rv = "50", .phase = LISTED});
	for (uint64_t least = 800; least <= 3200; least *= 2) {
		struct step expired = {FEED_ON_FAILED, .kind = FAILURE_EXPIRED, .what = FEED_DO_WAIT,
			.least_ms = least, .most_ms = 2 * least, .phase = LISTED};

		play(&run, &expired, 1);
		PLAY(&run,
			{FEED_ON_TICK, .what = FEED_DO_QUEUE, .phase = LISTED},
			{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .limit = 500, .phase = LISTED},
			{FEED_ON_PAGE, .rv = "60", .what = FEED_DO_FINISH_LIST, .want_rv = "60",
				.phase = LISTED},
			{FEED_ON_LISTED, .what = FEED_DO_WATCH, .want_rv = "60", .phase = LISTED});
	}
	feed_release(&run.feed);
}

Test(feed, a_stream_that_breaks_is_opened_again_at_once)
{
	struct run run;

	start(&run, "50", false);
	PLAY(&run,
		{FEED_ON_ALIVE, .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_FAILED, .after_ms = 5000, .kind = FAILURE_NETWORK, .what = FEED_DO_WATCH,
			.want_rv = "50", .phase = LISTED},
		/* It never answered this time: a failure, however long that took. */
		{FEED_ON_FAILED, .after_ms = 30000, .kind = FAILURE_NETWORK, .what = FEED_DO_WAIT,
			.least_ms = 800, .most_ms = 1600, .phase = LISTED});
	feed_release(&run.feed);
}

Test(feed, c24_an_expired_watch_lists_the_newest_after_a_pause)
{
	struct run run;

	start(&run, "50", false);
	PLAY(&run,
		{FEED_ON_FAILED, .kind = FAILURE_EXPIRED, .what = FEED_DO_WAIT, .least_ms = 800,
			.most_ms = 1600, .phase = LISTED},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE, .phase = LISTED},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .limit = 500, .phase = LISTED},
		{FEED_ON_PAGE, .rv = "90", .what = FEED_DO_FINISH_LIST, .want_rv = "90", .phase = LISTED},
		{FEED_ON_LISTED, .what = FEED_DO_WATCH, .want_rv = "90", .phase = LISTED});
	feed_release(&run.feed);
}

Test(feed, c11_c12_c13_a_list_at_an_rv_of_no_use_is_one_for_the_newest_at_once)
{
	struct run run;

	start(&run, "50", true);
	PLAY(&run,
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "50", .limit = 0, .phase = LISTED},
		{FEED_ON_FAILED, .kind = FAILURE_EXPIRED, .what = FEED_DO_LIST, .want_rv = "",
			.limit = 500, .phase = LISTED},
		{FEED_ON_FAILED, .kind = FAILURE_EXPIRED, .what = FEED_DO_WAIT, .least_ms = 800,
			.most_ms = 1600, .phase = LISTED});
	feed_release(&run.feed);
	start(&run, "50", true);
	PLAY(&run,
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "50", .limit = 0, .phase = LISTED},
		{FEED_ON_FAILED, .kind = FAILURE_RV_AHEAD, .retry_after_s = 1, .what = FEED_DO_WAIT,
			.least_ms = 1000, .most_ms = 1000, .phase = LISTED},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE, .phase = LISTED},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .limit = 500, .phase = LISTED});
	feed_release(&run.feed);
}

Test(feed, only_a_list_for_the_newest_proves_another_past)
{
	struct run run;

	start(&run, "50", true);
	PLAY(&run,
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "50", .limit = 0, .phase = LISTED},
		{FEED_ON_PAGE, .rv = "40", .what = FEED_DO_FINISH_LIST, .phase = LISTED});
	feed_release(&run.feed);
	start(&run, "50", true);
	PLAY(&run,
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "50", .limit = 0, .phase = LISTED},
		{FEED_ON_FAILED, .kind = FAILURE_RV_AHEAD, .what = FEED_DO_LIST, .want_rv = "",
			.limit = 500, .phase = LISTED},
		{FEED_ON_PAGE, .rv = "40", .what = FEED_DO_FORGET, .phase = LISTED});
	feed_release(&run.feed);
}

Test(feed, a_bookmark_from_behind_makes_it_list_the_newest)
{
	struct run run;

	start(&run, "50", false);
	PLAY(&run,
		{FEED_ON_BOOKMARK, .rv = "40", .what = FEED_DO_WAIT, .least_ms = 800, .most_ms = 1600,
			.phase = LISTED},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE, .phase = LISTED},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .limit = 500, .phase = LISTED});
	feed_release(&run.feed);
}

Test(feed, c07_an_expired_page_begins_the_list_again_without_pages)
{
	struct run run;

	start(&run, "", false);
	PLAY(&run,
		{FEED_ON_TURN, .what = FEED_DO_LIST, .limit = 500},
		{FEED_ON_PAGE, .rv = "10", .continue_ = "a", .what = FEED_DO_LIST, .limit = 500},
		{FEED_ON_FAILED, .kind = FAILURE_EXPIRED, .what = FEED_DO_WAIT, .least_ms = 800,
			.most_ms = 1600},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .want_continue = "", .limit = 0},
		{FEED_ON_PAGE, .rv = "20", .what = FEED_DO_FINISH_LIST, .want_rv = "20"},
		{FEED_ON_LISTED, .what = FEED_DO_WATCH, .want_rv = "20", .phase = LISTED});
	feed_release(&run.feed);
}

Test(feed, c08_a_list_without_pages_that_expires_too_is_asked_for_again)
{
	struct run run;

	start(&run, "", false);
	PLAY(&run,
		{FEED_ON_TURN, .what = FEED_DO_LIST, .limit = 500},
		{FEED_ON_PAGE, .rv = "10", .continue_ = "a", .what = FEED_DO_LIST, .limit = 500},
		{FEED_ON_FAILED, .kind = FAILURE_EXPIRED, .what = FEED_DO_WAIT, .most_ms = 1600},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .want_continue = "", .limit = 0},
		{FEED_ON_FAILED, .kind = FAILURE_EXPIRED, .what = FEED_DO_WAIT, .least_ms = 1600,
			.most_ms = 3200},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .want_continue = "", .limit = 0});
	feed_release(&run.feed);
}

Test(feed, c10_an_empty_page_with_a_token_is_followed_but_not_for_ever)
{
	struct feed_input page = {.on = FEED_ON_PAGE, .rv = BYTES_LIT("10")};
	char token[16];
	struct run run;

	start(&run, "", false);
	PLAY(&run, {FEED_ON_TURN, .what = FEED_DO_LIST, .limit = 500});
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(token, sizeof(token), "t%d", i);
		page.continue_ = bytes_str(token);
		step(&run, page);
		cr_assert_eq(run.action.what, FEED_DO_LIST, "page %d", i);
		cr_assert_str_eq(run.action.continue_, token);
	}
	page.continue_ = BYTES_LIT("last");
	step(&run, page);
	cr_assert_eq(run.action.what, FEED_DO_WAIT);
	feed_release(&run.feed);
}

Test(feed, c15_a_list_that_timed_out_is_asked_for_again_as_it_was)
{
	struct run run;

	start(&run, "50", true);
	PLAY(&run,
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "50", .limit = 0, .phase = LISTED},
		{FEED_ON_FAILED, .kind = FAILURE_BUSY, .what = FEED_DO_WAIT, .least_ms = 800,
			.most_ms = 1600, .phase = LISTED},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE, .phase = LISTED},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "50", .limit = 0, .phase = LISTED});
	feed_release(&run.feed);
}

Test(feed, c33_a_list_comes_again_when_the_server_said)
{
	struct run run;

	start(&run, "", false);
	PLAY(&run, {FEED_ON_TURN, .what = FEED_DO_LIST, .limit = 500});
	for (int i = 0; i < 2; i++)
		PLAY(&run,
			{FEED_ON_FAILED, .kind = FAILURE_BUSY, .retry_after_s = 4, .what = FEED_DO_WAIT,
				.least_ms = 4000, .most_ms = 4000},
			{FEED_ON_TICK, .what = FEED_DO_QUEUE},
			{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .limit = 500});
	PLAY(&run, {FEED_ON_PAGE, .rv = "10", .what = FEED_DO_FINISH_LIST});
	feed_release(&run.feed);
}

Test(feed, a_page_that_got_lost_is_asked_for_again_five_times)
{
	struct run run;

	start(&run, "", false);
	PLAY(&run,
		{FEED_ON_TURN, .what = FEED_DO_LIST, .limit = 500},
		{FEED_ON_PAGE, .rv = "10", .continue_ = "a", .what = FEED_DO_LIST, .limit = 500});
	for (int i = 0; i < 5; i++)
		PLAY(&run,
			{FEED_ON_FAILED, .kind = FAILURE_NETWORK, .what = FEED_DO_WAIT, .most_ms = 60000},
			{FEED_ON_TICK, .what = FEED_DO_QUEUE},
			{FEED_ON_TURN, .what = FEED_DO_LIST, .want_continue = "a", .limit = 500});
	PLAY(&run,
		{FEED_ON_FAILED, .kind = FAILURE_NETWORK, .what = FEED_DO_WAIT, .most_ms = 60000},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_continue = "", .limit = 500});
	feed_release(&run.feed);
}

Test(feed, c09_pages_that_never_end_are_given_up)
{
	struct run run;

	start(&run, "", false);
	PLAY(&run,
		{FEED_ON_TURN, .what = FEED_DO_LIST, .limit = 500},
		{FEED_ON_PAGE, .rv = "10", .continue_ = "a", .what = FEED_DO_LIST, .limit = 500},
		{FEED_ON_PAGE, .rv = "10", .continue_ = "a", .what = FEED_DO_WAIT, .least_ms = 800,
			.most_ms = 1600});
	feed_release(&run.feed);
}

Test(feed, c30_retry_after_raises_the_pause)
{
	struct run run;

	start(&run, "50", false);
	PLAY(&run,
		{FEED_ON_FAILED, .kind = FAILURE_BUSY, .retry_after_s = 7, .what = FEED_DO_WAIT,
			.least_ms = 7000, .most_ms = 7000, .phase = LISTED},
		{FEED_ON_TICK, .what = FEED_DO_WATCH, .want_rv = "50", .phase = LISTED});
	feed_release(&run.feed);
}

Test(feed, c46_forbidden_is_told_and_asked_again_slowly)
{
	struct run run;

	start(&run, "50", false);
	PLAY(&run,
		{FEED_ON_FAILED, .kind = FAILURE_FORBIDDEN, .what = FEED_DO_WAIT, .least_ms = 15000,
			.most_ms = 30000, .phase = FEED_FORBIDDEN},
		{FEED_ON_TICK, .what = FEED_DO_WATCH, .want_rv = "50", .phase = FEED_FORBIDDEN},
		{FEED_ON_ALIVE, .what = FEED_DO_NOTHING, .phase = LISTED});
	feed_release(&run.feed);
}

Test(feed, c47_a_resource_that_went_is_looked_for_and_then_listed)
{
	struct run run;

	start(&run, "50", false);
	PLAY(&run,
		{FEED_ON_FAILED, .kind = FAILURE_ABSENT, .what = FEED_DO_WAIT, .least_ms = 15000,
			.most_ms = 30000, .phase = FEED_GONE},
		{FEED_ON_TICK, .what = FEED_DO_RESOLVE, .phase = FEED_GONE},
		{FEED_ON_RESOLVED, .what = FEED_DO_QUEUE, .phase = FEED_GONE},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "50", .limit = 0, .phase = FEED_GONE},
		{FEED_ON_PAGE, .rv = "60", .what = FEED_DO_FINISH_LIST, .phase = LISTED});
	feed_release(&run.feed);
}

Test(feed, a_request_the_server_does_not_take_is_an_error_of_the_feed)
{
	struct run run;

	start(&run, "", false);
	PLAY(&run,
		{FEED_ON_TURN, .what = FEED_DO_LIST, .limit = 500},
		{FEED_ON_FAILED, .kind = FAILURE_REQUEST, .what = FEED_DO_WAIT, .least_ms = 15000,
			.most_ms = 30000, .phase = FEED_ERROR},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE, .phase = FEED_ERROR});
	feed_release(&run.feed);
}

Test(feed, c28_a_server_fault_in_the_stream_is_retried_then_listed)
{
	struct run run;

	start(&run, "50", false);
	for (int i = 0; i < 2; i++)
		PLAY(&run,
			{FEED_ON_FAILED, .kind = FAILURE_SERVER, .what = FEED_DO_WAIT, .most_ms = 60000,
				.phase = LISTED},
			{FEED_ON_TICK, .what = FEED_DO_WATCH, .want_rv = "50", .phase = LISTED});
	PLAY(&run,
		{FEED_ON_FAILED, .kind = FAILURE_SERVER, .what = FEED_DO_WAIT, .most_ms = 60000,
			.phase = LISTED},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE, .phase = LISTED});
	feed_release(&run.feed);
}

Test(feed, the_third_meeting_with_an_unreadable_object_passes_over_it)
{
	struct run run;

	start(&run, "50", false);
	for (int i = 0; i < 3; i++) {
		cr_assert(!feed_is_tolerant(&run.feed));
		PLAY(&run,
			{FEED_ON_FAILED, .kind = FAILURE_UNREADABLE, .what = FEED_DO_WAIT,
				.most_ms = 60000, .phase = LISTED},
			{FEED_ON_TICK, .what = FEED_DO_WATCH, .want_rv = "50", .phase = LISTED});
	}
	cr_assert(feed_is_tolerant(&run.feed));
	/* Until a list meets none. */
	PLAY(&run,
		{FEED_ON_RELIST, .what = FEED_DO_QUEUE, .phase = LISTED},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .limit = 500, .phase = LISTED},
		{FEED_ON_PAGE, .rv = "60", .what = FEED_DO_FINISH_LIST, .phase = LISTED},
		{FEED_ON_LISTED, .what = FEED_DO_WATCH, .want_rv = "60", .phase = LISTED});
	cr_assert(!feed_is_tolerant(&run.feed));
	feed_release(&run.feed);
}

Test(feed, readable_events_between_unreadable_ones_begin_the_count_anew)
{
	struct run run;

	start(&run, "50", false);
	for (int i = 0; i < 4; i++)
		PLAY(&run,
			{FEED_ON_FAILED, .kind = FAILURE_UNREADABLE, .what = FEED_DO_WAIT,
				.most_ms = 60000, .phase = LISTED},
			{FEED_ON_TICK, .what = FEED_DO_WATCH, .phase = LISTED},
			{FEED_ON_EVENT, .rv = "50", .what = FEED_DO_NOTHING, .phase = LISTED});
	cr_assert(!feed_is_tolerant(&run.feed));
	feed_release(&run.feed);
}

Test(feed, rewound_it_waits_and_goes_on_from_the_committed_checkpoint)
{
	struct run run;

	start(&run, "50", false);
	PLAY(&run, {FEED_ON_EVENT, .rv = "60", .what = FEED_DO_NOTHING, .phase = LISTED});
	step(&run, (struct feed_input){.on = FEED_ON_REWIND, .rv = BYTES_LIT("50"), .listed = true,
		.phase = FEED_SYNCED});
	cr_assert_eq(run.action.what, FEED_DO_WAIT);
	cr_assert_eq(run.action.until_ns, UINT64_MAX);
	PLAY(&run,
		{FEED_ON_TICK, .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_FAILED, .kind = FAILURE_NETWORK, .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_RESUME, .what = FEED_DO_WATCH, .want_rv = "50", .phase = LISTED});
	feed_release(&run.feed);
	/* A list that was not committed is made again from its first page. */
	start(&run, "", false);
	PLAY(&run,
		{FEED_ON_TURN, .what = FEED_DO_LIST, .limit = 500},
		{FEED_ON_PAGE, .rv = "10", .continue_ = "a", .what = FEED_DO_LIST, .limit = 500},
		{FEED_ON_PAGE, .rv = "10", .what = FEED_DO_FINISH_LIST},
		{FEED_ON_LISTED, .what = FEED_DO_WATCH, .want_rv = "10", .phase = LISTED});
	step(&run, (struct feed_input){.on = FEED_ON_REWIND, .list_open = true,
		.phase = FEED_LISTING});
	PLAY(&run,
		{FEED_ON_RESUME, .what = FEED_DO_QUEUE},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .want_continue = "", .limit = 500});
	feed_release(&run.feed);
}

/* ---- streams ---- */

static void start_streaming(struct run *run, const char *rv, bool list_open)
{
	static struct config_policy streaming;

	streaming = config_policy_default();
	streaming.streaming_lists = true;
	start(run, rv, list_open);
	run->feed.policy = &streaming;
}

Test(feed, c49_a_stream_is_a_list_that_goes_on_as_the_watch)
{
	struct run run;

	start_streaming(&run, "", false);
	PLAY(&run,
		{FEED_ON_TURN, .what = FEED_DO_STREAM, .want_rv = ""},
		{FEED_ON_ALIVE, .what = FEED_DO_NOTHING},
		{FEED_ON_INITIAL, .rv = "20", .what = FEED_DO_FINISH_LIST, .want_rv = "20"});
	cr_assert(run.action.keep);
	PLAY(&run, {FEED_ON_LISTED, .what = FEED_DO_WATCH, .want_rv = "20", .phase = LISTED});
	cr_assert(run.action.keep);
	/* The watch behind it may end at once: it is opened again from where the stream was. */
	PLAY(&run,
		{FEED_ON_EVENT, .rv = "21", .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_ENDED, .what = FEED_DO_WATCH, .want_rv = "21", .phase = LISTED});
	cr_assert(!run.action.keep);
	feed_release(&run.feed);
}

Test(feed, c68_initial_events_move_no_rv_and_a_lost_stream_starts_over)
{
	struct run run;

	start_streaming(&run, "", false);
	PLAY(&run,
		{FEED_ON_TURN, .what = FEED_DO_STREAM, .want_rv = ""},
		{FEED_ON_ALIVE, .what = FEED_DO_NOTHING},
		{FEED_ON_EVENT, .rv = "7", .what = FEED_DO_NOTHING},
		{FEED_ON_EVENT, .rv = "3", .what = FEED_DO_NOTHING},
		{FEED_ON_ENDED, .after_ms = 5000, .what = FEED_DO_WAIT, .least_ms = 800, .most_ms = 1600},
		{FEED_ON_TICK, .what = FEED_DO_QUEUE},
		{FEED_ON_TURN, .what = FEED_DO_STREAM, .want_rv = ""});
	feed_release(&run.feed);
}

Test(feed, c48_a_refused_stream_is_a_list_at_once_and_for_a_while)
{
	static const enum failure_kind kinds[] = {FAILURE_REQUEST, FAILURE_FORBIDDEN};

	for (size_t i = 0; i < 2; i++) {
		struct step refused = {FEED_ON_FAILED, .kind = kinds[i], .what = FEED_DO_LIST,
			.want_rv = "", .limit = 500};
		struct run run;

		start_streaming(&run, "", false);
		PLAY(&run, {FEED_ON_TURN, .what = FEED_DO_STREAM});
		play(&run, &refused, 1);
		PLAY(&run,
			{FEED_ON_PAGE, .rv = "10", .what = FEED_DO_FINISH_LIST},
			{FEED_ON_LISTED, .what = FEED_DO_WATCH, .want_rv = "10", .phase = LISTED});
		cr_assert(!run.action.keep);
		/* Remembered for half an hour, then tried again. */
		PLAY(&run,
			{FEED_ON_RELIST, .after_ms = 1700000, .what = FEED_DO_QUEUE, .phase = LISTED},
			{FEED_ON_TURN, .what = FEED_DO_LIST, .limit = 500, .phase = LISTED},
			{FEED_ON_RELIST, .after_ms = 200000, .what = FEED_DO_QUEUE, .phase = LISTED},
			{FEED_ON_TURN, .what = FEED_DO_STREAM, .want_rv = "", .phase = LISTED});
		feed_release(&run.feed);
	}
}

Test(feed, c50_c51_the_third_lost_stream_in_a_row_is_followed_by_a_list)
{
	static const struct step lost[] = {
		{FEED_ON_ENDED, .after_ms = 5000, .what = FEED_DO_WAIT, .most_ms = 60000},
		{FEED_ON_FAILED, .kind = FAILURE_PROTOCOL, .what = FEED_DO_WAIT, .most_ms = 60000},
		{FEED_ON_FAILED, .kind = FAILURE_NETWORK, .what = FEED_DO_WAIT, .most_ms = 60000},
	};
	struct run run;

	start_streaming(&run, "", false);
	for (size_t i = 0; i < 3; i++) {
		PLAY(&run,
			{FEED_ON_TURN, .what = FEED_DO_STREAM},
			{FEED_ON_ALIVE, .what = FEED_DO_NOTHING});
		play(&run, &lost[i], 1);
		PLAY(&run, {FEED_ON_TICK, .what = FEED_DO_QUEUE});
	}
	PLAY(&run, {FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .limit = 500});
	feed_release(&run.feed);
}

Test(feed, a_server_that_is_away_or_busy_says_nothing_about_streams)
{
	struct run run;

	start_streaming(&run, "", false);
	PLAY(&run, {FEED_ON_TURN, .what = FEED_DO_STREAM});
	for (int i = 0; i < 5; i++)
		PLAY(&run,
			{FEED_ON_FAILED, .kind = FAILURE_NETWORK, .what = FEED_DO_WAIT, .most_ms = 60000},
			{FEED_ON_TICK, .what = FEED_DO_QUEUE},
			{FEED_ON_TURN, .what = FEED_DO_STREAM},
			{FEED_ON_FAILED, .kind = FAILURE_BUSY, .what = FEED_DO_WAIT, .most_ms = 60000},
			{FEED_ON_TICK, .what = FEED_DO_QUEUE},
			{FEED_ON_TURN, .what = FEED_DO_STREAM});
	feed_release(&run.feed);
}

Test(feed, a_stream_at_an_rv_of_no_use_is_one_for_the_newest_at_once)
{
	struct run run;

	start_streaming(&run, "50", true);
	PLAY(&run,
		{FEED_ON_TURN, .what = FEED_DO_STREAM, .want_rv = "50", .phase = LISTED},
		{FEED_ON_FAILED, .kind = FAILURE_RV_AHEAD, .what = FEED_DO_STREAM, .want_rv = "",
			.phase = LISTED},
		/* And only that one proves another past. */
		{FEED_ON_INITIAL, .rv = "40", .what = FEED_DO_FORGET, .phase = LISTED});
	cr_assert(!run.action.keep);
	feed_release(&run.feed);
}

Test(feed, events_that_come_late_change_nothing)
{
	struct run run;

	start(&run, "", false);
	PLAY(&run,
		{FEED_ON_PAGE, .rv = "10", .what = FEED_DO_NOTHING},
		{FEED_ON_EVENT, .rv = "10", .what = FEED_DO_NOTHING},
		{FEED_ON_ENDED, .what = FEED_DO_NOTHING},
		{FEED_ON_LISTED, .what = FEED_DO_NOTHING},
		{FEED_ON_RESUME, .what = FEED_DO_NOTHING},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .limit = 500});
	feed_release(&run.feed);
}

Test(feed, times_are_those_of_the_policy)
{
	struct run run;

	begin(&run);
	run.policy.backoff_min_ns = 10 * MS;
	run.policy.backoff_max_ns = 40 * MS;
	run.policy.watch_ns = 10 * SECOND + 1;
	step(&run, (struct feed_input){.on = FEED_ON_START, .rv = BYTES_LIT("50"), .resolved = true,
		.listed = true, .phase = FEED_SYNCED});
	cr_assert_eq(run.action.what, FEED_DO_WATCH);
	cr_assert(run.action.timeout_s >= 11 && run.action.timeout_s < 22);
	for (int i = 0; i < 4; i++) {
		uint64_t least = i < 2 ? 10ull << i : 40;
		struct status status;

		status_set(FAILURE_BUSY, "later", &status);
		step(&run, (struct feed_input){.on = FEED_ON_FAILED, .status = &status});
		cr_assert_eq(run.action.what, FEED_DO_WAIT);
		cr_assert_geq(run.action.until_ns, run.now_ns + least * MS);
		cr_assert_lt(run.action.until_ns, run.now_ns + 2 * least * MS);
		run.now_ns = run.action.until_ns;
		step(&run, (struct feed_input){.on = FEED_ON_TICK});
		cr_assert_eq(run.action.what, FEED_DO_WATCH);
	}
	feed_release(&run.feed);
}

/* Many watches that end together are not opened together; one alone is opened at once. */
Test(feed, one_of_many_that_turn_to_the_server_waits_a_part_of_their_span)
{
	uint64_t least = UINT64_MAX, most = 0;
	struct run run;

	start(&run, "50", false);
	for (int i = 0; i < 200; i++) {
		run.now_ns += 10 * SECOND;
		step(&run, (struct feed_input){.on = FEED_ON_ENDED, .span_ns = 4 * SECOND});
		cr_assert_eq(run.action.what, FEED_DO_WAIT);
		uint64_t pause = run.action.until_ns - run.now_ns;
		cr_assert_lt(pause, 4 * SECOND);
		least = pause < least ? pause : least;
		most = pause > most ? pause : most;
		run.now_ns = run.action.until_ns;
		step(&run, (struct feed_input){.on = FEED_ON_TICK});
		cr_assert_eq(run.action.what, FEED_DO_WATCH);
	}
	cr_assert(least < SECOND && most > 3 * SECOND);
	run.now_ns += 10 * SECOND;
	step(&run, (struct feed_input){.on = FEED_ON_ENDED});
	cr_assert_eq(run.action.what, FEED_DO_WATCH);
	feed_release(&run.feed);
}

Test(feed, list_that_is_not_believed_is_made_again_after_a_pause)
{
	struct run run;

	start(&run, "50", false);
	PLAY(&run,
		{FEED_ON_FAILED, .kind = FAILURE_EXPIRED, .what = FEED_DO_WAIT, .least_ms = 800, .most_ms = 1600, .phase = LISTED},
		{FEED_ON_TICK, .after_ms = 1600, .what = FEED_DO_QUEUE, .phase = LISTED},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .limit = 500, .phase = LISTED},
		{FEED_ON_PAGE, .rv = "90", .what = FEED_DO_FINISH_LIST, .phase = LISTED},
		{FEED_ON_DOUBTED, .what = FEED_DO_WAIT, .least_ms = 30000, .most_ms = 60000, .phase = LISTED},
		{FEED_ON_DOUBTED, .what = FEED_DO_NOTHING, .phase = LISTED},
		{FEED_ON_TICK, .after_ms = 60000, .what = FEED_DO_QUEUE, .phase = LISTED},
		{FEED_ON_TURN, .what = FEED_DO_LIST, .want_rv = "", .limit = 500, .phase = LISTED},
		{FEED_ON_PAGE, .rv = "91", .what = FEED_DO_FINISH_LIST, .phase = LISTED},
		{FEED_ON_LISTED, .what = FEED_DO_WATCH, .want_rv = "91", .phase = LISTED});
	feed_release(&run.feed);
}
