/* SPDX-License-Identifier: Apache-2.0 */
/* kinf wait FEED [--for synced|live|rv=N|object=NS/NAME] [--timeout D] */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command/command.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "reader/handle.h"

#define POLL_MS 50
#define LOOK_MS 1000       /* for waits in the library */
#define NEVER   UINT64_MAX /* no --timeout */

struct wait_args {
	const char *condition;
	uint64_t timeout_ns;
};

static const struct option_spec wait_options[] = {
	{0, "for", OPTION_TEXT, offsetof(struct wait_args, condition), "CONDITION",
		"synced (default), live, rv=RESOURCEVERSION or object=NAMESPACE/NAME",
		"synced|live|rv=|object="},
	{0, "timeout", OPTION_DURATION, offsetof(struct wait_args, timeout_ns), "D",
		"give up after this long; 0s: look once; default: never"},
};

struct waiting {
	struct kinf *kinf;
	struct kinf_snapshot *snapshot;
	const char *feed;
	const char *argument; /* of the condition, after "=" */
	bool is_missing;      /* no such feed, already reported */
};

static int wait_clear_live(void *arg, const struct kinf_feed_info *info)
{
	bool *live = arg;

	*live = *live && strcmp(info->state, "live") == 0;
	return 0;
}

/* Returns 1 if all feeds are live or, if LIVE is false, if the object exists; 0 if not; a negative
 * error. */
static int wait_holds(struct waiting *waiting, bool live)
{
	struct kinf_object object;
	bool holds = true;
	int r;

	if (live) {
		r = kinf_feed_status(waiting->snapshot, waiting->feed, wait_clear_live, &holds);
	} else {
		AUTO_FREE char *copy = strdup(waiting->argument);
		char *slash = copy ? strchr(copy, '/') : NULL;
		struct kinf_feed_info info = {.namespaced = 0};

		if (!copy)
			return err_set(-ENOMEM, "copying the key of an object");
		if (!slash && command_first_feed(waiting->snapshot, waiting->feed, &info) == 0 &&
			info.namespaced)
			return kinf_result(
				waiting->kinf, err_say(ERR_SYNTAX,
						       "object=%s: %s are in namespaces: write "
						       "object=NAMESPACE/%s",
						       copy, waiting->feed, copy));
		if (slash)
			*slash = '\0';
		r = kinf_get(waiting->snapshot, waiting->feed, slash ? copy : NULL,
			slash ? slash + 1 : copy, &object);
		holds = r == KINF_FOUND;
	}
	return r == KINF_NO_FEED ? 0 : r < 0 ? r : holds;
}

/* Checks the condition; waits for it a little where the library can. Keeps no snapshot. Returns: 1;
 * 0: not yet; a negative error. */
static int wait_look(struct waiting *waiting, const char *condition, uint64_t end_ns)
{
	int left = proc_ms_until(end_ns), ms = left < 0 || left > LOOK_MS ? LOOK_MS : left;
	const char *equals = strchr(condition, '=');
	int r;

	waiting->argument = equals ? equals + 1 : "";
	if (!strcmp(condition, "synced"))
		r = kinf_wait_synced(waiting->kinf, &waiting->feed, 1, ms);
	else if (!strncmp(condition, "rv=", 3))
		r = kinf_wait_rv(waiting->kinf, waiting->feed, waiting->argument, ms);
	else {
		r = kinf_snapshot_take(waiting->kinf, &waiting->snapshot);
		r = r == 0 ? wait_holds(waiting, !equals) : r < 0 ? r : 0;
		if (waiting->snapshot)
			(void)kinf_snapshot_reset(waiting->snapshot); /* the next turn renews it */
		return r;
	}
	return r == KINF_TIMEOUT || r == KINF_NO_FEED ? 0 : r < 0 ? r : 1;
}

/* Waits for a missing feed. Its name may be misspelt, or the feed removed: a caller without a
 * timeout is told, once each time. */
static void wait_note_missing(struct waiting *waiting)
{
	struct kinf_feed_info info;
	char why[COMMAND_TEXT_SIZE];
	int r = kinf_snapshot_take(waiting->kinf, &waiting->snapshot);

	if (r == 0)
		r = command_first_feed(waiting->snapshot, waiting->feed, &info);
	if (r == KINF_NO_FEED && !waiting->is_missing) {
		command_explain(waiting->kinf, waiting->feed, r, why);
		(void)fprintf(stderr, "note: waiting; %s\n", why);
	}
	waiting->is_missing = r == KINF_NO_FEED;
	if (waiting->snapshot)
		(void)kinf_snapshot_reset(waiting->snapshot); /* not held while waiting */
}

