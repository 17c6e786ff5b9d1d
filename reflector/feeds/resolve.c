/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "common/check.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "reflector/record/batch.h"
#include "reflector/feed/definition.h"
#include "reflector/feeds/feeds_internal.h"

static int add_feed(struct feeds *feeds, struct configured_feed *w, struct feed_definition *definition)
{
	struct recorder *recorder = feeds->shared.recorder;
	struct feed_checkpoint checkpoint = {.phase = FEED_LISTING};
	struct journal_meta meta;
	char next[512];

	snprintf(next, sizeof(next), "%s" ENTRY_NEXT, w->entry.name);
	if (replace_has_old_of(feeds, w->entry.name))
		definition->name = next;
	int r = recorder_begin(recorder);
	if (r >= 0)
		r = journal_meta(feeds->journal, journal_txn(feeds->journal), &meta);
	if (r >= 0)
		r = journal_add_feed(feeds->journal, definition, &definition->id);
	if (r < 0)
		return recorder_fail(recorder, r);
	r = recorder_publish_from(recorder, meta.next_seq);
	/* On its own: what follows goes back to a checkpoint that must be there. */
	if (r >= 0)
		r = recorder_flush(recorder);
	if (r >= 0)
		r = session_new(&feeds->shared, definition, &checkpoint, w->entry.page_size, &w->session);
	if (r < 0)
		return r;
	configured_tune(w);
	LOG(feed_added, .feed = definition->name, .id = definition->id,
		.resource = definition->resource,
		.group = *definition->group ? definition->group : "core", .version = definition->version);
	if (feeds->started)
		session_start(w->session);
	return 0;
}

/* The entry is known to mean DEFINITION: go on with what it has, take what is there, or add it. */
static int settle(struct feeds *feeds, struct configured_feed *w, struct feed_definition *definition)
{
	if (w->session && definition_same(session_definition(w->session), definition))
		return 0;
	if (w->session) {
		int r = retired_add(feeds, w->session);

		if (r < 0)
			return r;
		w->session = NULL;
	}
	for (size_t i = 0; i < feeds->n_retired; i++) {
		if (!feeds->retired[i].removed && !feeds->retired[i].rolled_back &&
			definition_same(session_definition(feeds->retired[i].session), definition)) {
			w->session = retired_take(feeds, i);
			configured_tune(w);
			return 0;
		}
	}
	return add_feed(feeds, w, definition);
}

static enum feed_phase pending_phase(int error)
{
	if (error == ERR_NO_RESOURCE)
		return FEED_GONE;
	return error == ERR_CONFIG ? FEED_ERROR : FEED_LISTING;
}

void resolve_show(struct feeds *feeds, struct configured_feed *w, int error, const char *why)
{
	struct stats_feed *row = &w->pending;

	if (w->session)
		return; /* which says by itself what it lacks */
	if (!w->said)
		LOG(feed_unresolved, .feed = w->entry.name, .resource = w->entry.resource, .error = why);
	w->said = true;
	if (!row->feed)
		row->feed = STATS_PENDING | ++feeds->pending;
	row->phase = pending_phase(error);
	row->retries++;
	(void)snprintf(row->error, sizeof(row->error), "%s: %s", w->entry.name, why);
	(void)stats_feed_set(feeds->shared.stats, row); /* no room: no row */
}

void resolve_hide(struct feeds *feeds, struct configured_feed *w)
{
	if (w->pending.feed)
		(void)stats_feed_remove(feeds->shared.stats, w->pending.feed); /* perhaps it had none */
	w->pending = (struct stats_feed){0};
}

/* Uniform in [d, 2d), and the same for all that wait for one answer: one request is to serve them. */
static uint64_t drawn_out(const struct feeds *feeds, uint64_t pause)
{
	return pause ? pause + feeds->random % pause : 0;
}

/* Not at once; longer each time, where what is wrong may pass. */
static void ask_later(struct feeds *feeds, struct configured_feed *w, int error)
{
	const char *why = err_text(error);
	bool passing = error != ERR_NO_RESOURCE && error != ERR_CONFIG && error != ERR_FORBIDDEN;

	resolve_show(feeds, w, error, why);
	const struct config_policy *policy = &feeds->shared.policy;

	if (w->pause_ns > policy->backoff_max_ns)
		w->pause_ns = policy->backoff_max_ns;
	w->ask_ns = proc_monotonic_ns() + drawn_out(feeds, passing ? w->pause_ns : policy->recheck_ns);
	w->pause_ns *= 2;
}

/* Of a group that is gone only the name may be left, in another group. */
static bool is_same_resource(const struct configured_feed *w, const struct resource *resource)
{
	return entry_is_of(&w->entry, &(struct entry_resource){resource->group, resource->version,
		resource->plural});
}

/* Errors are the journal's. */
static int resolve(struct feeds *feeds, struct configured_feed *w)
{
	struct resource resource;
	struct feed_definition definition;
	int r = discovery_find(feeds->shared.discovery, w->entry.resource, &resource);

	if (r == AGAIN) {
		w->ask_ns = UINT64_MAX;
		return 0;
	}
	if (r == FOUND && w->wildcard && !is_same_resource(w, &resource))
		r = err_say(ERR_NO_RESOURCE, "the server has no resource '%s'", w->entry.resource);
	if (r == FOUND)
		r = entry_define(&w->entry, &resource, &definition);
	if (r < 0) {
		/* What has a session goes on with what was known. */
		ask_later(feeds, w, r);
		return 0;
	}
	w->said = false;
	w->pause_ns = FEEDS_RETRY_FIRST;
	int settled = settle(feeds, w, &definition);
	/* A batch that failed took the new feed with it: once more, when there is room again. */
	w->verified = settled >= 0;
	if (w->session)
		resolve_hide(feeds, w);
	return settled;
}

int resolve_due(struct feeds *feeds)
{
	uint64_t now = proc_monotonic_ns();
	int r = 0;

	for (size_t i = 0; r >= 0 && i < feeds->n_configured; i++)
		if (!feeds->configured[i].verified && feeds->configured[i].ask_ns <= now)
			r = resolve(feeds, &feeds->configured[i]);
	return r;
}

int feeds_discovered(struct feeds *feeds, int result)
{
	CHECK_OBJ(feeds, FEEDS_MAGIC);
	feeds->random = pace_random();
	wildcard_discovered(feeds, result);
	for (size_t i = 0; i < feeds->n_configured; i++) {
		struct configured_feed *w = &feeds->configured[i];

		if (w->verified || (result < 0 && w->ask_ns != UINT64_MAX))
			continue;
		w->ask_ns = 0; /* before a feed that waited for the same answer is listed */
		if (result < 0)
			ask_later(feeds, w, result);
	}
	for (size_t i = 0; i < feeds->n_configured; i++)
		if (feeds->configured[i].session)
			session_discovered(feeds->configured[i].session, result);
	for (size_t i = 0; i < feeds->n_retired; i++)
		session_discovered(feeds->retired[i].session, result);
	return 0;
}

void feeds_doubt(struct feeds *feeds)
{
	feeds->random = pace_random();
	for (size_t i = 0; i < feeds->n_configured; i++) {
		if (!feeds->configured[i].verified)
			continue;
		feeds->configured[i].verified = false;
		feeds->configured[i].ask_ns = proc_monotonic_ns() +
			drawn_out(feeds, FEEDS_RETRY_FIRST / 2);
	}
}
