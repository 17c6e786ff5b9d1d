/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status as text for Prometheus. The counters of the daemons are those of stats.def:
 * "journal.commits" becomes kinf_journal_commits_total, and "serve.watches", a level,
 * kinf_serve_watches.
 */
#include "print/status/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/bytes.h"

/* ---- the format --------------------------------------------------------- */

static void metrics_head(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void metrics_label(struct buf *out, const char *before, const char *name, const char *value)
{
	buf_printf(out, "%s%s=\"", before, name);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			buf_byte(out, '\\');
		if (*value == '\n')
			buf_str(out, "\\n");
		else
			buf_byte(out, (uint8_t)*value);
	}
	buf_byte(out, '"');
}

/* ---- processes ---------------------------------------------------------- */

static void metrics_processes(const struct store_status *status, struct buf *out)
{
	static const struct {
		const char *name, *type, *help;
	} rows[] = {
		{"kinf_process_up", "gauge", "1 if the process runs and responds"},
		{"kinf_process_restarts_total", "counter",
			"starts since all daemons were last stopped, less one"},
		{"kinf_process_uptime_seconds", "gauge",
			"time since the process started; 0 if it does not run"},
	};

	for (size_t row = 0; row < ARRAY_SIZE(rows); row++) {
		metrics_head(out, rows[row].name, rows[row].type, rows[row].help);
		for (size_t i = 0; i < status->n_processes; i++) {
			const struct status_process *p = &status->processes[i];
			const uint64_t values[] = {p->responding, p->restarts, p->uptime_seconds};

			buf_str(out, rows[row].name);
			metrics_label(out, "{", "process", p->name);
			buf_printf(out, "} %" PRIu64 "\n", values[row]);
		}
	}
}

static const struct {
	const char *name, *help;
} metrics_counters[STAT_MAX] = {
#define STAT(symbol, name, text) {name, text},
#include "common/stats.def"
#undef STAT
};

static void metrics_of_processes(
	const struct store_status *status, bool without_levels, struct buf *out)
{
	for (size_t counter = 0; counter < STAT_MAX; counter++) {
		/* Lists, watches and events are counted for each feed. */
		bool of_feeds =
			counter == STAT_LISTS || counter == STAT_WATCHES || counter == STAT_EVENTS;
		bool level = strstr(metrics_counters[counter].help, "(a level)") != NULL;
		char name[96] = "";

		if (of_feeds || (level && without_levels))
			continue;
		(void)snprintf(name, sizeof(name), "kinf_%s%s", metrics_counters[counter].name,
			level ? "" : "_total");
		for (char *dot = strchr(name, '.'); dot; dot = strchr(dot, '.'))
			*dot = '_';
		metrics_head(
			out, name, level ? "gauge" : "counter", metrics_counters[counter].help);
		for (size_t i = 0; i < status->n_processes; i++) {
			if (!status->processes[i].known)
				continue;
			buf_str(out, name);
			metrics_label(out, "{", "process", status->processes[i].name);
			buf_printf(out, "} %" PRIu64 "\n", status->processes[i].counters[counter]);
		}
	}
}

/* ---- the store ---------------------------------------------------------- */

static void metrics_number(struct buf *out, const char *name, const char *help, uint64_t value)
{
	metrics_head(out, name, "gauge", help);
	buf_printf(out, "%s %" PRIu64 "\n", name, value);
}

static void metrics_databases(const struct store_status *status, struct buf *out)
{
	const struct status_database *databases[] = {&status->journal, &status->index};
	static const char *const names[] = {"journal", "index"};
	static const struct {
		const char *name, *help;
	} rows[] = {
		{"kinf_store_used_bytes", "pages of the database in use"},
		{"kinf_store_file_bytes", "length of the database's file"},
		{"kinf_store_map_bytes", "mapSize, which the database can't outgrow"},
	};

	for (size_t row = 0; row < ARRAY_SIZE(rows); row++) {
		metrics_head(out, rows[row].name, "gauge", rows[row].help);
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			const struct env_info *info = &databases[i]->info;
			const uint64_t values[] = {
				info->used_bytes, info->file_bytes, info->map_bytes};

			if (databases[i]->open)
				buf_printf(out, "%s{database=\"%s\"} %" PRIu64 "\n", rows[row].name,
					names[i], values[row]);
		}
	}
}

static void metrics_cursors(const struct store_status *status, struct buf *out)
{
	static const struct {
		const char *name, *help;
	} rows[] = {
		{"kinf_cursor_event",
			"the cursor's follower has handled the events up to this one"},
		{"kinf_cursor_lapsed", "1 if the events after the cursor are no longer kept, so "
				       "that its follower begins again"},
	};

	for (size_t row = 0; row < ARRAY_SIZE(rows); row++) {
		metrics_head(out, rows[row].name, "gauge", rows[row].help);
		for (size_t i = 0; i < status->n_cursors; i++) {
			const struct status_cursor *cursor = &status->cursors[i];

			buf_str(out, rows[row].name);
			metrics_label(out, "{", "cursor", cursor->name);
			buf_printf(out, "} %" PRIu64 "\n", row ? cursor->lapsed : cursor->event);
		}
	}
}

