/* SPDX-License-Identifier: Apache-2.0 */
/* The status as JSON. */
#include "print/status/status.h"

#include <inttypes.h>

#include "common/cleanup.h"
#include "common/proc.h"
#include "common/text/text.h"
#include "common/value/json.h"

/* A path may hold any bytes: invalid UTF-8 becomes U+FFFD, as JSON demands. */
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
		database->info.map_bytes, database->readers);
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
			",\"cpuSeconds\":%.2f,\"residentBytes\":%" PRIu64
			",\"anonymousBytes\":%" PRIu64,
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
			s->readers[i].uid, s->readers[i].slots, s->readers[i].snapshots,
			s->readers[i].behind, s->readers[i].old_files);
		status_json_text(
			out, ",\"pinFile\":", s->readers[i].pin_file ? s->readers[i].pin_file : "");
		buf_str(out, "}");
	}
	buf_str(out, "],\"cursors\":[");
	for (size_t i = 0; i < s->n_cursors; i++) {
		const struct status_cursor *cursor = &s->cursors[i];
		uint64_t now = proc_realtime_ns(); /* may have been set back since */
		double age =
			now > cursor->written_ns ? (double)(now - cursor->written_ns) / 1e9 : 0;

		status_json_text(out, i ? ",{\"name\":" : "{\"name\":", cursor->name);
		buf_printf(out,
			",\"feeds\":%zu,\"event\":%" PRIu64 ",\"ageSeconds\":%.3f,\"lapsed\":%s}",
			cursor->feeds, cursor->event, age, cursor->lapsed ? "true" : "false");
	}
	buf_str(out, "]}\n");
	return buf_error(out);
}
