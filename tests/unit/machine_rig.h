/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine of a feed, led through scripts: inputs, and expected outputs. */
#ifndef UNIT_FEED_RIG_H
#define UNIT_FEED_RIG_H

#include "reflector/feed/machine.h"
#include "reflector/record/object.h"
#include "tests/unit/config_rig.h"

#define MS     1000000ull
#define SECOND 1000000000ull

/* One line of a script: an input, its delay, and the expected outputs. */
struct step {
	enum feed_on on;
	uint64_t after_ms;
	const char *rv, *continue_;
	bool deletion;
	enum failure_kind kind; /* FEED_ON_FAILED */
	uint64_t retry_after_s;
	enum feed_do what;                   /* expected */
	const char *want_rv, *want_continue; /* NULL: not looked at */
	int limit;                           /* -1: not looked at */
	uint64_t least_ms, most_ms;          /* of a wait, from now */
	enum feed_phase phase;
};

/* The machine of the test. */
static struct {
	struct feed_machine feed;
	struct config_policy policy;
	uint64_t now_ns;
	uint64_t random;
	struct feed_action action;
} run;

/* Begins again with a new machine. */
static inline void begin(void)
{
	feed_machine_release(&run.feed);
	memset(&run, 0, sizeof(run));
	run.now_ns = 1000 * SECOND;
	run.random = 12345678901234567ull;
	run.policy = default_policy();
	feed_machine_init(&run.feed, 500, &run.policy);
}

static inline void step(struct feed_input in)
{
	in.now_ns = run.now_ns;
	in.random = run.random;
	run.random = run.random * 6364136223846793005ull + 1442695040888963407ull;
	feed_machine_step(&run.feed, &in, &run.action);
}

static inline void start(const char *rv, bool list_open)
{
	begin();
	step((struct feed_input){.on = FEED_ON_START,
		.rv = bytes_str(rv),
		.resolved = true,
		.list_open = list_open,
		.listed = *rv != '\0',
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
	[FEED_DO_FAIL] = "fail",
	[FEED_DO_ROLLED_BACK] = "rolled-back",
};

static inline void check(const struct step *s, size_t line)
{
	const struct feed_action *a = &run.action;

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
		uint64_t ms = (a->until_ns - run.now_ns) / MS;

		cr_assert(ms >= s->least_ms && ms <= s->most_ms, "step %zu: waits %llu ms", line,
			(unsigned long long)ms);
	}
	cr_assert_eq(feed_machine_phase(&run.feed), s->phase, "step %zu: phase %d", line,
		feed_machine_phase(&run.feed));
}

/* Waits requested by an action are over at the next FEED_ON_TICK. */
static inline void play(const struct step *steps, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct step *s = &steps[i];
		struct status status;

		if (s->on == FEED_ON_TICK && run.action.what == FEED_DO_WAIT)
			run.now_ns = run.action.until_ns;
		run.now_ns += s->after_ms * MS;
		status_set(s->kind, "a failure", &status);
		status.retry_after_ns = s->retry_after_s * SECOND;
		step((struct feed_input){.on = s->on,
			.rv = bytes_str(s->rv),
			.deletion = s->deletion,
			.continue_ = bytes_str(s->continue_),
			.status = &status,
			.items = 1});
		check(s, i);
	}
}

#define PLAY(...) \
	do { \
		static const struct step steps_[] = {__VA_ARGS__}; \
		play(steps_, sizeof(steps_) / sizeof(steps_[0])); \
	} while (0)

#define LISTED FEED_SYNCED

static inline void release_run(void)
{
	feed_machine_release(&run.feed);
}

TestSuite(machine, .fini = release_run);

#endif
