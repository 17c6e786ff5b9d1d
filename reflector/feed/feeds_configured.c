/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes configured feeds from the entries of the configuration. An unchanged entry keeps its feed.
 * A new entry takes over a matching feed of the journal; without one it waits for discovery
 * (resolve.c). Feeds without an entry are retired.
 */
#include <stdlib.h>

#include "common/array.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "reflector/feed/feeds_internal.h"

/* ---- the two lists ------------------------------------------------------ */

int retired_add(struct feeds *feeds, struct configured_feed *w)
{
	struct retired_feed old = {.session = w->session, .rolled_back = w->rolled_back};
	int r = ARRAY_ADD(
		feeds->retired, feeds->n_retired, feeds->retired_room, old, "the list of feeds");

	if (r < 0)
		return r;
	w->session = NULL;
	feeds->names_changed = true;
	return 0;
}

struct session *retired_take(struct feeds *feeds, size_t i)
{
	struct session *session = feeds->retired[i].session;

	feeds->retired[i] = feeds->retired[--feeds->n_retired];
	return session;
}

size_t retired_find(const struct feeds *feeds, const struct entry *entry)
{
	size_t found = SIZE_MAX;
	uint32_t id = 0;

	for (size_t i = 0; i < feeds->n_retired; i++) {
		const struct retired_feed *old = &feeds->retired[i];
		const struct feed_definition *d = session_definition(old->session);

		if (old->rolled_back || old->removed || d->id <= id || !entry_means(entry, d))
			continue;
		found = i;
		id = d->id;
	}
	return found;
}

void configured_take(struct feeds *feeds, struct configured_feed *w, struct session *session)
{
	w->session = session;
	session_tune(session, w->entry.page_size, w->entry.drop_gone);
	feeds->resyncs_changed = feeds->names_changed = true;
	feeds->columns.due_ns = 0;
}

void configured_release(struct configured_feed *configured, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		entry_release(&configured[i].entry);
		session_free(&configured[i].session);
	}
	free(configured);
}

int configured_grow(struct feeds *feeds, struct configured_feed **ret_configured)
{
	struct configured_feed w = {.pause_ns = FEEDS_RETRY_FIRST};
	int r = ARRAY_ADD(feeds->configured, feeds->n_configured, feeds->configured_room, w,
		"the list of feeds");

	if (r < 0)
		return r;
	feeds->pace.n_feeds = feeds->n_configured;
	feeds->resolve_ns = 0;
	*ret_configured = &feeds->configured[feeds->n_configured - 1];
	return 0;
}

/* ---- the configuration -------------------------------------------------- */

/* Adds an entry for each explicit feed and namespace. */
static int configured_read(struct feeds *feeds, const struct config *config)
{
	struct configured_feed *w;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < config->n_feeds; i++) {
		const struct config_feed *feed = &config->feeds[i];
		size_t places = feed->n_namespaces ? feed->n_namespaces : 1;

		for (size_t j = 0; r >= 0 && !feed->wildcard && j < places; j++) {
			r = configured_grow(feeds, &w);
			if (r >= 0)
				r = entry_init(feed, j, &w->entry);
		}
	}
	return r;
}

int feeds_configure(struct feeds *feeds, const struct config *config)
{
	struct configured_feed *old = feeds->configured;
	size_t n_old = feeds->n_configured;

	CHECK_OBJ(feeds, FEEDS_MAGIC);
	/* The journal's feeds are retired until the configuration names them. A lost or
	 * half-written file must not cost all objects. */
	int r = feeds->n_retired ? config_need_feeds(config) : 0;
	if (r < 0)
		return r;
	feeds->configured = NULL;
	feeds->n_configured = feeds->configured_room = 0;
	r = configured_read(feeds, config);
	if (r < 0) {
		configured_release(feeds->configured, feeds->n_configured);
		feeds->configured = old;
		feeds->n_configured = feeds->configured_room = feeds->pace.n_feeds = n_old;
		return r;
	}
	for (size_t i = 0; i < feeds->n_configured; i++) {
		struct configured_feed *w = &feeds->configured[i];

		/* It goes on with the session of the same entry. */
		for (size_t j = 0; j < n_old && !w->session; j++) {
			if (!old[j].session || !entry_same(&old[j].entry, &w->entry))
				continue;
			w->verified = old[j].verified;
			w->rolled_back = old[j].rolled_back;
			configured_take(feeds, w, TAKE(old[j].session));
		}
	}
	for (size_t i = 0; i < n_old; i++) {
		if (old[i].session && r >= 0)
			r = retired_add(feeds, &old[i]);
		resolve_hide(feeds, &old[i]);
	}
	configured_release(old, n_old);
	feeds->pace.n_feeds = feeds->n_configured;
	feeds->shared.policy = config->policy;
	feeds->check_ns = 0;
	/* Discovery must not answer from memory after `recheck`. */
	discovery_set_recheck(feeds->shared.discovery, config->policy.recheck_ns / 2);
	for (size_t i = 0; i < feeds->n_configured; i++) {
		struct configured_feed *w = &feeds->configured[i];
		size_t found = w->session ? SIZE_MAX : retired_find(feeds, &w->entry);

		if (found != SIZE_MAX)
			configured_take(feeds, w, retired_take(feeds, found));
	}
	feeds->config = config;
	if (r >= 0)
		r = wildcard_configure(feeds);
	for (size_t i = 0; i < feeds->n_configured; i++)
		if (feeds->configured[i].session)
			session_list_what_fits(feeds->configured[i].session);
	return r;
}

int feeds_write_resyncs(struct feeds *feeds)
{
	CHECK_OBJ(feeds, FEEDS_MAGIC);
	for (size_t i = 0; feeds->resyncs_changed && i < feeds->n_configured; i++) {
		const struct configured_feed *w = &feeds->configured[i];
		const struct feed_definition *d =
			w->session ? session_definition(w->session) : NULL;

		if (!d || d->resync_ns == w->entry.resync_ns)
			continue;
		int r = recorder_change_feed(feeds->shared.recorder, d->id,
			&(struct feed_change){.resync_ns = &w->entry.resync_ns});
		if (r < 0)
			return r;
		session_set_resync(w->session, w->entry.resync_ns);
	}
	feeds->resyncs_changed = false;
	return 0;
}