static void metrics_store(const struct store_status *status, struct buf *out)
{
	uint64_t behind = 0, snapshots = 0;

	metrics_number(out, "kinf_store_error",
		"1 if something is wrong with the store or kinf.yaml: 'kinf status' says what",
		status->faulty);
	if (status->disk_known)
		metrics_number(out, "kinf_store_disk_free_bytes", "free on the store's disk",
			status->disk_free);
	metrics_databases(status, out);
	metrics_number(
		out, "kinf_store_last_event", "number of the newest event", status->last_event);
	metrics_number(out, "kinf_store_taken_event", "the index has the events up to this one",
		status->taken);
	metrics_number(out, "kinf_store_horizon_event", "the history after this event is complete",
		status->horizon);
	for (size_t i = 0; i < status->n_readers; i++) {
		snapshots += status->readers[i].snapshots;
		if (status->readers[i].behind > behind)
			behind = status->readers[i].behind;
	}
	metrics_number(out, "kinf_reader_processes", "processes that have the store open",
		status->n_readers);
	metrics_number(out, "kinf_reader_snapshots", "snapshots that they hold", snapshots);
	metrics_number(out, "kinf_reader_behind_transactions",
		"age of the oldest snapshot, in transactions since", behind);
}

/* ---- feeds -------------------------------------------------------------- */

enum metrics_feed_row {
	FEED_OBJECTS,
	FEED_LIVE,
	FEED_SYNCED_ONCE,
	FEED_CONTACT,
	FEED_LAG,
	FEED_LISTS,
	FEED_WATCHES,
	FEED_EVENTS,
	FEED_RETRIES,
	FEED_ROWS
};

static const struct {
	const char *name, *type, *help;
} metrics_feed_rows[FEED_ROWS] = {
	[FEED_OBJECTS] = {"kinf_feed_objects", "gauge", "objects of the feed"},
	[FEED_LIVE] = {"kinf_feed_live", "gauge",
		"1 if the feed is up to date and nothing is wrong"},
	[FEED_SYNCED_ONCE] = {"kinf_feed_synced", "gauge", "1 if the feed was listed once"},
	[FEED_CONTACT] = {"kinf_feed_last_contact_seconds", "gauge",
		"time since the last event, bookmark or list of the feed; absent if there was "
		"none"},
	[FEED_LAG] = {"kinf_feed_lag_events", "gauge", "events that the index has not taken yet"},
	[FEED_LISTS] = {"kinf_feed_lists_total", "counter", "lists that the API server accepted"},
	[FEED_WATCHES] = {"kinf_feed_watches_total", "counter",
		"watches that the API server accepted"},
	[FEED_EVENTS] = {"kinf_feed_events_total", "counter", "watch events read"},
	[FEED_RETRIES] = {"kinf_feed_retries_total", "counter", "attempts after a failure"},
};

static void metrics_feed(
	struct buf *out, enum metrics_feed_row row, const struct kinf_feed_info *feed)
{
	const double values[FEED_ROWS] = {
		[FEED_OBJECTS] = (double)feed->objects,
		[FEED_LIVE] = strcmp(feed->state, "live") == 0,
		[FEED_SYNCED_ONCE] = feed->synced,
		[FEED_CONTACT] = feed->last_contact_seconds,
		[FEED_LAG] = (double)feed->lag,
		[FEED_LISTS] = (double)feed->lists,
		[FEED_WATCHES] = (double)feed->watches,
		[FEED_EVENTS] = (double)feed->events,
		[FEED_RETRIES] = (double)feed->retries,
	};

	if (row == FEED_CONTACT && feed->last_contact_seconds < 0)
		return;
	buf_str(out, metrics_feed_rows[row].name);
	metrics_label(out, "{", "feed", feed->full_name);
	if (*feed->namespace_)
		metrics_label(out, ",", "namespace", feed->namespace_);
	buf_printf(out, "} %.15g\n", values[row]);
}

static void metrics_feeds(const struct store_status *status, struct buf *out)
{
	for (int row = 0; row < FEED_ROWS; row++) {
		metrics_head(out, metrics_feed_rows[row].name, metrics_feed_rows[row].type,
			metrics_feed_rows[row].help);
		for (size_t i = 0; i < status->n_feeds; i++)
			metrics_feed(out, (enum metrics_feed_row)row, &status->feeds[i]);
	}
	metrics_head(out, "kinf_feed_state", "gauge", "1 for the state that the feed is in");
	for (size_t i = 0; i < status->n_feeds; i++) {
		buf_str(out, "kinf_feed_state");
		metrics_label(out, "{", "feed", status->feeds[i].full_name);
		if (*status->feeds[i].namespace_)
			metrics_label(out, ",", "namespace", status->feeds[i].namespace_);
		metrics_label(out, ",", "state", status->feeds[i].state);
		buf_str(out, "} 1\n");
	}
}

int metrics_text(const struct store_status *status, bool without_levels, struct buf *out)
{
	metrics_head(out, "kinf_build_info", "gauge", "the version of kinf");
	buf_printf(out, "kinf_build_info{version=\"%s\"} 1\n", kinf_version());
	metrics_processes(status, out);
	metrics_store(status, out);
	metrics_cursors(status, out);
	metrics_feeds(status, out);
	metrics_of_processes(status, without_levels, out);
	return buf_error(out);
}
