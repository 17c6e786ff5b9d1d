/* SPDX-License-Identifier: Apache-2.0 */
#include "command/manage/health.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/daemon/parent.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "common/stats.h"
#include "store/env/home.h"
#include "store/journal/journal.h"

#define CHECK_NS    UINT64_C(1000000000)
#define BUSY_FACTOR 10

/* A child's status page. */
struct health_page {
	struct stats *page; /* NULL: none */
	struct stats_process process;
	bool is_own;     /* of the running process, not its predecessor */
	bool is_unknown; /* it is unreadable */
};

struct health_feeds {
	uint64_t n, listing, wrong; /* listing: without an error */
	uint64_t done, total;       /* objects of all lists */
	bool has_lists;
	char error[STATS_TEXT]; /* the first one */
};

static void health_read_page(
	const struct home *home, const struct child *child, struct health_page *page)
{
	char name[64];

	if (!home || home_runtime_fd(home) < 0)
		return;
	(void)snprintf(name, sizeof(name), "stats.%s", child->program + strlen("kinf-"));
	int r = stats_open(home_runtime_fd(home), name, &page->page);
	if (r == 0)
		r = stats_process(page->page, &page->process);
	page->is_unknown = r < 0 && r != -ENOENT && r != ERR_FORMAT;
	err_ignore(r, "the daemon has not made its page yet, or the next check reads it");
	page->is_own = r == 0 && page->process.alive && page->process.pid == child->pid;
}

/* ---- hanging daemons ---------------------------------------------------- */

/* Returns true if the process has used the processor since the last check or waits for a disk; sets
 * *RET_DOING to a word for it. An unreadable process counts as busy. */
static bool silence_is_busy(struct silence *silence, const char **ret_doing)
{
	struct proc_stat stat;
	int r = proc_read_stat(silence->pid, &stat);

	*ret_doing = "busy";
	if (r < 0) {
		err_ignore(r, "the process has ended, or the next check reads it again");
		return true;
	}
	bool used = stat.cpu_ticks > silence->cpu_ticks;
	silence->cpu_ticks = stat.cpu_ticks;
	*ret_doing = stat.state == 'D'                        ? "waits for a disk"
		     : used                                   ? "uses the processor"
		     : stat.state == 'T' || stat.state == 't' ? "stopped by a signal"
							      : "waits";
	return stat.state == 'D' || used;
}

static void health_check_silence(const struct health *health, struct silence *silence,
	const struct home *home, const struct child *child, const struct health_page *page)
{
	uint64_t limit = health->config->hang_ns, now = health->checked_ns;
	const char *doing;

	if (silence->pid != child->pid)
		*silence = (struct silence){.pid = child->pid, .since_ns = child->started_ns};
	if (page->is_unknown)
		silence->since_ns = now;
	else if (page->is_own && page->process.heartbeat_ns > silence->since_ns)
		silence->since_ns = page->process.heartbeat_ns;
	/* A heartbeat after this check began is newer than NOW. */
	uint64_t silent = now > silence->since_ns ? now - silence->since_ns : 0;
	bool busy = silence_is_busy(silence, &doing);
	/* On a full disk its page is missing. */
	if (silent >= limit && strcmp(doing, "waits") == 0 && home && home_lacks_room(home)) {
		silence->since_ns = now;
		silent = 0;
	}
	if (busy || silent < limit)
		silence->idle_ns = 0;
	else if (!silence->idle_ns)
		silence->idle_ns = now;
	/* Idle at two checks: a process just back from a long write is not hung. */
	if (silent < limit * BUSY_FACTOR && (!silence->idle_ns || silence->idle_ns == now))
		return;
	LOG(child_hung, .daemon = child->program, .pid = child->pid, .silent_seconds = silent,
		.doing = doing,
		.state = page->is_own && *page->process.state ? page->process.state : "starting");
	(void)kill(child->pid, SIGKILL); /* ends stopped processes too; gone: reaped soon */
	silence->since_ns = now;         /* its death may take a moment */
	silence->idle_ns = 0;
}

/* ---- words -------------------------------------------------------------- */

/* Returns true, with the reason in TEXT, if the daemon does not work. *RET_SETTLED: it is more than
 * a start. */
