/* SPDX-License-Identifier: Apache-2.0 */
/* Makes tables of a sample, with rates since the sample before. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command/top.h"
#include "common/array.h"
#include "common/check.h"
#include "common/err.h"
#include "common/options.h"
#include "print/table/age.h"
#include "print/table/display.h"

void top_sample_release(struct top_sample *sample)
{
	if (sample->taken_ns)
		status_release(&sample->status);
	*sample = (struct top_sample){.taken_ns = 0};
}

double top_rate(uint64_t before, uint64_t now, double seconds)
{
	return now < before || seconds <= 0 ? NAN : (double)(now - before) / seconds;
}

/* ---- rows --------------------------------------------------------------- */

/* A table during its filling, with its samples. */
struct top_fill {
	struct top_table *table;
	struct top_row row;
	size_t cell;
	const struct top_sample *before, *now;
	double seconds; /* between them; 0: only one */
};

static void top_fill_cell(struct top_fill *fill, double number)
{
	REQUIRE(fill->cell < fill->table->n_columns);
	fill->row.cells[fill->cell++] = (struct top_cell){number, fill->table->texts.size};
}

static void top_fill_text(struct top_fill *fill, const char *text)
{
	top_fill_cell(fill, NAN);
	display_bytes(bytes_str(text), &fill->table->texts);
	buf_byte(&fill->table->texts, '\0');
}

static void top_fill_count(struct top_fill *fill, uint64_t n)
{
	top_fill_cell(fill, (double)n);
	buf_printf(&fill->table->texts, "%" PRIu64, n);
	buf_byte(&fill->table->texts, '\0');
}

/* Adds a number by PRINT, "-" if unknown. */
static void top_fill_as(
	struct top_fill *fill, double number, void (*print)(double number, struct buf *out))
{
	struct buf *texts = &fill->table->texts;

	top_fill_cell(fill, number);
	if (isnan(number))
		buf_byte(texts, '-');
	else
		print(number, texts);
	buf_byte(texts, '\0');
}

static void top_print_rate(double rate, struct buf *out)
{
	buf_printf(out, rate > 0 && rate < 9.95 ? "%.1f" : "%.0f", rate);
}

static void top_print_count(double number, struct buf *out)
{
	buf_printf(out, "%.0f", number);
}

static void top_print_bytes(double bytes, struct buf *out)
{
	status_put_bytes((uint64_t)bytes, out);
}

static void top_print_age(double seconds, struct buf *out)
{
	char age[AGE_SIZE];

	age_from_seconds((uint64_t)seconds, age);
	buf_str(out, age);
}

static int top_fill_end(struct top_fill *fill)
{
	struct top_table *table = fill->table;

	REQUIRE(fill->cell == table->n_columns);
	fill->cell = 0;
	fill->row.number = table->n;
	return ARRAY_ADD(table->rows, table->n, table->room, fill->row, "the rows of a table");
}

/* ---- feeds -------------------------------------------------------------- */

static const struct top_column top_feed_columns[] = {
	{"FEED"},
	{"NAMESPACE", .drop = 8},
	{"STATE"},
	{"OBJECTS", true, 2},
	{"CHANGES/S", true},
	{"READ/S", true, 6},
	{"CONTACT", true, 3},
	{"LAG", true, 4},
	{"LISTS", true, 9},
	{"RETRIES", true, 10},
	{"ERROR", .drop = 5},
};

static int top_compare_feeds(const void *a, const void *b)
{
	const struct kinf_feed_info *x = a, *y = b;
	int r = strcmp(x->full_name, y->full_name);

	return r ? r : strcmp(x->namespace_, y->namespace_);
}

/* Finds the feed in the previous sample, if both are of one run of the reflector. */
static const struct kinf_feed_info *top_find_feed(
	const struct top_fill *fill, const struct kinf_feed_info *feed)
{
	const struct store_status *before = &fill->before->status, *now = &fill->now->status;
	const struct stats_process *was = &before->processes[HOME_REFLECTOR].page;
	const struct stats_process *is = &now->processes[HOME_REFLECTOR].page;

	if (!fill->seconds || !before->n_feeds || was->pid != is->pid ||
		was->start_ns != is->start_ns || strcmp(before->uuid, now->uuid) != 0)
		return NULL;
	const struct kinf_feed_info *found =
		bsearch(feed, before->feeds, before->n_feeds, sizeof(*feed), top_compare_feeds);
	return found && found->feed == feed->feed ? found : NULL;
}

