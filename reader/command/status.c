/* SPDX-License-Identifier: Apache-2.0 */
/* kinf status [-o json]: the command, and the status as JSON. */
#include "reader/command/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/daemon/faults.h"
#include "common/err.h"
#include "common/output.h"
#include "common/text.h"
#include "common/value/json.h"
#include "reader/command/command.h"
#include "reader/command/print.h"
#include "reader/handle.h"

struct status_args {
	const char *output;
	bool check;
	uint64_t max_stale_ns;
};

static const struct option_spec status_options[] = {
	{'o', "output", OPTION_TEXT, offsetof(struct status_args, output), "FORMAT",
		"text or json", "text|json"},
	{0, "check", OPTION_FLAG, offsetof(struct status_args, check), NULL,
		"print one line, and exit with 1 unless both daemons work, and kinf-serve if it is "
		"to run, there are feeds, and every one is live"},
	{0, "max-staleness", OPTION_DURATION, offsetof(struct status_args, max_stale_ns), "D",
		"with --check: also unless each feed's last contact was at most D ago"},
};

/* ---- JSON ------------------------------------------------------------------------------------ */

/* A path may hold any bytes: those that are no UTF-8 become U+FFFD, because JSON has no others. */
static void status_json_text(struct buf *out, const char *before, const char *text)
{
	CLEANUP(buf_release) struct buf valid = BUF_INIT;

	buf_str(out, before);
	text_put_valid(bytes_str(text), &valid);
	json_write_string(buf_bytes(&valid), out);
}

static void status_json_database(
	struct buf *out, const char *name, const struct status_database *database)
{
	buf_printf(out, ",\"%s\":", name);
	if (!database->open) {
		buf_str(out, "null");
		return;
	}
	buf_printf(out,
		"{\"generation\":%" PRIu32 ",\"usedBytes\":%" PRIu64 ",\"fileBytes\":%" PRIu64
		",\"mapBytes\":%" PRIu64 ",\"readers\":%" PRIu32 "}",
		database->generation, database->info.used_bytes, database->info.file_bytes,
		database->info.map_bytes, database->info.readers);
}

static void status_json_process(const struct status_process *process, struct buf *out)
{
	bool alive = process->known && process->alive;

	status_json_text(out, "{\"name\":", process->name);
	buf_printf(out, ",\"pid\":%d", alive ? (int)process->page.pid : 0);
	status_json_text(out, ",\"state\":", status_process_state(process));
	buf_printf(out, ",\"uptimeSeconds\":%" PRIu64 ",\"restarts\":%" PRIu32,
		process->uptime_seconds, process->restarts);
	if (process->usage_known)
		buf_printf(out,
			",\"cpuSeconds\":%.2f,\"residentBytes\":%" PRIu64 ",\"anonymousBytes\":%" PRIu64,
			process->cpu_seconds, process->memory.resident, process->memory.anonymous);
	status_json_text(out, ",\"lastError\":", process->known ? process->page.error : "");
	buf_str(out, ",\"counters\":{");
	for (size_t i = 0; i < STAT_MAX; i++) {
		status_json_text(out, i ? "," : "", stats_name((enum counter)i));
		buf_printf(out, ":%" PRIu64, process->counters[i]);
	}
	buf_str(out, "}}");
}

