/* SPDX-License-Identifier: Apache-2.0 */
/* kinf wait FEED [--for synced|live|rv=N|object=NS/NAME] [--timeout D] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "reader/command/command.h"

#define LOOK_AGAIN_MS 50

struct wait_args {
	const char *condition;
	uint64_t timeout_ns;
};

static const struct option_spec wait_options[] = {
	{0, "for", OPTION_TEXT, offsetof(struct wait_args, condition), "CONDITION",
		"synced (default), live, rv=RESOURCEVERSION or object=NAMESPACE/NAME"},
	{0, "timeout", OPTION_DURATION, offsetof(struct wait_args, timeout_ns), "D",
		"give up after this long; default: never"},
};

struct waiting {
	struct kinf *kinf;
	struct kinf_snapshot *snapshot;
	const char *feed;
	const char *argument; /* of the condition, behind "=" */
};

/* 1 when it holds, 0 when not, negative on errors. */
typedef int holds_fn(struct waiting *waiting);

static int see_live(void *arg, const struct kinf_feed_info *status)
{
	bool *live = arg;

	*live = *live && strcmp(status->state, "live") == 0;
	return 0;
}

static int is_live(struct waiting *waiting)
{
	bool live = true;
	int r = kinf_feed_status(waiting->snapshot, waiting->feed, see_live, &live);

	return r == KINF_NO_FEED ? 0 : r < 0 ? r : live;
}

static int has_object(struct waiting *waiting)
{
	AUTO_FREE char *copy = strdup(waiting->argument);
	char *slash = copy ? strchr(copy, '/') : NULL;
	struct kinf_object object;

	if (slash)
		*slash = '\0';
	int r = kinf_get(waiting->snapshot, waiting->feed, slash ? copy : NULL,
		slash ? slash + 1 : waiting->argument, &object);
	return r == KINF_NO_FEED ? 0 : r < 0 ? r : r == KINF_FOUND;
}

/* For what the library has no wait for: looks again and again. */
static int look_until(struct waiting *waiting, holds_fn *holds, uint64_t end_ns)
{
	struct timespec pause = {.tv_nsec = LOOK_AGAIN_MS * 1000000L};

	for (;;) {
		int r = waiting->snapshot
			? kinf_snapshot_renew(waiting->snapshot)
			: kinf_snapshot_open(waiting->kinf, &waiting->snapshot);

		if (r == 0)
			r = holds(waiting);
		if (r < 0 || r == 1)
			return r;
		if (waiting->snapshot)
			(void)kinf_snapshot_reset(waiting->snapshot); /* looked at anew below */
		if (proc_monotonic_ns() >= end_ns)
			return ERR_TIMEOUT;
		(void)nanosleep(&pause, NULL);
	}
}

static int remaining_ms(uint64_t end_ns)
{
	uint64_t now = proc_monotonic_ns();

	if (end_ns == UINT64_MAX)
		return -1;
	uint64_t ms = now < end_ns ? (end_ns - now) / 1000000 : 0;
	return ms < INT32_MAX ? (int)ms : INT32_MAX;
}

static int wait_for(struct waiting *waiting, const struct wait_args *args, uint64_t end_ns)
{
	const char *condition = args->condition ? args->condition : "synced";
	int ms = remaining_ms(end_ns);

	if (!strcmp(condition, "synced"))
		return kinf_wait_synced(waiting->kinf, &waiting->feed, 1, ms);
	waiting->argument = strchr(condition, '=') ? strchr(condition, '=') + 1 : "";
	if (!strncmp(condition, "rv=", 3))
		return kinf_wait_rv(waiting->kinf, waiting->feed, waiting->argument, ms);
	return look_until(waiting, !strcmp(condition, "live") ? is_live : has_object, end_ns);
}

/* A feed that does not exist yet is waited for; perhaps it was only misspelt. Negative: it is not there,
 * or nobody knows; kinf_error() says why. */
static int look_for_feed(struct waiting *waiting)
{
	bool live = true;
	int r = waiting->snapshot ? kinf_snapshot_renew(waiting->snapshot)
				  : kinf_snapshot_open(waiting->kinf, &waiting->snapshot);

	if (r == 0)
		r = kinf_feed_status(waiting->snapshot, waiting->feed, see_live, &live);
	return r;
}

/* Who waits without end is told at once. */
static void note_missing(struct waiting *waiting)
{
	if (look_for_feed(waiting) == KINF_NO_FEED)
		(void)fprintf(stderr, "note: waiting; %s\n", kinf_error(waiting->kinf));
	if (waiting->snapshot)
		(void)kinf_snapshot_reset(waiting->snapshot); /* looked at anew by whoever waits */
}

static void say_timeout(struct waiting *waiting, const char *condition)
{
	int r = look_for_feed(waiting);

	(void)fprintf(stderr, "Error: timed out waiting for %s of %s%s%s\n", condition,
		waiting->feed, r < 0 ? ": " : "", r < 0 ? kinf_error(waiting->kinf) : "");
}

static bool is_condition(const char *text)
{
	return !text || !strcmp(text, "synced") || !strcmp(text, "live") ||
		(!strncmp(text, "rv=", 3) && text[3]) || (!strncmp(text, "object=", 7) && text[7]);
}

int command_wait(int argc, char **argv)
{
	struct wait_args args = {0};
	struct config_flags flags = {0};
	struct waiting waiting = {0};
	int first;
	const struct options_group groups[] = {
		{"Options", wait_options, ARRAY_SIZE(wait_options), &args},
		config_common_options(&flags),
	};
	const struct options options = {"kinf wait", "FEED", "Waits until a condition holds.",
		groups, ARRAY_SIZE(groups), false};
	int r = options_parse(&options, argc, argv, &first);

	if (r == 0 && argc - first != 1)
		r = options_bad(&options, "one feed is wanted");
	if (r == 0 && !is_condition(args.condition))
		r = options_bad(&options, "--for '%s': synced, live, rv=N or object=NS/NAME",
			args.condition);
	if (r != 0)
		return command_usage(&options, r);
	uint64_t end_ns = args.timeout_ns ? proc_monotonic_ns() + args.timeout_ns : UINT64_MAX;
	waiting.feed = argv[first];
	if (command_open_until(&flags, end_ns, &waiting.kinf) < 0)
		return PROC_FAILED;
	if (end_ns == UINT64_MAX)
		note_missing(&waiting);
	r = wait_for(&waiting, &args, end_ns);
	if (r == ERR_TIMEOUT)
		say_timeout(&waiting, args.condition ? args.condition : "synced");
	else if (r < 0)
		(void)command_fail_kinf(waiting.kinf);
	kinf_snapshot_close(&waiting.snapshot);
	kinf_close(&waiting.kinf);
	return r < 0 ? PROC_FAILED : PROC_OK;
}
