/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "command/top.h"
#include "common/cleanup.h"
#include "common/options.h"

#define SECOND UINT64_C(1000000000)

enum { FEED, NAMESPACE_, STATE, OBJECTS, CHANGES, READ, CONTACT, LAG, LISTS, RETRIES, ERROR_ };

static struct kinf_feed_info feed(const char *name, uint64_t events, uint64_t bytes)
{
	struct kinf_feed_info info = {.size = sizeof(info), .events = events, .bytes = bytes};

	(void)snprintf(info.full_name, sizeof(info.full_name), "%s", name);
	(void)snprintf(info.state, sizeof(info.state), "live");
	return info;
}

/* A sample of N feeds, which it borrows, in the order of their names. */
static struct top_sample sample(uint64_t second, struct kinf_feed_info *feeds, size_t n)
{
	struct top_sample made = {.taken_ns = second * SECOND, .wall_ns = 5000 * SECOND};
	struct store_status *s = &made.status;
	struct stats_process *reflector = &s->processes[HOME_REFLECTOR].page;

	(void)snprintf(s->uuid, sizeof(s->uuid), "journal");
	reflector->pid = 7;
	reflector->start_ns = 1;
	s->feeds = feeds;
	s->n_feeds = n;
	return made;
}

static const char *text(const struct top_table *table, size_t row, size_t column)
{
	return top_cell_text(table, &table->rows[row], column);
}

static void expect(const struct top_sample *before, const struct top_sample *now, const char *rate,
	const char *bytes)
{
	CLEANUP(top_table_release) struct top_table table = {.n = 0};

	cr_assert_eq(top_rows(before, now, TOP_FEEDS, &table), 0);
	cr_assert_str_eq(text(&table, 0, CHANGES), rate);
	cr_assert_str_eq(text(&table, 0, READ), bytes);
}

Test(top, a_rate_is_what_was_counted_divided_by_the_time)
{
	struct kinf_feed_info was = feed("pods", 100, 1000), is = feed("pods", 125, 1000 + 4096);
	struct top_sample none = {.taken_ns = 0}, before = sample(10, &was, 1),
			  now = sample(12, &is, 1);

	expect(&before, &now, "12", "2.0 KiB");
	expect(&none, &now, "-", "-");
	is.events = 103;
	expect(&before, &now, "1.5", "2.0 KiB");
	is.events = 100;
	expect(&before, &now, "0", "2.0 KiB");
	cr_assert(isnan(top_rate(5, 4, 1)));
	cr_assert(isnan(top_rate(5, 6, 0)));
	cr_assert_float_eq(top_rate(5, 6, 0.5), 2, 1e-9);
}

Test(top, counters_of_another_reflector_feed_or_journal_give_no_rate)
{
	struct kinf_feed_info was = feed("pods", 100, 1000), is = feed("pods", 150, 2000);
	struct top_sample before = sample(10, &was, 1), now = sample(12, &is, 1);

	now.status.processes[HOME_REFLECTOR].page.start_ns = 2;
	expect(&before, &now, "-", "-");
	now = sample(12, &is, 1);
	now.status.uuid[0] = 'J';
	expect(&before, &now, "-", "-");
	now = sample(12, &is, 1);
	is.feed = 9;
	expect(&before, &now, "-", "-");
	is = feed("pods", 99, 2000);
	expect(&before, &now, "-", "500 B");
	is = feed("nodes", 150, 2000);
	expect(&before, &now, "-", "-");
}

Test(top, cpu_is_of_one_process)
{
	CLEANUP(top_table_release) struct top_table table = {.n = 0}, other = {.n = 0};
	struct top_sample before = sample(10, NULL, 0), now = sample(12, NULL, 0);
	struct status_process *was = &before.status.processes[0], *is = &now.status.processes[0];

	*was = (struct status_process){.name = "kinf-reflector",
		.searched = true,
		.known = true,
		.alive = true,
		.responding = true,
		.page = {.pid = 7, .start_ns = 1, .state = "running"},
		.usage_known = true,
		.cpu_seconds = 3};
	*is = *was;
	is->cpu_seconds = 3.5;
	is->memory = (struct proc_memory){3 << 20, 1 << 20};
	now.status.n_processes = 1;
	cr_assert_eq(top_rows(&before, &now, TOP_PROCESSES, &table), 0);
	const char *const cells[] = {
		"kinf-reflector", "7", "25", "3.0 MiB", "1.0 MiB", "0s", "0", "running"};
	for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
		cr_assert_str_eq(text(&table, 0, i), cells[i]);
	is->page.start_ns = 2;
	cr_assert_eq(top_rows(&before, &now, TOP_PROCESSES, &other), 0);
	cr_assert_str_eq(text(&other, 0, 2), "-");
}