static bool health_describe_fault(const struct child *child, const struct health_page *page,
	bool *ret_settled, char *text, size_t size)
{
	const struct stats_process *process = &page->process;

	/* A daemon that has died before is not only starting. */
	*ret_settled =
		child->restarts > 0 || (page->is_own && (*process->error || !process->responding));
	if (!child->pid)
		(void)snprintf(text, size, "%s does not run; it is started again", child->program);
	else if (!page->is_own)
		(void)snprintf(text, size, "%s is starting", child->program);
	else if (!process->responding)
		(void)snprintf(text, size, "%s does not respond", child->program);
	else if (*process->error)
		(void)snprintf(
			text, size, "%s: %s: %s", child->program, process->state, process->error);
	else if (strncmp(process->state, "running", strlen("running")) != 0)
		(void)snprintf(text, size, "%s: %s", child->program, process->state);
	else
		return false;
	return true;
}

static void health_count_feeds(const struct stats *page, struct health_feeds *feeds)
{
	struct stats_feed row;
	int found;

	for (uint32_t i = 0; (found = stats_feed_at(page, i, &row)) != END; i++) {
		if (found != FOUND)
			continue;
		feeds->n++;
		if (row.error[0] && !feeds->wrong++)
			(void)snprintf(feeds->error, sizeof(feeds->error), "%s", row.error);
		if (row.phase != FEED_LISTING || (row.feed & STATS_PENDING))
			continue;
		feeds->has_lists = true;
		feeds->listing += !row.error[0];
		feeds->done += row.list_done;
		feeds->total += row.list_total > row.list_done ? row.list_total : row.list_done;
	}
}

static void health_describe_feeds(const struct health_feeds *feeds, char *text, size_t size)
{
	if (feeds->listing)
		(void)snprintf(text, size,
			"listing: %" PRIu64 " of %" PRIu64 " feeds, %" PRIu64 " of %" PRIu64
			" objects",
			feeds->n - feeds->listing, feeds->n, feeds->done, feeds->total);
	else if (feeds->wrong)
		(void)snprintf(text, size, "%" PRIu64 " of %" PRIu64 " feeds up to date; else: %s",
			feeds->n - feeds->wrong, feeds->n, feeds->error);
	else if (feeds->n)
		(void)snprintf(text, size, "%" PRIu64 " feed%s up to date", feeds->n,
			feeds->n == 1 ? "" : "s");
	else
		(void)snprintf(text, size, "no feeds yet");
}

static void health_notify(struct health *health, bool ready, char *text)
{
	char message[sizeof(health->status) + 64];
	bool first = ready && !health->ready;

	health->ready |= ready;
	if (health->ready && !first && strcmp(text, health->status) == 0)
		return;
	for (char *p = text; *p; p++)
		if (*p == '\n')
			*p = ' '; /* each line of a message is an assignment */
	(void)snprintf(health->status, sizeof(health->status), "%s", text);
	(void)snprintf(message, sizeof(message), "%sSTATUS=%s",
		first           ? "READY=1\n"
		: health->ready ? ""
				: "EXTEND_TIMEOUT_USEC=30000000\n",
		text);
	parent_notify(message);
}

void health_check(struct health *health, const struct children *children)
{
	CLEANUP(home_close) struct home *home = NULL;
	char text[sizeof(health->status)] = "starting";
	bool faulty = false, settled = false;
	struct health_feeds feeds = {0};
	uint64_t now = proc_monotonic_ns();

	if (now - health->checked_ns < CHECK_NS)
		return;
	health->checked_ns = now;
	err_ignore(home_open(health->config->store, &(struct home_options){0}, &home),
		"the daemons make the store; the next check opens it");
	for (size_t i = 0; i < children->n && i < HEALTH_MAX; i++) {
		const struct child *child = &children->child[i];
		struct health_page page = {0};

		health_read_page(home, child, &page);
		if (child->pid && health->config->hang_ns) /* 0: never */
			health_check_silence(health, &health->silence[i], home, child, &page);
		if (!faulty)
			faulty = health_describe_fault(child, &page, &settled, text, sizeof(text));
		if (page.is_own && strcmp(child->program, "kinf-reflector") == 0)
			health_count_feeds(page.page, &feeds);
		stats_close(&page.page);
	}
	if (!faulty)
		health_describe_feeds(&feeds, text, sizeof(text));
	if (parent_has_manager())
		health_notify(health, faulty ? settled : feeds.n && !feeds.listing, text);
	if (health->has_listed || !feeds.n)
		return;
	if (feeds.has_lists) {
		health->ticker.what = "listing";
		ticker_show(&health->ticker, feeds.done, feeds.total, "objects");
	} else {
		health_end(health);
	}
}

void health_end(struct health *health)
{
	ticker_clear(&health->ticker);
	health->has_listed = true;
}
