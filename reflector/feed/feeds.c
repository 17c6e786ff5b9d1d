/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/feeds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "reflector/feed/feeds_internal.h"
#include "reflector/record/recorder.h"

#define PAGE_SIZE    500 /* of retired feeds */
#define SILENT_LISTS 32  /* at once, beside listConcurrency others */

/* ---- life --------------------------------------------------------------- */

/* Makes every stored feed a retired one at first; feeds_configure() takes its own back. */
static int feeds_load(struct feeds *feeds, struct txn *txn)
{
	CLEANUP(feed_walk_release) struct feed_walk walk = {feeds->journal, txn};
	int r = 0;

	while (r >= 0 && (r = feed_walk_next(&walk)) == FOUND) {
		struct configured_feed none = {.session = NULL};

		if (walk.checkpoint.phase == FEED_REMOVED)
			continue;
		r = session_new(&feeds->shared, &walk.definition, &walk.checkpoint, PAGE_SIZE,
			&none.session);
		if (r >= 0)
			r = retired_add(feeds, &none);
		session_free(&none.session);
	}
	return r < 0 ? r : 0;
}

static int feeds_on_list_end(void *arg, struct session *session)
{
	(void)session; /* it counts as listed already */
	return replace_ready(arg);
}

int feeds_new(
	struct journal *journal, const struct session_shared *shared, struct feeds **ret_feeds)
{
	CLEANUP(feeds_free) struct feeds *feeds = calloc(1, sizeof(*feeds));
	struct txn *txn;

	if (!feeds)
		return err_set(-ENOMEM, "feeds");
	feeds->magic = FEEDS_MAGIC;
	feeds->journal = journal;
	feeds->shared = *shared;
	feeds->shared.on_list_end = feeds_on_list_end;
	feeds->shared.list_arg = feeds;
	feeds->shared.pace = &feeds->pace;
	feeds->shared.warnings = &feeds->warnings;
	feeds->shared.outage = &feeds->outage;
	feeds->shared.timers = &feeds->timers;
	feeds->shared.queued = &feeds->queued;
	feeds->shared.listing = &feeds->listing;
	feeds->resolve_random = pace_random();
	int r = txn_begin_read(journal_env(journal), &txn);
	if (r < 0)
		return r;
	r = feeds_load(feeds, txn);
	if (r >= 0)
		r = order_load(feeds, txn);
	txn_abort(&txn);
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
	columns_release(f);
	buf_release(&f->order);
	timer_queue_release(&f->timers);
	f->magic = 0;
	free(f);
	*feeds = NULL;
}

/* Returns the session of the I-th configured, then retired feed; NULL: none, or about to be
 * removed. */
static struct session *feeds_session(const struct feeds *feeds, size_t i)
{
	if (i < feeds->n_configured)
		return feeds->configured[i].session;
	i -= feeds->n_configured;
	return feeds->retired[i].removed ? NULL : feeds->retired[i].session;
}

#define FEEDS_EACH_SESSION(feeds, s) \
	for (size_t i_ = 0; i_ < (feeds)->n_configured + (feeds)->n_retired; i_++) \
		for (struct session *s = feeds_session((feeds), i_); s; s = NULL)

void feeds_start(struct feeds *feeds)
{
	CHECK_OBJ(feeds, FEEDS_MAGIC);
	if (feeds->started)
		return;
	feeds->started = true;
	FEEDS_EACH_SESSION(feeds, session)
	session_on(session, FEED_ON_START);
}

/* ---- turns to list ------------------------------------------------------ */

struct list_turns {
	size_t busy;        /* lists with a turn: their server answers, or may still do so soon */
	uint64_t silent_at; /* the next of them does not from then on; UINT64_MAX: none */
	struct session *first; /* queued; NULL: none is */
};

static struct list_turns feeds_count_turns(const struct feeds *feeds, uint64_t now)
{
	struct list_turns t = {.silent_at = UINT64_MAX};

	FEEDS_EACH_SESSION(feeds, session)
	{
		if (session_is_queued(session)) {
			if (!t.first || session_place(session) < session_place(t.first))
				t.first = session;
		} else if (session_is_listing(session)) {
			uint64_t at = session_silent_at(session);

			t.busy += at > now;
			if (at > now && at < t.silent_at)
				t.silent_at = at;
		}
	}
	return t;
}

/*
 * Lets feeds list, up to the limit. A list without an answer takes no turn: a dead conversion
 * webhook of one resource holds up no other. A bounded number of such lists runs beside the turns.
 * Feeds that are silent each time leave room there for the others.
 */
