/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feeds/feeds.h"

#include <errno.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "reflector/feeds/feeds_internal.h"

#define PAGE_SIZE     500 /* of what nobody wants any more */

/* ---- life ---- */

struct load {
	struct feeds *feeds;
	int result;
};

/* At first nobody wants any of them; feeds_configure then takes what is meant. */
static int load_feed(void *arg, const struct feed_definition *definition,
	const struct feed_checkpoint *checkpoint)
{
	struct load *load = arg;
	CLEANUP(session_free) struct session *session = NULL;

	if (checkpoint->phase == FEED_REMOVED)
		return 0;
	load->result = session_new(&load->feeds->shared, definition, checkpoint, PAGE_SIZE, &session);
	if (load->result >= 0)
		load->result = retired_add(load->feeds, session);
	if (load->result >= 0)
		session = NULL;
	return load->result < 0;
}

static int load_feeds(struct feeds *feeds)
{
	struct load load = {.feeds = feeds};
	struct txn *txn;
	int r = txn_begin_read(journal_env(feeds->journal), &txn);

	if (r < 0)
		return r;
	r = journal_each_feed(feeds->journal, txn, load_feed, &load);
	txn_abort(&txn);
	return r < 0 ? r : load.result;
}

static int on_list_end(void *arg, struct session *session)
{
	struct feeds *feeds = arg;

	(void)session; /* it counts as listed already */
	return replace_ready(feeds);
}

int feeds_new(struct journal *journal, const struct session_shared *shared,
	struct feeds **ret_feeds)
{
	CLEANUP(feeds_free) struct feeds *feeds = calloc(1, sizeof(*feeds));

	if (!feeds)
		return err_set(-ENOMEM, "feeds");
	feeds->magic = FEEDS_MAGIC;
	feeds->journal = journal;
	feeds->shared = *shared;
	feeds->shared.on_list_end = on_list_end;
	feeds->shared.list_arg = feeds;
	feeds->shared.pace = &feeds->pace;
	feeds->random = pace_random();
	feeds->shared.warnings = &feeds->warnings;
	int r = load_feeds(feeds);
	if (r < 0)
		return r;
	*ret_feeds = TAKE(feeds);
	return 0;
}

void feeds_free(struct feeds **feeds)
{
	struct feeds *f = *feeds;

	if (!f)
		return;
	CHECK_OBJ(f, FEEDS_MAGIC);
	for (size_t i = 0; i < f->n_configured; i++)
		resolve_hide(f, &f->configured[i]);
	configured_release(f->configured, f->n_configured);
	wildcard_release(f);
	for (size_t i = 0; i < f->n_retired; i++)
		session_free(&f->retired[i].session);
	free(f->retired);
	f->magic = 0;
	free(f);
	*feeds = NULL;
}

typedef int each_fn(struct feeds *feeds, struct session *session, void *arg);

/* Calls FN for each session that is not about to go; stops at the first error. AGAIN of one is AGAIN
 * of all. */
static int each(struct feeds *feeds, each_fn *fn, void *arg)
{
	int result = 0;

	for (size_t i = 0; i < feeds->n_configured + feeds->n_retired; i++) {
		const struct retired_feed *u = i < feeds->n_configured ? NULL
			: &feeds->retired[i - feeds->n_configured];
		struct session *session = u ? u->session : feeds->configured[i].session;

		if (!session || (u && u->removed))
			continue;
		int r = fn(feeds, session, arg);
		if (r < 0)
			return r;
		if (r == AGAIN)
			result = AGAIN;
	}
	return result;
}

static int start_one(struct feeds *feeds, struct session *session, void *arg)
{
	(void)feeds;
	(void)arg;
	session_start(session);
	return 0;
}

int feeds_start(struct feeds *feeds)
{
	CHECK_OBJ(feeds, FEEDS_MAGIC);
	if (feeds->started)
		return 0;
	feeds->started = true;
	return each(feeds, start_one, NULL);
}

/* Places among the lists: the one that has waited longest comes first. */
struct queue {
	size_t listing;
	struct session *first;
};

static int look_at_queue(struct feeds *feeds, struct session *session, void *arg)
{
	struct queue *queue = arg;
	uint64_t queued = session_queued(session);

	(void)feeds;
	queue->listing += session_is_listing(session);
	if (queued && (!queue->first || queued < session_queued(queue->first)))
		queue->first = session;
	return 0;
}

static void grant_turns(struct feeds *feeds)
{
	for (;;) {
		struct queue queue = {0};

		(void)each(feeds, look_at_queue, &queue);
		if (!queue.first || queue.listing >= feeds->shared.policy.list_concurrency)
			return;
		session_take_turn(queue.first);
	}
}

/* One consistency check at a time, of the feed that is due first. */
struct checks {
	bool running;
	uint64_t at;
	struct session *first;
};

static int look_at_checks(struct feeds *feeds, struct session *session, void *arg)
{
	struct checks *checks = arg;
	uint64_t at = session_check_at(session);

	(void)feeds;
	checks->running |= session_is_checking(session);
	if (at < checks->at)
		*checks = (struct checks){checks->running, at, session};
	return 0;
}