struct late {
	const char *object; /* NAMESPACE/NAME, if waited for */
	struct kinf_feed_info info;
};

/* Chooses the feed to report: the first unlisted or not live, else the first, of those that may
 * hold the object. */
static int wait_find_late(void *arg, const struct kinf_feed_info *info)
{
	struct late *late = arg;
	bool is_late = !info->synced || strcmp(info->state, "live") != 0;
	size_t size = strlen(info->namespace_);

	if (size && late->object &&
		(strncmp(late->object, info->namespace_, size) != 0 || late->object[size] != '/'))
		return 0;
	if (is_late || !late->info.size)
		late->info = *info;
	return is_late;
}

/* Adds the reason, as far as known: no store, no feed, or the state of the feed. */
static int wait_timed_out(struct waiting *waiting, const char *condition)
{
	struct late late = {
		.object = strncmp(condition, "object=", 7) == 0 ? waiting->argument : NULL};
	const struct kinf_feed_info *info = &late.info;
	const char *in = info->namespace_;
	char why[COMMAND_TEXT_SIZE] = "";
	int r = kinf_snapshot_take(waiting->kinf, &waiting->snapshot);

	if (r == 0)
		r = kinf_feed_status(waiting->snapshot, waiting->feed, wait_find_late, &late);
	if (info->size)
		(void)snprintf(why, sizeof(why),
			"%s%s%s state is %s, with %llu objects at resourceVersion %s%s%s",
			*in ? "in " : "its", in, *in ? " the" : "", info->state,
			(unsigned long long)info->objects,
			*info->resource_version ? info->resource_version : "(none yet)",
			*info->last_error ? ": " : "", info->last_error);
	else if (r != 0)
		command_explain(waiting->kinf, waiting->feed, r, why);
	(void)fprintf(stderr, "Error: timed out waiting for %s of %s%s%s\n", condition,
		waiting->feed, *why ? ": " : "", why);
	return PROC_FAILED;
}

int command_wait(int argc, char **argv)
{
	struct wait_args args = {.condition = "synced", .timeout_ns = NEVER};
	struct waiting waiting = {0};
	struct command_line line = {
		.options = {"kinf wait", "FEED", "Waits until a condition holds."},
		.groups = {{"Options", wait_options, ARRAY_SIZE(wait_options), &args}},
		.takes = {1, 1, "write one feed"},
	};
	int r = command_parse(&line, argc, argv);
	const char *condition = args.condition;

	if (r == 0 && strchr(line.operands[0], ','))
		r = options_bad(
			&line.options, "'%s': wait for one feed at a time", line.operands[0]);
	const char *slash = r == 0 ? strchr(line.operands[0], '/') : NULL;
	if (slash)
		r = options_bad(&line.options,
			"'%s': wait for a feed; for one object write %.*s --for "
			"object=NAMESPACE/%s",
			line.operands[0], (int)(slash - line.operands[0]), line.operands[0],
			slash + 1);
	if (r == 0 && strcmp(condition, "synced") != 0 && strcmp(condition, "live") != 0 &&
		(strncmp(condition, "rv=", 3) != 0 || !condition[3]) &&
		(strncmp(condition, "object=", 7) != 0 || !condition[7]))
		r = options_bad(&line.options,
			"--for '%s': allowed are synced, live, rv=N and object=NS/NAME", condition);
	if (r == 0 && strncmp(condition, "rv=", 3) == 0)
		r = command_check_rv(condition + 3);
	if (r != 0)
		return command_usage(&line, r);
	uint64_t now = proc_monotonic_ns();
	uint64_t end_ns = args.timeout_ns < NEVER - now ? now + args.timeout_ns : NEVER;
	waiting.feed = line.operands[0];
	if (command_open_until(&line.flags, end_ns, &waiting.kinf) < 0)
		return PROC_FAILED;
	for (;;) {
		static const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};

		r = wait_look(&waiting, condition, end_ns);
		if ((r != 0 && !command_may_pass(r)) || proc_monotonic_ns() >= end_ns)
			break;
		if (r != 0)
			kinf_snapshot_close(&waiting.snapshot);
		if (end_ns == NEVER)
			wait_note_missing(&waiting);
		(void)nanosleep(&pause, NULL);
	}
	int status = r > 0    ? PROC_OK
		     : r == 0 ? wait_timed_out(&waiting, condition)
			      : command_fail_read(waiting.kinf, waiting.feed, r);
	kinf_snapshot_close(&waiting.snapshot);
	kinf_close(&waiting.kinf);
	return status;
}