static void feeds_give_turns(struct feeds *feeds, uint64_t now)
{
	size_t most = feeds->shared.policy.list_concurrency;
	feeds->turns_ns = UINT64_MAX;
	while (feeds->queued) {
		struct list_turns t = feeds_count_turns(feeds, now);
		if (t.busy >= most)
			feeds->turns_ns = t.silent_at;
		if (t.busy >= most || !t.first)
			return;
		if (feeds->listing >= SILENT_LISTS + (session_is_mute(t.first) ? 0 : most))
			return;
		session_on(t.first, FEED_ON_TURN);
	}
}

/* ---- turns of the loop -------------------------------------------------- */

/* Starts one consistency check at a time, of the first feed due. */
static void feeds_start_check(struct feeds *feeds, uint64_t now)
{
	uint64_t at = UINT64_MAX;
	struct session *first = NULL;

	if (feeds->checking || feeds->check_ns > now)
		return;
	FEEDS_EACH_SESSION(feeds, session)
	{
		if (session_check_at(session) < at) {
			at = session_check_at(session);
			first = session;
		}
	}
	feeds->check_ns = at;
	if (at > now)
		return;
	feeds->check_ns = 0;
	session_check_start(first);
	if (session_is_checking(first))
		feeds->checking = first;
}

int feeds_work(struct feeds *feeds)
{
	uint64_t now = proc_monotonic_ns();
	int more = 0;

	CHECK_OBJ(feeds, FEEDS_MAGIC);
	if (!feeds->started)
		return 0;
	int r = etcd_rollback_replace(feeds);
	if (r >= 0)
		r = resolve_due(feeds);
	if (r >= 0)
		r = wildcard_due(feeds);
	if (r >= 0)
		r = columns_due(feeds);
	if (r >= 0)
		r = order_due(feeds);
	if (r >= 0)
		feeds_start_check(feeds, now);
	timer_queue_touch_due(&feeds->timers, now);
	for (size_t i = 0; r >= 0 && i < timer_queue_touched(&feeds->timers); i++) {
		struct session *session = timer_queue_owner(&feeds->timers, i);

		r = session ? session_work(session) : 0;
		more = r == AGAIN ? AGAIN : more;
	}
	if (r >= 0 && feeds->names_changed && !feeds->removals_held)
		r = replace_ready(feeds);
	if (r < 0)
		return r;
	feeds_give_turns(feeds, now);
	return more;
}

static bool feeds_settle_one(void *arg, void *owner)
{
	struct feeds *feeds = arg;
	struct session *session = owner;

	if (feeds->checking == session && !session_is_checking(session)) {
		feeds->checking = NULL;
		feeds->check_ns = 0;
	}
	if (session_check_at(session) < feeds->check_ns)
		feeds->check_ns = session_check_at(session);
	wildcard_heard(feeds, session);
	return session_settle(session);
}

void feeds_settle(struct feeds *feeds)
{
	timer_queue_settle(&feeds->timers, feeds_settle_one, feeds);
}

uint64_t feeds_until(const struct feeds *feeds)
{
	uint64_t until = timer_queue_next(&feeds->timers);

	if (!feeds->started)
		return UINT64_MAX;
	if (!feeds->checking && feeds->check_ns < until)
		until = feeds->check_ns;
	if (feeds->n_wildcards && feeds->wildcards_ns < until)
		until = feeds->wildcards_ns;
	if (!feeds->columns.fetch && feeds->columns.due_ns < until)
		until = feeds->columns.due_ns;
	if (feeds->turns_ns < until)
		until = feeds->turns_ns;
	return feeds->resolve_ns < until ? feeds->resolve_ns : until;
}

void feeds_progress(struct feeds *feeds, uint32_t feed, uint64_t rv)
{
	CHECK_OBJ(feeds, FEEDS_MAGIC);
	FEEDS_EACH_SESSION(feeds, session)
	if (session_definition(session)->id == feed)
		session_progress(session, rv);
}

bool feeds_is_checking(const struct feeds *feeds)
{
	return feeds->checking != NULL;
}

/* ---- commits ------------------------------------------------------------ */

void feeds_committed(struct feeds *feeds)
{
	if (!feeds->commit_matters)
		return;
	feeds->commit_matters = false;
	for (size_t i = 0; i < feeds->n_configured; i++) {
		struct configured_feed *w = &feeds->configured[i];

		int r = w->renamed ? session_rename(w->session, w->entry.name) : 0;
		if (r < 0)
			feeds->names_changed = true;
		err_ignore(r, "the name is set once more");
		w->renamed = false;
	}
	for (size_t i = 0; i < feeds->n_retired;) {
		if (!feeds->retired[i].removed) {
			i++;
			continue;
		}
		struct session *session = retired_take(feeds, i);
		if (feeds->checking == session) {
			feeds->checking = NULL;
			feeds->check_ns = 0;
		}
		session_free(&session);
	}
}