static void status_json_feed(const struct kinf_feed_info *feed, struct buf *out)
{
	status_json_text(out, "{\"name\":", feed->full_name);
	buf_printf(out, ",\"id\":%" PRIu32, feed->feed);
	status_json_text(out, ",\"resource\":", feed->resource);
	status_json_text(out, ",\"kind\":", feed->kind);
	status_json_text(out, ",\"namespace\":", feed->namespace_);
	status_json_text(out, ",\"state\":", feed->state);
	buf_printf(out, ",\"synced\":%s,\"objects\":%" PRIu64, feed->synced ? "true" : "false",
		feed->objects);
	status_json_text(out, ",\"resourceVersion\":", feed->resource_version);
	if (feed->last_contact_seconds < 0)
		buf_str(out, ",\"lastContactSeconds\":null");
	else
		buf_printf(out, ",\"lastContactSeconds\":%.3f", feed->last_contact_seconds);
	buf_printf(out, ",\"event\":%" PRIu64 ",\"lag\":%" PRIu64, feed->event, feed->lag);
	status_json_text(out, ",\"lastError\":", feed->last_error);
	buf_printf(out,
		",\"lists\":%" PRIu64 ",\"watches\":%" PRIu64 ",\"events\":%" PRIu64
		",\"retries\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"listDone\":%" PRIu64
		",\"listTotal\":%" PRIu64 ",\"resyncSeconds\":%" PRIu64 ".%03" PRIu64 "}",
		feed->lists, feed->watches, feed->events, feed->retries, feed->bytes,
		feed->list_done, feed->list_total, feed->resync_ms / 1000, feed->resync_ms % 1000);
}

int status_json(const struct store_status *s, struct buf *out)
{
	status_json_text(out, "{\"store\":{\"path\":", s->path);
	status_json_text(out, ",\"id\":", s->id);
	status_json_text(out, ",\"uuid\":", s->uuid);
	buf_printf(out,
		",\"copy\":%s,\"lastEvent\":%" PRIu64 ",\"taken\":%" PRIu64 ",\"horizon\":%" PRIu64,
		s->copy ? "true" : "false", s->last_event, s->taken, s->horizon);
	status_json_database(out, "journal", &s->journal);
	status_json_database(out, "index", &s->index);
	if (s->disk_known)
		buf_printf(out, ",\"diskFreeBytes\":%" PRIu64, s->disk_free);
	status_json_text(out, ",\"lastError\":", s->error);
	if (s->processes[STATUS_SERVE].alive)
		status_json_text(out, ",\"serveAddresses\":", s->addresses);
	buf_str(out, "},\"processes\":[");
	for (size_t i = 0; i < s->n_processes; i++) {
		buf_str(out, i ? "," : "");
		status_json_process(&s->processes[i], out);
	}
	buf_str(out, "],\"feeds\":[");
	for (size_t i = 0; i < s->n_feeds; i++) {
		buf_str(out, i ? "," : "");
		status_json_feed(&s->feeds[i], out);
	}
	buf_str(out, "],\"readers\":[");
	for (size_t i = 0; i < s->n_readers; i++) {
		buf_str(out, i ? "," : "");
		buf_printf(out, "{\"pid\":%d", (int)s->readers[i].pid);
		status_json_text(out, ",\"name\":", s->readers[i].name);
		buf_printf(out,
			",\"uid\":%" PRIu32 ",\"slots\":%" PRIu32 ",\"snapshots\":%" PRIu32
			",\"transactionsBehind\":%" PRIu64 ",\"oldFiles\":%" PRIu32,
			s->readers[i].uid, s->readers[i].slots, s->readers[i].snapshots, s->readers[i].behind,
			s->readers[i].old_files);
		status_json_text(out, ",\"pinFile\":", s->readers[i].pin_file ? s->readers[i].pin_file : "");
		buf_str(out, "}");
	}
	buf_str(out, "],\"cursors\":[");
	for (size_t i = 0; i < s->n_cursors; i++) {
		const struct status_cursor *cursor = &s->cursors[i];
		uint64_t now = proc_realtime_ns(); /* may have been set back since */
		double age = now > cursor->written_ns ? (double)(now - cursor->written_ns) / 1e9 : 0;

		status_json_text(out, i ? ",{\"name\":" : "{\"name\":", cursor->name);
		buf_printf(out,
			",\"feeds\":%zu,\"event\":%" PRIu64 ",\"ageSeconds\":%.3f,\"lapsed\":%s}",
			cursor->feeds, cursor->event, age, cursor->lapsed ? "true" : "false");
	}
	buf_str(out, "]}\n");
	return buf_error(out);
}