Test(top, feeds_are_sorted_by_their_changes_and_unknown_rates_come_last)
{
	CLEANUP(top_table_release) struct top_table table = {.n = 0};
	struct kinf_feed_info was[] = {
		feed("a", 0, 0), feed("b", 0, 0), feed("c", 0, 0), feed("d", 0, 0)};
	struct kinf_feed_info is[] = {
		feed("a", 90, 0), feed("b", 1000, 0), feed("c", 90, 0), feed("e", 5, 0)};
	struct top_sample before = sample(10, was, 4), now = sample(11, is, 4);

	(void)snprintf(is[3].last_error, sizeof(is[3].last_error), "no right to\nlist");
	cr_assert_eq(top_rows(&before, &now, TOP_FEEDS, &table), 0);
	for (size_t row = 0; row < 4; row++)
		cr_assert_eq(text(&table, row, FEED)[0], "bace"[row], "row %zu", row);
	cr_assert_str_eq(text(&table, 3, ERROR_), "no right to^Jlist");
}

/* The line of a row in WIDTH characters. */
static void line(
	const struct top_table *table, size_t width, const struct top_row *row, struct buf *out)
{
	struct top_layout layout;

	buf_reset(out);
	top_fit(table, width, &layout);
	top_put_row(table, &layout, row, out);
}

Test(top, a_narrow_terminal_lacks_columns_but_not_the_name)
{
	CLEANUP(top_table_release) struct top_table table = {.n = 0};
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	struct kinf_feed_info is[] = {feed("pods", 0, 0), feed("deployments.apps", 0, 0)};
	struct top_sample none = {.taken_ns = 0}, now = sample(11, is, 2);
	size_t columns = 99;

	is[0].objects = 1234567;
	cr_assert_eq(top_rows(&none, &now, TOP_FEEDS, &table), 0);
	line(&table, 0, NULL, &out);
	cr_assert_str_eq(buf_cstr(&out),
		"FEED              NAMESPACE  STATE  OBJECTS  CHANGES/S  READ/S  CONTACT  LAG  "
		"LISTS  RETRIES  ERROR");
	line(&table, 0, &table.rows[0], &out);
	cr_assert_str_eq(buf_cstr(&out),
		"pods                         live   1234567          -       -       0s    0  "
		"    0        0");
	for (size_t width = 120; width >= 1; width--) {
		struct top_layout layout;
		size_t shown = 0;

		line(&table, width, NULL, &out);
		cr_assert(out.size <= width || width < 35, "%zu: %s", width, buf_cstr(&out));
		cr_assert_eq(strncmp(buf_cstr(&out), "FEED", 4), 0);
		top_fit(&table, width, &layout);
		for (size_t i = 0; i < table.n_columns; i++)
			shown += layout.width[i] > 0;
		cr_assert_leq(shown, columns);
		columns = shown;
	}
	line(&table, 30, &table.rows[1], &out);
	cr_assert_str_eq(buf_cstr(&out), "deployments~  live           -");
}

Test(top, a_text_is_clipped_between_characters)
{
	struct bytes text = BYTES_LIT("a\xc3\xa4\xe2\x82\xac z");

	cr_assert_eq(top_clip(text, 0).size, 0);
	cr_assert_eq(top_clip(text, 1).size, 1);
	cr_assert_eq(top_clip(text, 2).size, 3);
	cr_assert_eq(top_clip(text, 3).size, 6);
	cr_assert_eq(top_clip(text, 99).size, text.size);
}