static double top_feed_changes(
	const struct top_fill *fill, const struct kinf_feed_info *feed, double *ret_bytes)
{
	const struct kinf_feed_info *was = top_find_feed(fill, feed);

	*ret_bytes = was ? top_rate(was->bytes, feed->bytes, fill->seconds) : NAN;
	return was ? top_rate(was->events, feed->events, fill->seconds) : NAN;
}

static int top_fill_feeds(struct top_fill *fill)
{
	const struct store_status *s = &fill->now->status;
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->n_feeds; i++) {
		const struct kinf_feed_info *feed = &s->feeds[i];
		double bytes, changes = top_feed_changes(fill, feed, &bytes);
		double age = feed->last_contact_seconds;

		top_fill_text(fill, feed->full_name);
		top_fill_text(fill, feed->namespace_);
		top_fill_text(fill, feed->state);
		top_fill_count(fill, feed->objects);
		top_fill_as(fill, changes, top_print_rate);
		top_fill_as(fill, bytes, top_print_bytes);
		top_fill_as(fill, age < 0 ? NAN : age, top_print_age);
		top_fill_count(fill, feed->lag);
		top_fill_count(fill, feed->lists);
		top_fill_count(fill, feed->retries);
		top_fill_text(fill, feed->last_error);
		r = top_fill_end(fill);
	}
	return r;
}

/* ---- readers, followers, processes -------------------------------------- */

static const struct top_column top_reader_columns[] = {
	{"READER"},
	{"USER", .drop = 2},
	{"PID", true},
	{"SNAPSHOTS", true},
	{"BEHIND", true},
	{"PIN FILE", .drop = 1},
};

static int top_fill_readers(struct top_fill *fill)
{
	const struct store_status *s = &fill->now->status;
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->n_readers; i++) {
		const struct status_reader *reader = &s->readers[i];

		struct status_user user;

		top_fill_text(fill, reader->name);
		top_fill_text(fill, status_text_user(reader->uid, &user));
		top_fill_count(fill, (uint64_t)reader->pid);
		top_fill_count(fill, reader->snapshots);
		top_fill_as(
			fill, reader->old_files ? NAN : (double)reader->behind, top_print_count);
		top_fill_text(fill, reader->pin_file ? reader->pin_file : "");
		r = top_fill_end(fill);
	}
	return r;
}

static const struct top_column top_follower_columns[] = {
	{"CURSOR"},
	{"FEEDS", true, 1},
	{"EVENT", true},
	{"BEHIND", true},
	{"WRITTEN", true},
	{"STATE"},
};

static int top_fill_followers(struct top_fill *fill)
{
	const struct store_status *s = &fill->now->status;
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->n_cursors; i++) {
		const struct status_cursor *cursor = &s->cursors[i];
		uint64_t behind = s->last_event > cursor->event ? s->last_event - cursor->event : 0;
		double age = ((double)fill->now->wall_ns - (double)cursor->written_ns) / 1e9;

		top_fill_text(fill, cursor->name);
		top_fill_count(fill, cursor->feeds);
		top_fill_count(fill, cursor->event);
		top_fill_as(fill, cursor->lapsed ? NAN : (double)behind, top_print_count);
		top_fill_as(fill, age < 0 ? 0 : age, top_print_age);
		top_fill_text(fill, cursor->lapsed ? "lapsed" : "");
		r = top_fill_end(fill);
	}
	return r;
}

static const struct top_column top_process_columns[] = {
	{"PROCESS"},
	{"PID", true},
	{"CPU%", true},
	{"RSS", true, 2},
	{"ANON", true, 3},
	{"UPTIME", true, 4},
	{"RESTARTS", true, 5},
	{"STATE"},
};

