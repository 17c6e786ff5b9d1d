/* SPDX-License-Identifier: Apache-2.0 */
/* For people. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/options.h"
#include "reader/command/print.h"
#include "reader/command/status.h"
#include "reader/table/age.h"

static const char *const process_heads[] = {"PROCESS", "PID", "STATE", "UPTIME", "RESTARTS"};
static const char *const feed_heads[] = {"FEED", "NAMESPACE", "STATE", "OBJECTS", "RESOURCEVERSION",
	"CONTACT", "LAG", "LISTS", "WATCHES", "EVENTS", "READ", "RETRIES", "ERROR"};
static const char *const reader_heads[] = {"READER", "PID", "SNAPSHOTS", "BEHIND"};

/* Room for a number as text. */
struct number_text {
	char text[24];
};

static const char *number(uint64_t n, struct number_text *room)
{
	(void)snprintf(room->text, sizeof(room->text), "%" PRIu64, n);
	return room->text;
}

static const char *bytes_text(uint64_t n, struct number_text *room)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double value = (double)n;
	size_t unit = 0;

	while (value >= 1024 && unit + 1 < ARRAY_SIZE(units)) {
		value /= 1024;
		unit++;
	}
	(void)snprintf(room->text, sizeof(room->text), "%.*f %s", unit ? 1 : 0, value, units[unit]);
	return room->text;
}

static void put_database(const char *name, const struct status_database *database, struct buf *out)
{
	struct number_text used, file;

	if (!database->open)
		buf_printf(out, "%s none\n", name);
	else
		buf_printf(out, "%s %s in use, file %s, generation %" PRIu32 "\n", name,
			bytes_text(database->info.used_bytes, &used),
			bytes_text(database->info.file_bytes, &file), database->generation);
}

static void put_store(const struct status *s, struct buf *out)
{
	struct number_text free_bytes;

	buf_printf(out, "Store:   %s%s\n", s->path, s->copy ? " (a copy; no daemon writes it)" : "");
	put_database("Journal:", &s->journal, out);
	put_database("Index:  ", &s->index, out);
	if (s->journal.open)
		buf_printf(out,
			"Events:  %" PRIu64 " in the journal, %" PRIu64 " in the index, history from %" PRIu64
			"\n", s->last_event, s->taken, s->horizon + 1);
	if (s->disk_known)
		buf_printf(out, "Disk:    %s free\n", bytes_text(s->disk_free, &free_bytes));
	if (s->error[0])
		buf_printf(out, "Error:   %s\n", s->error);
	buf_byte(out, '\n');
}

static int put_processes(const struct status *s, struct buf *out)
{
	struct table table;
	int r = 0;

	table_init(&table, process_heads, ARRAY_SIZE(process_heads));
	for (size_t i = 0; r == 0 && i < STATUS_PROCESSES; i++) {
		const struct status_process *p = &s->processes[i];
		bool alive = p->known && p->alive;
		struct number_text pid, restarts;
		char uptime[AGE_SIZE] = "-";

		if (alive)
			age_from_seconds(p->uptime_seconds, uptime);
		r = table_row(&table, (const char *const[]){p->name,
			alive ? number((uint64_t)p->page.pid, &pid) : "-", status_process_state(p),
			uptime, number(p->restarts, &restarts)}, out);
	}
	if (r == 0)
		r = table_settle(&table, out);
	table_release(&table);
	buf_byte(out, '\n');
	return r;
}

static int put_feed(struct table *table, const struct kinf_feed_info *f, struct buf *out)
{
	struct number_text objects, lag, lists, watches, events, read, retries;
	char contact[AGE_SIZE] = "-";

	if (f->last_contact_seconds >= 0)
		age_from_seconds((uint64_t)f->last_contact_seconds, contact);
	return table_row(table, (const char *const[]){f->name, f->namespace_, f->state,
		number(f->objects, &objects), f->resource_version, contact, number(f->lag, &lag),
		number(f->lists, &lists), number(f->watches, &watches), number(f->events, &events),
		bytes_text(f->bytes, &read), number(f->retries, &retries), f->last_error}, out);
}

/* "Feeds:   62 (60 live, 1 gone, 1 forbidden)": each state at its first feed. */
static void put_states(const struct status *s, struct buf *out)
{
	buf_printf(out, "Feeds:   %zu", s->n_feeds);
	for (size_t i = 0; i < s->n_feeds; i++) {
		size_t same = 0, before = 0;

		for (size_t j = 0; j < s->n_feeds; j++) {
			bool equal = !strcmp(s->feeds[i].state, s->feeds[j].state);

			same += equal;
			before += equal && j < i;
		}
		if (!before)
			buf_printf(out, "%s%zu %s", i ? ", " : " (", same, s->feeds[i].state);
	}
	buf_str(out, s->n_feeds ? ")\n\n" : "\n");
}

static int put_feeds(const struct status *s, struct buf *out)
{
	struct table table;
	int r = 0;

	put_states(s, out);
	table_init(&table, feed_heads, ARRAY_SIZE(feed_heads));
	for (size_t i = 0; r == 0 && i < s->n_feeds; i++)
		r = put_feed(&table, &s->feeds[i], out);
	if (r == 0)
		r = table_settle(&table, out);
	table_release(&table);
	return r;
}

static int put_readers(const struct status *s, struct buf *out)
{
	struct table table;
	int r = 0;

	if (!s->n_readers)
		return 0;
	buf_byte(out, '\n');
	table_init(&table, reader_heads, ARRAY_SIZE(reader_heads));
	for (size_t i = 0; r == 0 && i < s->n_readers; i++) {
		const struct status_reader *reader = &s->readers[i];
		struct number_text pid, snapshots, behind;

		r = table_row(&table, (const char *const[]){reader->name,
			number((uint64_t)reader->pid, &pid), number(reader->snapshots, &snapshots),
			number(reader->behind, &behind)}, out);
	}
	if (r == 0)
		r = table_settle(&table, out);
	table_release(&table);
	return r;
}

int status_text(const struct status *s, struct buf *out)
{
	put_store(s, out);
	int r = put_processes(s, out);
	if (r == 0)
		r = put_feeds(s, out);
	if (r == 0)
		r = put_readers(s, out);
	return r < 0 ? r : buf_error(out);
}
