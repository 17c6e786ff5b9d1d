/* SPDX-License-Identifier: Apache-2.0 */
#include "command/readiness.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/daemon/parent.h"
#include "common/err.h"
#include "common/proc.h"
#include "common/stats.h"
#include "store/env/home.h"
#include "store/journal/journal.h"

#define CHECK_NS UINT64_C(1000000000)

/* Judges one daemon; on true *RET_SETTLED tells whether TEXT is an answer or only the moment. */
static bool readiness_judge_daemon(const struct child *child, const struct stats_process *process,
	bool found, bool *ret_settled, char *text, size_t size)
{
	*ret_settled = true;
	if (!child->pid)
		(void)snprintf(text, size, "%s does not run; it is started again", child->program);
	else if (!found || process->pid != child->pid)
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
	/* A daemon that has died before is not only starting. */
	*ret_settled = child->restarts > 0 || (found && process->pid == child->pid &&
						      (*process->error || !process->responding));
	return true;
}

static bool readiness_judge_feeds(const struct stats *page, char *text, size_t size)
{
	uint64_t done = 0, total = 0, feeds = 0, listing = 0, wrong = 0;
	char error[STATS_TEXT] = "";
	struct stats_feed row;
	int found;

	for (uint32_t i = 0; (found = stats_feed_at(page, i, &row)) != END; i++) {
		if (found != FOUND)
			continue;
		feeds++;
		if (row.error[0]) {
			if (!wrong++)
				(void)snprintf(error, sizeof(error), "%s", row.error);
		} else if (row.phase == FEED_LISTING) {
			listing++;
			done += row.list_done;
			total += row.list_total > row.list_done ? row.list_total : row.list_done;
		}
	}
	if (listing)
		(void)snprintf(text, size,
			"listing: %" PRIu64 " of %" PRIu64 " feeds, %" PRIu64 " of %" PRIu64
			" objects",
			feeds - listing, feeds, done, total);
	else if (wrong)
		(void)snprintf(text, size, "%" PRIu64 " of %" PRIu64 " feeds up to date; else: %s",
			feeds - wrong, feeds, error);
	else if (feeds)
		(void)snprintf(
			text, size, "%" PRIu64 " feed%s up to date", feeds, feeds == 1 ? "" : "s");
	else
		(void)snprintf(text, size, "no feeds yet");
	return feeds && !listing;
}

/* Writes the state of the whole into TEXT. Returns whether readers get answers, or TEXT says why
 * they get none. */
static bool readiness_judge(
	const struct config *config, const struct children *children, char *text, size_t size)
{
	CLEANUP(home_close) struct home *home = NULL;
	CLEANUP(stats_close) struct stats *reflector = NULL;
	int r = home_open(config->store, &(struct home_options){0}, &home);

	err_ignore(r, "the daemons make the store; the next check opens it");
	for (size_t i = 0; i < children->n; i++) {
		const struct child *child = &children->child[i];
		CLEANUP(stats_close) struct stats *page = NULL;
		struct stats_process process = {0};
		bool settled;

		if (home && home_runtime_fd(home) >= 0)
			err_ignore(child_open_page(child, home_runtime_fd(home), &page),
				"the daemon is starting");
		if (readiness_judge_daemon(child, &process,
			    page && stats_process(page, &process) == 0, &settled, text, size))
			return settled;
		if (strcmp(child->program, "kinf-reflector") == 0)
			reflector = TAKE(page);
	}
	return reflector && readiness_judge_feeds(reflector, text, size);
}

void readiness_check(struct run_readiness *readiness, const struct children *children)
{
	char text[sizeof(readiness->text)] = "starting", message[sizeof(text) + 64];
	uint64_t now = proc_monotonic_ns();

	if (!parent_has_manager() || now - readiness->checked_ns < CHECK_NS)
		return;
	readiness->checked_ns = now;
	bool ready = readiness_judge(readiness->config, children, text, sizeof(text));
	bool first = ready && !readiness->ready;
	readiness->ready |= ready;
	if (readiness->ready && !first && strcmp(text, readiness->text) == 0)
		return;
	for (char *p = text; *p; p++)
		if (*p == '\n')
			*p = ' '; /* each line of a message is an assignment */
	(void)snprintf(readiness->text, sizeof(readiness->text), "%s", text);
	(void)snprintf(message, sizeof(message), "%sSTATUS=%s",
		first              ? "READY=1\n"
		: readiness->ready ? ""
				   : "EXTEND_TIMEOUT_USEC=30000000\n",
		text);
	parent_notify(message);
}