static struct checks find_checks(struct feeds *feeds)
{
	struct checks checks = {.at = UINT64_MAX};

	if (feeds->shared.policy.check_ns)
		(void)each(feeds, look_at_checks, &checks);
	if (checks.running)
		checks.at = UINT64_MAX;
	return checks;
}

static void start_check(struct feeds *feeds, uint64_t now)
{
	struct checks checks = find_checks(feeds);

	if (checks.at <= now)
		session_check_start(checks.first);
}

static int work_one(struct feeds *feeds, struct session *session, void *arg)
{
	(void)feeds;
	if (session_until(session) <= *(const uint64_t *)arg)
		session_tick(session);
	return session_work(session);
}

int feeds_work(struct feeds *feeds)
{
	uint64_t now = proc_monotonic_ns();

	CHECK_OBJ(feeds, FEEDS_MAGIC);
	if (!feeds->started)
		return 0;
	int r = etcd_rollback_replace(feeds);
	if (r >= 0)
		r = resolve_due(feeds);
	if (r >= 0)
		r = wildcard_due(feeds);
	int more = r < 0 ? r : each(feeds, work_one, &now);
	if (more >= 0 && replace_is_due(feeds)) {
		r = replace_ready(feeds);
		more = r < 0 ? r : more;
	}
	if (more >= 0) {
		grant_turns(feeds);
		start_check(feeds, now);
	}
	return more;
}

static int until_one(struct feeds *feeds, struct session *session, void *arg)
{
	uint64_t *until = arg;

	(void)feeds;
	if (session_until(session) < *until)
		*until = session_until(session);
	return 0;
}

uint64_t feeds_until(const struct feeds *feeds)
{
	uint64_t until = UINT64_MAX;

	if (!feeds->started)
		return until;
	until = find_checks((struct feeds *)feeds).at;
	if (wildcard_until(feeds) < until)
		until = wildcard_until(feeds);
	(void)each((struct feeds *)feeds, until_one, &until);
	for (size_t i = 0; i < feeds->n_configured; i++)
		if (!feeds->configured[i].verified && feeds->configured[i].ask_ns < until)
			until = feeds->configured[i].ask_ns;
	return until;
}

void feeds_committed(struct feeds *feeds)
{
	for (size_t i = 0; i < feeds->n_configured; i++) {
		struct configured_feed *w = &feeds->configured[i];

		/* Without memory for the name it is given once more. */
		if (w->renamed && session_rename(w->session, w->entry.name) < 0)
			err_clear();
		w->renamed = false;
		if (w->session)
			session_committed(w->session);
	}
	for (size_t i = 0; i < feeds->n_retired;) {
		if (!feeds->retired[i].removed) {
			i++;
			continue;
		}
		struct session *session = retired_take(feeds, i);
		session_free(&session);
	}
}

static int rewind_one(struct feeds *feeds, struct session *session, void *arg)
{
	(void)feeds;
	return session_rewind(session, arg);
}

int feeds_rewind(struct feeds *feeds, const char *why)
{
	for (size_t i = 0; i < feeds->n_configured; i++)
		feeds->configured[i].renamed = false;
	for (size_t i = 0; i < feeds->n_retired; i++)
		feeds->retired[i].removed = false;
	int r = each(feeds, rewind_one, (void *)why);
	/* A full batch may have been committed between the removal and the failure. */
	for (size_t i = 0; i < feeds->n_retired; i++)
		feeds->retired[i].removed = session_is_removed(feeds->retired[i].session);
	return r;
}

static int resume_one(struct feeds *feeds, struct session *session, void *arg)
{
	(void)feeds;
	(void)arg;
	session_resume(session);
	return 0;
}

void feeds_resume(struct feeds *feeds)
{
	(void)each(feeds, resume_one, NULL);
}

static int abandon_one(struct feeds *feeds, struct session *session, void *arg)
{
	(void)feeds;
	return session_abandon_old(session, *(const uint64_t *)arg);
}

int feeds_abandon_old(struct feeds *feeds, uint64_t limit_ns)
{
	return each(feeds, abandon_one, &limit_ns);
}

static int begin_one(struct feeds *feeds, struct session *session, void *arg)
{
	uint64_t *begin = arg;

	(void)feeds;
	if (session_list_begin(session) < *begin)
		*begin = session_list_begin(session);
	return 0;
}

uint64_t feeds_list_begin(const struct feeds *feeds)
{
	uint64_t begin = UINT64_MAX;

	(void)each((struct feeds *)feeds, begin_one, &begin);
	return begin;
}

static int report_one(struct feeds *feeds, struct session *session, void *arg)
{
	(void)feeds;
	(void)arg;
	session_report(session);
	return 0;
}

void feeds_report(struct feeds *feeds)
{
	(void)each(feeds, report_one, NULL);
}

size_t feeds_count(const struct feeds *feeds)
{
	return feeds->n_configured;
}
