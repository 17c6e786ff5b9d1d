/* SPDX-License-Identifier: Apache-2.0 */
#include "command/progress.h"

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

/* Opens the status page, which appears when the reflector has started. A new reflector may have a
 * new page, so the page is opened again when its process has died. */
static bool progress_open(struct progress *p)
{
	struct home_options options = {0};
	struct stats_process process;

	for (bool opened = false;; opened = true) {
		if (p->page && stats_process(p->page, &process) == 0 && process.alive)
			return true;
		if (opened)
			return false;
		stats_close(&p->page);
		home_close(&p->home);
		int r = home_open(p->config->store, &options, &p->home);
		if (r == 0 && home_runtime_fd(p->home) >= 0)
			r = stats_open(home_runtime_fd(p->home), "stats.reflector", &p->page);
		err_ignore(r, "the next turn tries again");
	}
}

void progress_show(struct progress *progress)
{
	uint64_t done = 0, total = 0;
	unsigned listing = 0, feeds = 0;
	bool total_known = true;
	struct stats_feed row;
	char of[40] = "";
	int found;

	if (!progress || progress->ended || !progress_open(progress))
		return;
	for (uint32_t i = 0; (found = stats_feed_at(progress->page, i, &row)) != END; i++) {
		if (found != FOUND || (row.feed & STATS_PENDING))
			continue;
		feeds++;
		if (row.phase != FEED_LISTING)
			continue;
		listing++;
		done += row.list_done;
		total += row.list_total;
		total_known &= row.list_total > 0;
	}
	if (!feeds)
		return;
	if (!listing) {
		progress_end(progress);
		return;
	}
	double seconds = (double)(proc_monotonic_ns() - progress->begun_ns) / 1e9;
	if (total_known && total)
		(void)snprintf(of, sizeof(of), " of %llu", (unsigned long long)total);
	/* The cursor stays at the start of the line, so that the next line of a daemon begins
	 * there. */
	(void)fprintf(stderr, "\r\033[Klisting: %llu%s objects, %.0f/s\r", (unsigned long long)done,
		of, (double)done / seconds);
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
