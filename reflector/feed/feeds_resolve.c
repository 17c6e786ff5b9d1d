/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds or makes the feed of each configured entry: discovery knows the entry's resource; a feed of
 * the definition is found in the journal, or added.
 */
#include <stdio.h>

#include "common/check.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "reflector/feed/definition.h"
#include "reflector/feed/feeds_internal.h"
#include "reflector/record/recorder.h"

#define ORDER_MAX (256u << 10) /* a cluster with 1,000 groups has 30 kB */

/* ---- the status row of an entry without a feed -------------------------- */

static void resolve_set_row(
	struct feeds *feeds, struct configured_feed *w, uint32_t phase, const char *why)
{
	struct stats_feed *row = &w->pending;

	if (!row->feed)
		row->feed = STATS_PENDING | ++feeds->pending;
	row->phase = phase;
	row->retries++;
	(void)snprintf(row->error, sizeof(row->error), "%s: %s", w->entry.name, why);
	(void)stats_feed_set(feeds->shared.stats, row); /* no room: no row */
}

void resolve_show(struct feeds *feeds, struct configured_feed *w, int error, const char *why)
{
	if (w->session)
		return; /* the session's row says why */
	if (!w->warned)
		LOG(feed_unresolved, .feed = w->entry.name, .resource = w->entry.resource,
			.error = why);
	w->warned = true;
	feeds->names_changed = true;
	resolve_set_row(feeds, w,
		error == ERR_NO_RESOURCE ? FEED_GONE
		: error == ERR_CONFIG    ? FEED_ERROR
					 : FEED_LISTING,
		why);
}

static void resolve_show_obstacle(struct feeds *feeds, struct configured_feed *w, const char *why)
{
	const char *shown = strstr(w->pending.error, ": ");

	/* The row may be too short for all of it. */
	if (!w->session && (!shown || strncmp(shown + 2, why, strlen(shown + 2)) != 0))
		resolve_set_row(feeds, w, FEED_LISTING, why);
}

void feeds_show_obstacle(struct feeds *feeds, const char *why)
{
	CHECK_OBJ(feeds, FEEDS_MAGIC);
	for (size_t i = 0; i < feeds->n_configured; i++)
		resolve_show_obstacle(feeds, &feeds->configured[i], why);
	for (size_t i = 0; i < feeds->n_wildcards; i++)
		if (!wildcard_stands_for_any(feeds, feeds->wildcards[i].wildcard))
			resolve_show_obstacle(feeds, &feeds->wildcards[i], why);
}

void resolve_hide(struct feeds *feeds, struct configured_feed *w)
{
	if (w->pending.feed)
		(void)stats_feed_remove(
			feeds->shared.stats, w->pending.feed); /* perhaps it had none */
	w->pending = (struct stats_feed){0};
}

/* ---- adding ------------------------------------------------------------- */

static int resolve_add_feed(
	struct feeds *feeds, struct configured_feed *w, struct feed_definition *definition)
{
	struct recorder *recorder = feeds->shared.recorder;
	struct feed_checkpoint checkpoint = {.phase = FEED_LISTING};
	struct session *session;
	struct journal_meta meta;
	char next[512];

	snprintf(next, sizeof(next), "%s" FEED_NEXT, w->entry.name);
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
	/* In a transaction of its own: the session needs a checkpoint to go back to. */
	if (r >= 0)
		r = recorder_flush(recorder);
	if (r >= 0)
		r = session_new(
			&feeds->shared, definition, &checkpoint, w->entry.page_size, &session);
	if (r < 0)
		return r;
	configured_take(feeds, w, session);
	LOG(feed_added, .feed = definition->name, .id = definition->id,
		.resource = definition->resource,
		.group = *definition->group ? definition->group : "core",
		.version = definition->version);
	if (feeds->started)
		session_on(session, FEED_ON_START);
	return 0;
}

/* Short names and categories may change while everything else of a custom resource stays. */
static int resolve_take_aliases(
	struct feeds *feeds, struct session *session, const struct feed_definition *resolved)
{
	const struct feed_definition *d = session_definition(session);

