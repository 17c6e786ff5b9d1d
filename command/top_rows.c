/* SPDX-License-Identifier: Apache-2.0 */
/* Makes tables of a sample, with rates since the sample before. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command/top.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/options.h"
#include "print/table/age.h"
#include "print/table/display.h"
#include "print/table/table.h"

void top_sample_release(struct top_sample *sample)
{
	if (sample->taken_ns)
		status_release(&sample->status);
	*sample = (struct top_sample){.taken_ns = 0};
}

/* Returns the growth of a counter per second. NAN: it restarted, or no time has passed. */
static double top_rate(uint64_t before, uint64_t now, double seconds)
{
	return now < before || seconds <= 0 ? NAN : (double)(now - before) / seconds;
}

/* ---- rows --------------------------------------------------------------- */

struct top_row {
	double rank;  /* the largest first, unknown ones last */
	size_t cells; /* their place in the texts; rows of one rank stay in this order */
};

/* A table during its filling, with its samples. */
struct top_fill {
	struct top_row *rows;
	size_t n, room;
	struct buf texts; /* the cells of all rows, each with its NUL */
	const struct top_sample *before, *now;
	double seconds; /* between them; 0: only one */
};

static void top_fill_release(struct top_fill *fill)
{
	free(fill->rows);
	buf_release(&fill->texts);
}

static int top_fill_begin(struct top_fill *fill, double rank)
{
	return ARRAY_ADD(fill->rows, fill->n, fill->room,
		((struct top_row){rank, fill->texts.size}), "the rows of a table");
}

static void top_fill_text(struct top_fill *fill, const char *text)
{
	display_bytes(bytes_str(text), &fill->texts);
	buf_byte(&fill->texts, '\0');
}

static void top_fill_count(struct top_fill *fill, uint64_t n)
{
	buf_printf(&fill->texts, "%" PRIu64, n);
	buf_byte(&fill->texts, '\0');
}

/* Adds a number by PRINT, "-" if unknown. */
static void top_fill_as(
	struct top_fill *fill, double number, void (*print)(double number, struct buf *out))
{
	if (isnan(number))
		buf_byte(&fill->texts, '-');
	else
		print(number, &fill->texts);
	buf_byte(&fill->texts, '\0');
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

/* ---- feeds -------------------------------------------------------------- */

static const char *const top_feed_heads[] = {"FEED", "NAMESPACE", "STATE", "OBJECTS", "CHANGES/S",
	"CONTACT", "LAG", "READ/S", "LISTS", "RETRIES", "ERROR"};

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

		r = top_fill_begin(fill, changes);
		top_fill_text(fill, feed->full_name);
		top_fill_text(fill, feed->namespace_);
		top_fill_text(fill, feed->state);
		top_fill_count(fill, feed->objects);
		top_fill_as(fill, changes, top_print_rate);
		top_fill_as(fill, age < 0 ? NAN : age, top_print_age);
		top_fill_count(fill, feed->lag);
		top_fill_as(fill, bytes, top_print_bytes);
		top_fill_count(fill, feed->lists);
		top_fill_count(fill, feed->retries);
		top_fill_text(fill, feed->last_error);
	}
	return r;
}

/* ---- readers, followers, processes -------------------------------------- */

static const char *const top_reader_heads[] = {
	"READER", "USER", "PID", "SNAPSHOTS", "BEHIND", "PIN FILE"};

static int top_fill_readers(struct top_fill *fill)
{
	const struct store_status *s = &fill->now->status;
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->n_readers; i++) {
		const struct status_reader *reader = &s->readers[i];
		double behind = reader->old_files ? NAN : (double)reader->behind;
		struct status_user user;

		r = top_fill_begin(fill, behind);
		top_fill_text(fill, reader->name);
		top_fill_text(fill, status_text_user(reader->uid, &user));
		top_fill_count(fill, (uint64_t)reader->pid);
		top_fill_count(fill, reader->snapshots);
		top_fill_as(fill, behind, top_print_count);
		top_fill_text(fill, reader->pin_file ? reader->pin_file : "");
	}
	return r;
}

static const char *const top_follower_heads[] = {
	"CURSOR", "FEEDS", "EVENT", "BEHIND", "WRITTEN", "STATE"};

