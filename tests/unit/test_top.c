/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "command/top.h"
#include "common/cleanup.h"
#include "common/options.h"

#define SECOND UINT64_C(1000000000)

enum { CHANGES = 3, READ = 6 }; /* the cell of the namespace is empty */

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

/* Finds the cell COLUMN of the row NAME; "" if there is none. No cell has blanks. */
static const char *cell(const struct top_sample *before, const struct top_sample *now,
	const char *name, size_t column)
{
	static char found[64];
	CLEANUP(buf_release) struct buf page = BUF_INIT;
	char *rest, *words;

	found[0] = '\0';
	cr_assert_eq(top_put_page(before, now, 0, &page), 0);
	for (char *row = strtok_r((char *)buf_cstr(&page), "\n", &rest); row;
		row = strtok_r(NULL, "\n", &rest)) {
		char *word = strtok_r(row, " ", &words);

		if (!word || strcmp(word, name) != 0)
			continue;
		for (size_t i = 0; word && i < column; i++)
			word = strtok_r(NULL, " ", &words);
		(void)snprintf(found, sizeof(found), "%s", word ? word : "");
	}
	return found;
}

static void expect(const struct top_sample *before, const struct top_sample *now, const char *rate,
	const char *bytes)
{
	cr_assert_str_eq(cell(before, now, "pods", CHANGES), rate);
	cr_assert_str_eq(cell(before, now, "pods", READ), bytes);
}

Test(top, a_rate_is_what_was_counted_divided_by_the_time)
{
	struct kinf_feed_info was = feed("pods", 100, 1000), is = feed("pods", 125, 1000 + 4096);
	struct top_sample none = {.taken_ns = 0}, before = sample(10, &was, 1),
			  now = sample(12, &is, 1);

	expect(&before, &now, "12", "2.0");
	expect(&none, &now, "-", "-");
	is.events = 103;
	expect(&before, &now, "1.5", "2.0");
	is.events = 100;
	expect(&before, &now, "0", "2.0");
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
	expect(&before, &now, "-", "500");
}

Test(top, cpu_is_of_one_process)
{
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
	const char *const cells[] = {
		"kinf-reflector", "7", "25", "3.0", "MiB", "1.0", "MiB", "0s", "0", "running"};
	for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
		cr_assert_str_eq(cell(&before, &now, "kinf-reflector", i), cells[i]);
	is->page.start_ns = 2;
	cr_assert_str_eq(cell(&before, &now, "kinf-reflector", 2), "-");
}

Test(top, feeds_are_sorted_by_their_changes_and_unknown_rates_come_last)
{
	CLEANUP(buf_release) struct buf page = BUF_INIT;
	struct kinf_feed_info was[] = {
		feed("a1", 0, 0), feed("b1", 0, 0), feed("c1", 0, 0), feed("d1", 0, 0)};
	struct kinf_feed_info is[] = {
		feed("a1", 90, 0), feed("b1", 1000, 0), feed("c1", 90, 0), feed("e1", 5, 0)};
	struct top_sample before = sample(10, was, 4), now = sample(11, is, 4);

	(void)snprintf(is[3].last_error, sizeof(is[3].last_error), "no right to\nlist");
	cr_assert_eq(top_put_page(&before, &now, 0, &page), 0);
	const char *at = buf_cstr(&page);
	for (size_t row = 0; row < 4; row++) {
		const char name[] = {'\n', "bace"[row], '1', ' ', '\0'};

		at = strstr(at, name);
		cr_assert(at, "row %zu: %s", row, buf_cstr(&page));
	}
	cr_assert(strstr(at, "no right to^Jlist"));
	buf_reset(&page);
	cr_assert_eq(top_put_page(&before, &now, 3, &page), 0);
	cr_assert(strstr(buf_cstr(&page), "... and 1 more") && !strstr(buf_cstr(&page), "\ne1 "));
}