	if (strcmp(d->aliases, resolved->aliases) == 0 &&
		strcmp(d->categories, resolved->categories) == 0)
		return 0;
	int r = recorder_change_feed(feeds->shared.recorder, d->id,
		&(struct feed_change){
			.aliases = resolved->aliases, .categories = resolved->categories});
	return r < 0 ? r : session_set_aliases(session, resolved->aliases, resolved->categories);
}

/* W is known to mean DEFINITION: it goes on with its session, takes a retired one, or gets a new
 * feed. */
static int resolve_settle(
	struct feeds *feeds, struct configured_feed *w, struct feed_definition *definition)
{
	if (w->session && definition_same(session_definition(w->session), definition))
		return resolve_take_aliases(feeds, w->session, definition);
	if (w->session) {
		int r = retired_add(feeds, w);

		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < feeds->n_retired; i++) {
		const struct retired_feed *old = &feeds->retired[i];

		if (!old->removed && !old->rolled_back &&
			definition_same(session_definition(old->session), definition)) {
			configured_take(feeds, w, retired_take(feeds, i));
			return resolve_take_aliases(feeds, w->session, definition);
		}
	}
	return resolve_add_feed(feeds, w, definition);
}

/* ---- asking ------------------------------------------------------------- */

void resolve_at(struct feeds *feeds, struct configured_feed *w, uint64_t time_ns)
{
	w->verified = false;
	w->ask_ns = time_ns;
	if (time_ns < feeds->resolve_ns)
		feeds->resolve_ns = time_ns;
}

bool resolve_is_renamed(const struct configured_feed *w, const struct resource *resource)
{
	const struct feed_definition *d = w->session ? session_definition(w->session) : NULL;

	return d && (strcmp(d->aliases, resource->aliases) != 0 ||
			    strcmp(d->categories, resource->categories) != 0);
}

/* Tells whether discovery has other names for the resource of the written entry W. */
static bool resolve_has_other_names(const struct feeds *feeds, const struct configured_feed *w)
{
	struct resource found;

	if (w->wildcard || !w->session) /* wildcard_take() looks at those of wildcards */
		return false;
	int r = discovery_known(feeds->shared.discovery, w->entry.resource, &found);
	err_ignore(r, "the feed keeps the names that it has");
	return r == FOUND && resolve_is_renamed(w, &found);
}

/* Returns a time uniform in [PAUSE, 2 * PAUSE) from now, the same for all entries waiting for one
 * answer: one request serves them. */
static uint64_t resolve_later(const struct feeds *feeds, uint64_t pause)
{
	return proc_monotonic_ns() + (pause ? pause + feeds->resolve_random % pause : 0);
}

/* Lets W ask again: after a growing pause if the fault may pass, else after `recheck`. */
static void resolve_failed(struct feeds *feeds, struct configured_feed *w, int error)
{
	const struct config_policy *policy = &feeds->shared.policy;
	bool passing = error != ERR_NO_RESOURCE && error != ERR_CONFIG && error != ERR_FORBIDDEN;

	resolve_show(feeds, w, error, err_text(error));
	if (w->pause_ns > policy->backoff_max_ns)
		w->pause_ns = policy->backoff_max_ns;
	resolve_at(feeds, w, resolve_later(feeds, passing ? w->pause_ns : policy->recheck_ns));
	w->pause_ns *= 2;
}

/* Errors are the journal's; discovery's are shown. */
static int resolve_one(struct feeds *feeds, struct configured_feed *w)
{
	struct resource resource;
	struct feed_definition definition;
	int r = discovery_find(feeds->shared.discovery, w->entry.resource, &resource);

	if (r == AGAIN) {
		w->ask_ns = UINT64_MAX;
		return 0;
	}
	/* If a wildcard's group is gone, the name may mean a resource of another group. */
	if (r == FOUND && w->wildcard &&
		!entry_is_of(&w->entry, &(struct entry_resource){
						resource.group, resource.version, resource.plural}))
		r = err_say(ERR_NO_RESOURCE, "the server has no resource '%s'", w->entry.resource);
	/* Another group's resource of that name does not replace the feed's own. */
	if (r == FOUND && w->session &&
		strcmp(session_definition(w->session)->group, resource.group) != 0)
		r = err_say(ERR_NO_RESOURCE, "the server has no resource '%s' of the feed's group",
			w->entry.resource);
	if (r == FOUND)
		r = entry_define(&w->entry, &resource, &definition);
	if (r < 0) {
		resolve_failed(feeds, w, r); /* a session goes on as before */
		return 0;
	}
	w->warned = false;
	w->pause_ns = FEEDS_RETRY_FIRST;
	r = resolve_settle(feeds, w, &definition);
	/* A failed batch took the new feed with it: ask again when there is room. */
	w->verified = r >= 0;
	if (w->session)
		resolve_hide(feeds, w);
	return r;
}

