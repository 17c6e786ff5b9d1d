/* SPDX-License-Identifier: Apache-2.0 */
/* kinf status [-o json] [--check]: the work of a store and its daemons. kinf metrics: the same for
 * Prometheus. */
#include <stdio.h>
#include <string.h>

#include "command/command.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/output.h"
#include "print/status/status.h"
#include "reader/handle.h"

struct status_args {
	const char *output;
	bool check;
	uint64_t max_stale_ns;
};

static const struct option_spec status_options[] = {
	{'o', "output", OPTION_WORD, offsetof(struct status_args, output), "FORMAT", "text or json",
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

/* ---- the commands ------------------------------------------------------- */

int status_take(
	const struct config_flags *flags, struct kinf **ret_kinf, struct store_status *ret_status)
{
	CLEANUP(config_free) struct config *config = NULL;
	const char *directory;
	int r = command_use_store(flags, &directory);

	*ret_kinf = NULL;
	if (r < 0)
		return r;
	/* A store named alone may be another one than the configuration's. */
	if (!flags->store || flags->file)
		err_ignore(config_load(flags, &config),
			"the status is reported also without a configuration");
	r = kinf_open_checked(directory, NULL, NULL, true, ret_kinf);
	return *ret_kinf ? status_gather(*ret_kinf, config && config->serve.enabled, ret_status)
			 : r;
}

/* Judges STATUS, after its parts were printed; GATHERED is status_take()'s result. Returns the exit
 * status. */
static int status_end(
	const struct status_args *args, const struct store_status *status, int gathered)
{
	char fault[800] = "";
	bool faulty = false;

	/* A refused store has a status with the reason. */
	if (gathered < 0 || (args->check && gathered > 0)) {
		(void)fprintf(stderr, "Error: %s\n", status->error);
		return PROC_FAILED;
	}
	if (!command_is_json(args->output))
		faulty = status_find_fault(status, !args->check, (double)args->max_stale_ns / 1e9,
			fault, sizeof(fault));
	if (faulty)
		(void)fprintf(
			stderr, "Error: %s%s\n", args->check ? "" : "no feed is live: ", fault);
	else if (args->check)
		(void)printf("%zu feed%s live\n", status->n_feeds, status->n_feeds == 1 ? "" : "s");
	return faulty ? PROC_FAILED : PROC_OK;
}

int command_status(int argc, char **argv)
{
	struct status_args args = {.max_stale_ns = STALENESS_ANY};
	CLEANUP(kinf_close) struct kinf *kinf = NULL;
	CLEANUP(status_release) struct store_status status = {.n_feeds = 0};
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	struct command_line line = {
		.options = {"kinf status", "", "Prints processes, feeds, store sizes and readers."},
		.groups = {{"Options", status_options, ARRAY_SIZE(status_options), &args}},
	};
	int r = command_parse(&line, argc, argv);

	args.max_stale_ns = command_staleness(args.max_stale_ns);
	if (r == 0 && args.check && args.output)
		r = options_bad(&line.options, "--check and --output exclude each other");
	if (r == 0 && args.max_stale_ns && !args.check)
		r = options_bad(&line.options, "--max-staleness needs --check");
	if (r != 0)
		return command_usage(&line, r);
	int gathered = status_take(&line.flags, &kinf, &status);
	if (!kinf)
		return command_fail(gathered);
	if (!args.check)
		r = command_is_json(args.output) ? status_json(&status, &out)
						 : status_text(&status, &out);
	if (r == 0)
		r = output_text(&out);
	return r < 0 ? command_fail(r) : status_end(&args, &status, gathered);
}

int command_metrics(int argc, char **argv)
{
	CLEANUP(kinf_close) struct kinf *kinf = NULL;
	CLEANUP(status_release) struct store_status status = {.n_feeds = 0};
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	struct command_line line = {
		.options = {"kinf metrics", "",
			"Prints the counters of the daemons, and the state of store, feeds, "
			"readers and cursors, in Prometheus' text format, for instance for the "
			"textfile collector of its node exporter. Works while the daemons run and "
			"without them."},
	};
	int r = command_parse(&line, argc, argv);

	if (r != 0)
		return command_usage(&line, r);
	int gathered = status_take(&line.flags, &kinf, &status);
	if (!kinf)
		return command_fail(gathered);
	/* An unreadable store has metrics that say so. */
	r = metrics_text(&status, false, &out);
	if (r == 0)
		r = output_text(&out);
	if (r < 0)
		return command_fail(r);
	if (gathered >= 0 && !kinf->is_damaged)
		return PROC_OK;
	(void)fprintf(stderr, "Error: %s\n", status.error);
	return PROC_FAILED;
}