/* ---- judging --------------------------------------------------------------------------------- */

/* Finds the first thing that is wrong: with ANY, that no feed is live; else any process or feed that does not work, or
 * that there is no feed. Returns false if there is none. */
static bool status_find_fault(
	const struct store_status *s, bool any, double limit_seconds, char *text, size_t size)
{
	const struct kinf_feed_info *fault = NULL;
	size_t live = 0, stale = 0;

	for (size_t i = 0; i < s->n_processes && !any; i++) {
		const struct status_process *process = &s->processes[i];

		if (process->responding)
			continue;
		const char *failure = process->known && !process->alive ? process_failure(&process->page) : "";
		(void)snprintf(text, size, "%s: %s%s%s", process->name, status_process_state(process), *failure ? ": " : "", failure);
		return true;
	}
	for (size_t i = 0; i < s->n_feeds; i++) {
		const struct kinf_feed_info *feed = &s->feeds[i];
		bool is_live = strcmp(feed->state, "live") == 0;
		bool is_fresh = limit_seconds <= 0 || (feed->last_contact_seconds >= 0 &&
			feed->last_contact_seconds <= limit_seconds);

		live += is_live;
		stale += is_live && !is_fresh;
		if (!fault && !(is_live && is_fresh))
			fault = feed;
	}
	if (s->n_feeds == 0) {
		/* The reflector may watch feeds also while nothing can be read. */
		bool error_says_it = *s->error && (s->damaged || !s->journal.open);

		(void)snprintf(text, size, "%s%s%.500s", error_says_it ? "" : "nothing is watched yet",
			*s->error && !error_says_it ? ": " : "", s->error);
		return true;
	}
	if (!fault || (any && live))
		return false;
	const char *in = fault->namespace_;
	if (strcmp(fault->state, "live") == 0)
		(void)snprintf(text, size, "%s%s%s: the last contact was longer than %gs ago",
			fault->full_name, *in ? " in " : "", in, limit_seconds < 1e-6 ? 0 : limit_seconds);
	else
		(void)snprintf(text, size, "%s%s%s: %s%s%s", fault->full_name, *in ? " in " : "", in,
			fault->state, *fault->last_error ? ": " : "", fault->last_error);
	size_t others = s->n_feeds - live + stale - 1;
	size_t used = strlen(text);
	if (others)
		(void)snprintf(text + used, size - used, " (and %zu other%s)", others,
			others == 1 ? "" : "s");
	return true;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Returns whether the configuration asks for kinf-serve. A store that was named alone may be another one
 * than the configuration's. */
bool status_is_serve_configured(const struct config_flags *flags)
{
	CLEANUP(config_free) struct config *config = NULL;

	if (flags->store && !flags->file)
		return false;
	int r = config_load(flags, &config);
	err_ignore(r, "the status is reported also without a configuration");
	return r == 0 && config->serve.enabled;
}

int command_status(int argc, char **argv)
{
	/* Kept for the life of the process: the handler of memory faults names it. */
	static char *directory;
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
	r = command_store(&flags, &directory);
	if (r < 0)
		return command_fail(r);
	faults_catch("kinf", directory);
	r = kinf_open_checked(directory, NULL, NULL, true, &kinf); /* what is good of a damaged copy is shown */
	if (!kinf)
		return command_fail(r);
	CLEANUP(status_release) struct store_status status;
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	int gathered = status_gather(kinf, status_is_serve_configured(&flags), &status);
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
	/* The status is printed also if the store was refused: it then says why. */
	if (gathered < 0)
		(void)fprintf(stderr, "Error: %s\n", status.error);
	else if (args.check && gathered > 0)
		(void)fprintf(stderr, "Error: %s\n", status.error);
	else if (faulty)
		(void)fprintf(
			stderr, "Error: %s%s\n", args.check ? "" : "no feed is live: ", fault);
	return gathered < 0 || faulty || (args.check && gathered > 0) ? PROC_FAILED : PROC_OK;
}