static int top_fill_processes(struct top_fill *fill)
{
	const struct store_status *s = &fill->now->status, *before = &fill->before->status;
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->n_processes; i++) {
		const struct status_process *p = &s->processes[i], *was = &before->processes[i];
		bool alive = p->known && p->alive;
		bool same = fill->seconds > 0 && was->usage_known && was->page.pid == p->page.pid &&
			    was->page.start_ns == p->page.start_ns;
		double cpu = p->cpu_seconds - was->cpu_seconds;

		top_fill_text(fill, p->name);
		top_fill_as(fill, alive ? (double)p->page.pid : NAN, top_print_count);
		top_fill_as(fill, p->usage_known && same ? 100 * cpu / fill->seconds : NAN,
			top_print_rate);
		top_fill_as(
			fill, p->usage_known ? (double)p->memory.resident : NAN, top_print_bytes);
		top_fill_as(
			fill, p->usage_known ? (double)p->memory.anonymous : NAN, top_print_bytes);
		top_fill_as(fill, alive ? (double)p->uptime_seconds : NAN, top_print_age);
		top_fill_count(fill, p->restarts);
		top_fill_text(fill, status_process_state(p));
		r = top_fill_end(fill);
	}
	return r;
}

/* SORTED_BY: numbers from the largest, unknown ones last. */
static const struct top_panel_row {
	const struct top_column *columns;
	size_t n_columns, sorted_by;
	int (*fill)(struct top_fill *fill);
} top_panels[TOP_PANELS] = {
	[TOP_PROCESSES] = {top_process_columns, ARRAY_SIZE(top_process_columns), 0,
		top_fill_processes},
	[TOP_FEEDS] = {top_feed_columns, ARRAY_SIZE(top_feed_columns), 4, top_fill_feeds},
	[TOP_READERS] = {top_reader_columns, ARRAY_SIZE(top_reader_columns), 4, top_fill_readers},
	[TOP_FOLLOWERS] = {top_follower_columns, ARRAY_SIZE(top_follower_columns), 3,
		top_fill_followers},
};

static double top_seconds(const struct top_sample *before, const struct top_sample *now)
{
	return before->taken_ns && now->taken_ns > before->taken_ns
		       ? (double)(now->taken_ns - before->taken_ns) / 1e9
		       : 0;
}

static int top_compare_rows(const void *a, const void *b, void *column)
{
	const struct top_row *x = a, *y = b;
	double m = x->cells[*(size_t *)column].number, n = y->cells[*(size_t *)column].number;
	int r = (m < n) - (m > n);

	if (isnan(m) != isnan(n))
		return isnan(m) ? 1 : -1;
	return r ? r : (x->number > y->number) - (x->number < y->number);
}

int top_rows(const struct top_sample *before, const struct top_sample *now, enum top_panel panel,
	struct top_table *table)
{
	const struct top_panel_row *row = &top_panels[panel];
	struct top_fill fill = {
		.table = table, .before = before, .now = now, .seconds = top_seconds(before, now)};

	*table = (struct top_table){.columns = row->columns, .n_columns = row->n_columns};
	int r = row->fill(&fill);
	if (r == 0 && table->n && row->sorted_by)
		qsort_r(table->rows, table->n, sizeof(*table->rows), top_compare_rows,
			(void *)(uintptr_t)&row->sorted_by);
	return r < 0 ? r : buf_error(&table->texts);
}

void top_table_release(struct top_table *table)
{
	free(table->rows);
	buf_release(&table->texts);
	*table = (struct top_table){.n = 0};
}

const char *top_cell_text(const struct top_table *table, const struct top_row *row, size_t column)
{
	return (const char *)table->texts.data + row->cells[column].text;
}

/* ---- the store as a whole ----------------------------------------------- */

void top_put_store(const struct top_sample *before, const struct top_sample *now, struct buf *out)
{
	const struct top_fill fill = {
		.before = before, .now = now, .seconds = top_seconds(before, now)};
	const struct store_status *s = &now->status;
	double all_changes = 0, all_bytes = 0;
	uint64_t objects = 0;
	bool known = false;

	status_put_store(s, out);
	status_put_feed_states(s, out);
	for (size_t i = 0; i < s->n_feeds; i++) {
		double bytes, changes = top_feed_changes(&fill, &s->feeds[i], &bytes);

		objects += s->feeds[i].objects;
		if (isnan(changes) || isnan(bytes))
			continue;
		known = true;
		all_changes += changes;
		all_bytes += bytes;
	}
	buf_printf(out, ", %" PRIu64 " objects", objects);
	if (known) {
		buf_str(out, ", ");
		top_print_rate(all_changes, out);
		buf_str(out, " changes/s, ");
		top_print_bytes(all_bytes, out);
		buf_str(out, "/s read");
	}
	buf_printf(out, "\nReaders: %zu, named cursors: %zu\n", s->n_readers, s->n_cursors);
}