static int top_fill_followers(struct top_fill *fill)
{
	const struct store_status *s = &fill->now->status;
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->n_cursors; i++) {
		const struct status_cursor *cursor = &s->cursors[i];
		uint64_t events = s->last_event > cursor->event ? s->last_event - cursor->event : 0;
		double behind = cursor->lapsed ? NAN : (double)events;
		double age = ((double)fill->now->wall_ns - (double)cursor->written_ns) / 1e9;

		r = top_fill_begin(fill, behind);
		top_fill_text(fill, cursor->name);
		top_fill_count(fill, cursor->feeds);
		top_fill_count(fill, cursor->event);
		top_fill_as(fill, behind, top_print_count);
		top_fill_as(fill, age < 0 ? 0 : age, top_print_age);
		top_fill_text(fill, cursor->lapsed ? "lapsed" : "");
	}
	return r;
}

static const char *const top_process_heads[] = {
	"PROCESS", "PID", "CPU%", "RSS", "ANON", "UPTIME", "RESTARTS", "STATE"};

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

		r = top_fill_begin(fill, 0);
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
	}
	return r;
}

static double top_seconds(const struct top_sample *before, const struct top_sample *now)
{
	return before->taken_ns && now->taken_ns > before->taken_ns
		       ? (double)(now->taken_ns - before->taken_ns) / 1e9
		       : 0;
}

/* ---- the store as a whole ----------------------------------------------- */

static void top_put_store(
	const struct top_sample *before, const struct top_sample *now, struct buf *out)
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

/* ---- the page ----------------------------------------------------------- */

static const struct top_panel {
	const char *const *heads;
	size_t n_heads;
	int (*fill)(struct top_fill *fill);
} top_panels[] = {
	{top_process_heads, ARRAY_SIZE(top_process_heads), top_fill_processes},
	{top_feed_heads, ARRAY_SIZE(top_feed_heads), top_fill_feeds},
	{top_reader_heads, ARRAY_SIZE(top_reader_heads), top_fill_readers},
	{top_follower_heads, ARRAY_SIZE(top_follower_heads), top_fill_followers},
};

static int top_compare_rows(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;

	if (isnan(x->rank) != isnan(y->rank))
		return isnan(x->rank) ? 1 : -1;
	if (x->rank > y->rank || x->rank < y->rank)
		return x->rank > y->rank ? -1 : 1;
	return (x->cells > y->cells) - (x->cells < y->cells);
}

static int top_put_panel(
	const struct top_fill *fill, const struct top_panel *panel, size_t rows, struct buf *out)
{
	CLEANUP(table_release) struct table table;
	const char *cells[TABLE_COLUMNS];
	int r = 0;

	table_init(&table, panel->heads, panel->n_heads);
	buf_byte(out, '\n');
	for (size_t i = 0; r == 0 && i < rows; i++) {
		const char *text = (const char *)fill->texts.data + fill->rows[i].cells;

		for (size_t c = 0; c < panel->n_heads; c++, text += strlen(text) + 1)
			cells[c] = text;
		r = table_row(&table, cells, out);
	}
	if (r == 0)
		r = table_settle(&table, out);
	if (rows < fill->n)
		buf_printf(out, "... and %zu more\n", fill->n - rows);
	return r;
}

int top_put_page(
	const struct top_sample *before, const struct top_sample *now, size_t rows, struct buf *out)
{
	int r = 0;

	top_put_store(before, now, out);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(top_panels); i++) {
		const struct top_panel *panel = &top_panels[i];
		CLEANUP(top_fill_release)
		struct top_fill fill = {.texts = BUF_INIT,
			.before = before,
			.now = now,
			.seconds = top_seconds(before, now)};

		r = panel->fill(&fill);
		if (r == 0)
			r = buf_error(&fill.texts);
		if (r < 0 || !fill.n)
			continue;
		qsort(fill.rows, fill.n, sizeof(*fill.rows), top_compare_rows);
		bool cut = rows && panel->heads == top_feed_heads && fill.n > rows;
		r = top_put_panel(&fill, panel, cut ? rows : fill.n, out);
	}
	return r < 0 ? r : buf_error(out);
}
