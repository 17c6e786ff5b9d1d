/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a status for people. */
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/text/utf8.h"
#include "print/status/status.h"
#include "print/table/age.h"
#include "print/table/table.h"

void status_put_bytes(uint64_t n, struct buf *out)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double value = (double)n;
	size_t unit = 0;

	while (value >= 1024 && unit + 1 < ARRAY_SIZE(units)) {
		value /= 1024;
		unit++;
	}
	buf_printf(out, "%.*f %s", unit ? 1 : 0, value, units[unit]);
}

static void status_put_store(const struct store_status *s, struct buf *out)
{
	const struct status_database *const databases[] = {&s->journal, &s->index};

	char path[sizeof(s->path)];

	memcpy(path, s->path, sizeof(path));
	utf8_make_printable(path);
	buf_printf(out, "Store:   %s%s\n", path, s->copy ? " (a copy; no daemon writes it)" : "");
	for (size_t i = 0; i < ARRAY_SIZE(databases); i++) {
		const struct status_database *database = databases[i];

		buf_str(out, i ? "Index:   " : "Journal: ");
		if (!database->open) {
			buf_str(out, database->missing ? "none\n" : "not read, see Error\n");
			continue;
		}
		status_put_bytes(database->info.used_bytes, out);
		buf_str(out, " in use, file ");
		status_put_bytes(database->info.file_bytes, out);
		buf_printf(out, ", generation %" PRIu32 "\n", database->generation);
	}
	if (s->journal.open)
		buf_printf(out,
			"Events:  %" PRIu64 " in the journal, %" PRIu64
			" in the index, history from %" PRIu64 "\n",
			s->last_event, s->taken, s->horizon + 1);
	if (s->disk_known) {
		buf_str(out, "Disk:    ");
		status_put_bytes(s->disk_free, out);
		buf_str(out, " free\n");
	}
	if (s->error[0])
		buf_printf(out, "Error:   %s\n", s->error);
}

static int status_put_processes(const struct store_status *s, struct table *table, struct buf *out)
{
	static const char *const heads[] = {"PROCESS", "PID", "STATE", "UPTIME", "RESTARTS"};
	int r = 0;

	table_init(table, heads, ARRAY_SIZE(heads));
	for (size_t i = 0; r == 0 && i < s->n_processes; i++) {
		const struct status_process *p = &s->processes[i];
		bool alive = p->known && p->alive;
		char uptime[AGE_SIZE] = "-", pid[16] = "-";

		if (alive) {
			age_from_seconds(p->uptime_seconds, uptime);
			(void)snprintf(pid, sizeof(pid), "%" PRId32, p->page.pid);
		}
		r = table_print(table, out, "%s\t%s\t%s\t%s\t%" PRIu32, p->name, pid,
			status_process_state(p), uptime, p->restarts);
	}
	return r;
}

/* "Feeds: 62 (60 live, 1 gone, 1 forbidden)", the states in the order of their first feeds. */
static void status_put_feed_states(const struct store_status *s, struct buf *out)
{
	const struct status_process *serve = &s->processes[STATUS_SERVE];

	if (serve->known && serve->alive)
		buf_printf(out, "Serving: %" PRIu64 " connections, %" PRIu64 " watches at %s\n",
			serve->counters[STAT_SERVE_CONNECTIONS],
			serve->counters[STAT_SERVE_WATCHES],
			*s->addresses ? s->addresses : "no address yet");
	if (!s->n_feeds && !s->journal.open && !s->journal.missing) {
		buf_str(out, "Feeds:   not read, see Error");
		return;
	}
	buf_printf(out, "Feeds:   %zu", s->n_feeds);
	for (size_t i = 0; i < s->n_feeds; i++) {
		size_t same = 0, earlier = 0;

		for (size_t j = 0; j < s->n_feeds; j++) {
			bool equal = !strcmp(s->feeds[i].state, s->feeds[j].state);

			same += equal;
			earlier += equal && j < i;
		}
		if (!earlier)
			buf_printf(out, "%s%zu %s", i ? ", " : " (", same, s->feeds[i].state);
	}
	buf_str(out, s->n_feeds ? ")" : "");
}

static int status_put_feeds(const struct store_status *s, struct table *table, struct buf *out)
{
	static const char *const heads[] = {"FEED", "NAMESPACE", "STATE", "OBJECTS",
		"RESOURCEVERSION", "CONTACT", "LAG", "LISTS", "WATCHES", "EVENTS", "READ",
		"RETRIES", "ERROR"};
	CLEANUP(buf_release) struct buf read = BUF_INIT;
	int r = 0;

	status_put_feed_states(s, out);
	buf_str(out, s->n_feeds ? "\n\n" : "\n");
	table_init(table, heads, ARRAY_SIZE(heads));
	for (size_t i = 0; r == 0 && i < s->n_feeds; i++) {
		const struct kinf_feed_info *f = &s->feeds[i];
		char contact[AGE_SIZE] = "-";

		if (f->last_contact_seconds >= 0)
			age_from_seconds((uint64_t)f->last_contact_seconds, contact);
		buf_reset(&read);
		status_put_bytes(f->bytes, &read);
		r = buf_error(&read);
		if (r < 0)
			break;
		r = table_print(table, out,
			"%s\t%s\t%s\t%" PRIu64 "\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64
			"\t%" PRIu64 "\t%s\t%" PRIu64 "\t%s",
			f->full_name, f->namespace_, f->state, f->objects, f->resource_version,
			contact, f->lag, f->lists, f->watches, f->events, buf_cstr(&read),
			f->retries, f->last_error);
	}
	return r;
}

static int status_put_readers(const struct store_status *s, struct table *table, struct buf *out)
{
	static const char *const heads[] = {
		"READER", "USER", "PID", "SNAPSHOTS", "BEHIND", "PIN FILE"};
	int r = 0;

	table_init(table, heads, ARRAY_SIZE(heads));
	for (size_t i = 0; r == 0 && i < s->n_readers; i++) {
		const struct status_reader *reader = &s->readers[i];
		const struct passwd *user = getpwuid(reader->uid);
		char name[64], behind[24] = "old file";

		(void)snprintf(name, sizeof(name), "%" PRIu32, reader->uid);
		if (!reader->old_files)
			(void)snprintf(behind, sizeof(behind), "%" PRIu64, reader->behind);
		r = table_print(table, out, "%s\t%.63s\t%" PRId32 "\t%" PRIu32 "\t%s\t%s",
			reader->name, user ? user->pw_name : name, reader->pid, reader->snapshots,
			behind, reader->pin_file ? reader->pin_file : "");
	}
	return r;
}

int status_text(const struct store_status *s, struct buf *out)
{
	typedef int put_fn(const struct store_status *status, struct table *table, struct buf *out);
	static put_fn *const tables[] = {
		status_put_processes, status_put_feeds, status_put_readers};
	int r = 0;

	status_put_store(s, out);
	buf_byte(out, '\n');
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(tables); i++) {
		struct table table;

		r = tables[i](s, &table, out);
		if (r == 0)
			r = table_settle(&table, out);
		table_release(&table);
		if (i == 0 || (tables[i] == status_put_feeds && s->n_readers))
			buf_byte(out, '\n');
	}
	return r < 0 ? r : buf_error(out);
}