int feeds_rewind(struct feeds *feeds, const char *why)
{
	int r = 0;

	for (size_t i = 0; i < feeds->n_configured; i++)
		feeds->configured[i].renamed = false;
	for (size_t i = 0; i < feeds->n_retired; i++)
		feeds->retired[i].removed = false;
	FEEDS_EACH_SESSION(feeds, session)
	r = r < 0 ? r : session_rewind(session, why);
	/* A full batch may have been committed between the removal and the failure. */
	for (size_t i = 0; i < feeds->n_retired; i++)
		feeds->retired[i].removed =
			session_record(feeds->retired[i].session)->phase == FEED_REMOVED;
	feeds->resyncs_changed = feeds->names_changed = feeds->commit_matters = true;
	feeds->order_changed = feeds->order.size != 0;
	return r;
}

void feeds_resume(struct feeds *feeds)
{
	FEEDS_EACH_SESSION(feeds, session)
	session_on(session, FEED_ON_RESUME);
}

int feeds_abandon_old(struct feeds *feeds, uint64_t limit_ns)
{
	int r = 0;

	FEEDS_EACH_SESSION(feeds, session)
	r = r < 0 ? r : session_abandon_old(session, limit_ns);
	return r;
}

uint64_t feeds_list_begin(const struct feeds *feeds)
{
	uint64_t begin = UINT64_MAX;

	FEEDS_EACH_SESSION(feeds, session)
	{
		const struct record_feed *record = session_record(session);

		if (record->listed && record->list_begin && record->list_begin < begin)
			begin = record->list_begin;
	}
	return begin;
}

/* ---- relisting on demand ------------------------------------------------- */

/* Returns true for the feed's own name; else NAME may be its resource's. */
static bool relist_is_named(const struct configured_feed *w, const char *name)
{
	const char *own = w->session ? session_definition(w->session)->name : w->entry.name;

	return own && strcmp(own, name) == 0;
}

/* Returns the first definition called NAME, NULL: none. */
static const struct feed_definition *relist_find(const struct feeds *feeds, const char *name)
{
	const struct feed_definition *first = NULL;

	for (size_t i = 0; i < feeds->n_configured; i++) {
		const struct session *session = feeds->configured[i].session;
		const struct feed_definition *d = session ? session_definition(session) : NULL;

		if (d && feed_definition_is_called(d, name) &&
			(!first || feed_definition_compare(
					   d, first, name, buf_bytes(&feeds->order)) < 0))
			first = d;
	}
	return first;
}

/* Lists the feed of W again, or asks discovery for it. Returns the obstacle, NULL: none. */
static const char *relist_one(struct feeds *feeds, struct configured_feed *w)
{
	if (!w->session) {
		resolve_at(feeds, w, 0);
		return w->pending.feed ? w->pending.error
				       : "the API server is asked for the resource first";
	}
	session_on(w->session, FEED_ON_RELIST);
	if (!feeds->started)
		return "this run of the reflector has not heard from the API server yet";
	size_t busy = feeds_count_turns(feeds, proc_monotonic_ns()).busy;
	if (session_is_queued(w->session) && busy >= feeds->shared.policy.list_concurrency)
		return "as many feeds as may at once are being listed";
	return session_obstacle(w->session);
}

int feeds_relist(struct feeds *feeds, const char *name, char ret_text[CONTROL_SIZE])
{
	const struct feed_definition *first = relist_find(feeds, name);
	const char *obstacle = NULL;
	bool named = false; /* readers mean this feed alone then */
	size_t n = 0;
	int size;

	for (size_t i = 0; i < feeds->n_configured; i++)
		named |= relist_is_named(&feeds->configured[i], name);
	for (size_t i = 0; i < feeds->n_configured; i++) {
		struct configured_feed *w = &feeds->configured[i];
		const struct feed_definition *d =
			w->session ? session_definition(w->session) : NULL;

		if (named ? !relist_is_named(w, name)
			  : !d || !feed_definition_is_called(d, name) ||
					feed_definition_compare(
						d, first, name, buf_bytes(&feeds->order)) != 0)
			continue;
		const char *why = relist_one(feeds, w);
		obstacle = obstacle ? obstacle : why;
		n++;
	}
	if (!n) {
		(void)snprintf(ret_text, CONTROL_SIZE,
			"no feed '%.200s': 'kinf status' shows the feeds, and what is wrong with "
			"those that could not be made yet",
			name);
		return err_say(ERR_NO_FEED, "%s", ret_text);
	}
	size = snprintf(
		ret_text, CONTROL_SIZE, obstacle ? "will be listed again" : "listing again");
	if (n > 1)
		size += snprintf(ret_text + size, CONTROL_SIZE - (size_t)size, " (%zu feeds)", n);
	if (obstacle)
		(void)snprintf(ret_text + size, CONTROL_SIZE - (size_t)size,
			", but not yet (it is tried until it succeeds): %s", obstacle);
	return 0;
}