int resolve_due(struct feeds *feeds)
{
	uint64_t now = proc_monotonic_ns();
	int r = 0;

	if (feeds->resolve_ns > now)
		return 0;
	feeds->resolve_ns = UINT64_MAX;
	for (size_t i = 0; i < feeds->n_configured; i++) {
		struct configured_feed *w = &feeds->configured[i];

		if (r >= 0 && !w->verified && w->ask_ns <= now)
			r = resolve_one(feeds, w);
		if (!w->verified && w->ask_ns < feeds->resolve_ns)
			feeds->resolve_ns = w->ask_ns;
	}
	return r;
}

/* ---- the order of discovery ---------------------------------------------- */

/*
 * Keeps the order of discovery in the journal: readers take the first of several resources with one
 * name, as kubectl does, also while the API server is away and in a copy of the store.
 */

int order_load(struct feeds *feeds, struct txn *txn)
{
	struct bytes stored;
	int r = journal_order(feeds->journal, txn, &stored);

	if (r < 0)
		return r;
	buf_bytes_put(&feeds->order, stored);
	return buf_error(&feeds->order);
}

/* Takes over discovery's order of groups and versions. */
static void order_discovered(struct feeds *feeds)
{
	const struct resource *last = NULL, *resource;
	size_t at = 0;

	buf_reset(&feeds->order);
	/* The first lines are enough: the API server's own groups come first. */
	while (feeds->order.size <= ORDER_MAX &&
		(resource = discovery_next(feeds->shared.discovery, &at))) {
		if (!last || strcmp(last->group, resource->group) != 0 ||
			strcmp(last->version, resource->version) != 0)
			buf_printf(&feeds->order, "%s%s%s\n", resource->group,
				*resource->group ? "/" : "", resource->version);
		last = resource;
	}
	if (buf_error(&feeds->order) < 0)
		buf_reset(&feeds->order);
	feeds->order_changed = feeds->order.size != 0;
}

int order_due(struct feeds *feeds)
{
	struct recorder *recorder = feeds->shared.recorder;

	if (!feeds->order_changed)
		return 0;
	int r = recorder_begin(recorder);
	if (r < 0)
		return r;
	feeds->order_changed = false;
	return recorder_changed(
		recorder, journal_set_order(feeds->journal, buf_bytes(&feeds->order)));
}

/* ---- answers of discovery ------------------------------------------------ */

void feeds_discovered(struct feeds *feeds, int result)
{
	CHECK_OBJ(feeds, FEEDS_MAGIC);
	feeds->resolve_random = pace_random();
	wildcard_discovered(feeds, result);
	if (result >= 0)
		order_discovered(feeds);
	for (size_t i = 0; i < feeds->n_configured; i++) {
		struct configured_feed *w = &feeds->configured[i];

		if (w->verified ? result < 0 || !resolve_has_other_names(feeds, w)
				: result < 0 && w->ask_ns != UINT64_MAX)
			continue;
		resolve_at(feeds, w, 0); /* before a feed lists that waited for the same answer */
		if (result < 0)
			resolve_failed(feeds, w, result);
	}
	for (size_t i = 0; i < feeds->n_configured; i++)
		if (feeds->configured[i].session)
			session_discovered(feeds->configured[i].session, result);
	for (size_t i = 0; i < feeds->n_retired; i++)
		session_discovered(feeds->retired[i].session, result);
}

void feeds_rediscover(struct feeds *feeds)
{
	feeds->resolve_random = pace_random();
	for (size_t i = 0; i < feeds->n_configured; i++)
		if (feeds->configured[i].verified)
			resolve_at(feeds, &feeds->configured[i],
				resolve_later(feeds, FEEDS_RETRY_FIRST / 2));
}
