/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/command/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "common/stats.h"
#include "store/env/home.h"
#include "store/journal/journal.h"

#define PROGRESS_MAGIC 0x70726f67u

struct progress {
	uint32_t magic;
	const struct config *config;
	struct home *home;
	struct stats *page;
	uint64_t begun_ns;
	bool shown, ended;
};

void progress_new(const struct config *config, struct progress **ret_progress)
{
	*ret_progress = NULL;
	if (!isatty(STDERR_FILENO))
		return;
	struct progress *p = calloc(1, sizeof(*p));
	if (!p)
		return;
	p->magic = PROGRESS_MAGIC;
	p->config = config;
	p->begun_ns = proc_monotonic_ns();
	*ret_progress = p;
}

static bool progress_is_alive(const struct stats *page)
{
	struct stats_process process;

	return page && stats_process(page, &process) == 0 && process.alive;
}

/* Opens the status page, which appears when the reflector has started. A new reflector may have a
 * new page, so the page is opened again when its process has died. */
static bool progress_open(struct progress *p)
{
	struct home_options options = {0};

	if (progress_is_alive(p->page))
		return true;
	stats_close(&p->page);
	home_close(&p->home);
	int r = home_open(p->config->store, &options, &p->home);
	if (r == 0 && home_runtime_fd(p->home) >= 0)
		r = stats_open(home_runtime_fd(p->home), "stats.reflector", &p->page);
	err_ignore(r, "the next turn tries again");
	return progress_is_alive(p->page);
}

struct progress_sum {
	uint64_t done, total;
	unsigned listing, feeds;
	bool total_known;
};

static void progress_add_up(const struct progress *p, struct progress_sum *sum)
{
	*sum = (struct progress_sum){.total_known = true};
	struct stats_feed row;
	int found;

	for (uint32_t i = 0; (found = stats_feed_at(p->page, i, &row)) != END; i++) {
		if (found != FOUND || (row.feed & STATS_PENDING))
			continue;
		sum->feeds++;
		if (row.phase != FEED_LISTING)
			continue;
		sum->listing++;
		sum->done += row.list_done;
		sum->total += row.list_total;
		sum->total_known &= row.list_total > 0;
	}
}

void progress_show(struct progress *progress)
{
	struct progress_sum sum;

	if (!progress || progress->ended || !progress_open(progress))
		return;
	progress_add_up(progress, &sum);
	if (!sum.feeds)
		return;
	if (!sum.listing) {
		progress_end(progress);
		return;
	}
	double seconds = (double)(proc_monotonic_ns() - progress->begun_ns) / 1e9;
	char total[40] = "";
	if (sum.total_known && sum.total)
		(void)snprintf(total, sizeof(total), " of %llu", (unsigned long long)sum.total);
	/* The cursor stays at the start of the line, so that the next line of a daemon begins
	 * there. */
	(void)fprintf(stderr, "\r\033[Klisting: %llu%s objects, %.0f/s\r",
		(unsigned long long)sum.done, total, (double)sum.done / seconds);
	progress->shown = true;
}

void progress_end(struct progress *progress)
{
	if (!progress || progress->ended)
		return;
	progress->ended = true;
	if (progress->shown)
		(void)fputs("\r\033[K", stderr);
}

void progress_free(struct progress **progress)
{
	if (!progress || !*progress)
		return;
	struct progress *p = TAKE(*progress);

	CHECK_OBJ(p, PROGRESS_MAGIC);
	stats_close(&p->page);
	home_close(&p->home);
	p->magic = 0;
	free(p);
}
