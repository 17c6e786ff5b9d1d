/* SPDX-License-Identifier: Apache-2.0 */
/* kinf status [-o json] [--check]: the work of a store and its daemons. */
#include <stdio.h>
#include <string.h>

#include "command/command.h"
#include "common/cleanup.h"
#include "common/output.h"
#include "print/status/status.h"
#include "reader/handle.h"

struct status_args {
	const char *output;
	bool check;
	uint64_t max_stale_ns;
};

static const struct option_spec status_options[] = {
	{'o', "output", OPTION_TEXT, offsetof(struct status_args, output), "FORMAT", "text or json",
		"text|json"},
	{0, "check", OPTION_FLAG, offsetof(struct status_args, check), NULL,
		"print one line, and exit with 1 unless both daemons work, and kinf-serve if it is "
		"to run, there are feeds, and every one is live"},
	{0, "max-staleness", OPTION_DURATION, offsetof(struct status_args, max_stale_ns), "D",
		"with --check: also unless each feed's last contact was at most D ago"},
};

/* ---- judging ------------------------------------------------------------ */

/* Finds the first fault: with ANY, that no feed is live; else a process or feed that does not work,
 * or a store without feeds. Returns false if there is none. */
static bool status_find_fault(
	const struct store_status *s, bool any, double limit_seconds, char *text, size_t size)
{
	const struct kinf_feed_info *fault = NULL;
	size_t live = 0, stale = 0;

	for (size_t i = 0; i < s->n_processes && !any; i++) {
		const struct status_process *process = &s->processes[i];

		if (process->responding)
			continue;
		const char *failure =
			process->known && !process->alive ? process_failure(&process->page) : "";
		(void)snprintf(text, size, "%s: %s%s%s", process->name,
			status_process_state(process), *failure ? ": " : "", failure);
		return true;
	}
	for (size_t i = 0; i < s->n_feeds; i++) {
		const struct kinf_feed_info *feed = &s->feeds[i];
		bool is_live = strcmp(feed->state, "live") == 0;
		bool is_fresh =
			limit_seconds <= 0 || (feed->last_contact_seconds >= 0 &&
						      feed->last_contact_seconds <= limit_seconds);

		live += is_live;
		stale += is_live && !is_fresh;
		if (!fault && !(is_live && is_fresh))
			fault = feed;
	}
	if (s->n_feeds == 0) {
		/* The reflector may watch feeds while nothing is readable. */
		bool error_says_it = *s->error && (s->damaged || !s->journal.open);

		(void)snprintf(text, size, "%s%s%.500s",
			error_says_it ? "" : "nothing is watched yet",
			*s->error && !error_says_it ? ": " : "", s->error);
		return true;
	}
	if (!fault || (any && live))
		return false;
	const char *in = fault->namespace_;
	if (strcmp(fault->state, "live") == 0)
		(void)snprintf(text, size, "%s%s%s: the last contact was longer than %gs ago",
			fault->full_name, *in ? " in " : "", in,
			limit_seconds < 1e-6 ? 0 : limit_seconds);
	else
		(void)snprintf(text, size, "%s%s%s: %s%s%s", fault->full_name, *in ? " in " : "",
			in, fault->state, *fault->last_error ? ": " : "", fault->last_error);
	size_t others = s->n_feeds - live + stale - 1;
	size_t used = strlen(text);
	if (others)
		(void)snprintf(text + used, size - used, " (and %zu other%s)", others,
			others == 1 ? "" : "s");
	return true;
}

/* ---- the command -------------------------------------------------------- */

int command_status(int argc, char **argv)
{
	const char *directory;
	struct status_args args = {.max_stale_ns = STALENESS_ANY};
	struct config_flags flags = {0};
	CLEANUP(kinf_close) struct kinf *kinf = NULL;
	const struct options_group groups[] = {
		{"Options", status_options, ARRAY_SIZE(status_options), &args},
		config_common_options(&flags),
	};
	const struct options options = {"kinf status", "",
		"Prints processes, feeds, store sizes and readers.", groups, ARRAY_SIZE(groups),
		false};
	int r = options_parse_all(&options, argc, argv);

	args.max_stale_ns = command_staleness(args.max_stale_ns);
	bool json = r == 0 && args.output && strcmp(args.output, "json") == 0;

	if (r == 0 && args.output && !json && strcmp(args.output, "text") != 0)
		r = options_bad(&options, "output '%s': allowed are text, json", args.output);
	if (r == 0 && args.check && args.output)
		r = options_bad(&options, "--check and --output exclude each other");
	if (r == 0 && args.max_stale_ns && !args.check)
		r = options_bad(&options, "--max-staleness needs --check");
	if (r != 0)
		return command_usage(&options, r);
	r = command_use_store(&flags, &directory);
	if (r < 0)
		return command_fail(r);
	r = kinf_open_checked(
		directory, NULL, NULL, true, &kinf); /* the good part of a damaged copy is shown */
	if (!kinf)
		return command_fail(r);
	CLEANUP(status_release) struct store_status status;
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	int gathered = status_gather(kinf, command_has_serve(&flags), &status);
	r = 0;
	if (!args.check)
		r = json ? status_json(&status, &out) : status_text(&status, &out);
	char fault[800];
	bool faulty = gathered >= 0 && !json &&
		      status_find_fault(&status, !args.check, (double)args.max_stale_ns / 1e9,
			      fault, sizeof(fault));
	if (args.check && gathered == 0 && !faulty)
		buf_printf(
			&out, "%zu feed%s live\n", status.n_feeds, status.n_feeds == 1 ? "" : "s");
	if (r == 0)
		r = output_text(&out);
	if (r < 0)
		return command_fail(r);
	/* A refused store has a status with the reason. */
	if (gathered < 0)
		(void)fprintf(stderr, "Error: %s\n", status.error);
	else if (args.check && gathered > 0)
		(void)fprintf(stderr, "Error: %s\n", status.error);
	else if (faulty)
		(void)fprintf(
			stderr, "Error: %s%s\n", args.check ? "" : "no feed is live: ", fault);
	return gathered < 0 || faulty || (args.check && gathered > 0) ? PROC_FAILED : PROC_OK;
}
