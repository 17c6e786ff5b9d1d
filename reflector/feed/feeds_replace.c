/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves names from retired feeds to their replacements. When every configured feed of a name has
 * been listed, or none is configured any more, one transaction removes the retired feeds of that
 * name and gives it to the new ones. A retired feed that has no replacement waits for discovery's
 * answer about new entries: one of them may be the same feed by another name.
 */
#include <string.h>

#include "common/check.h"
#include "common/log.h"
#include "reflector/feed/feeds_internal.h"
#include "reflector/record/recorder.h"

bool replace_has_old_of(const struct feeds *feeds, const char *name)
{
	for (size_t i = 0; i < feeds->n_retired; i++)
		if (!feeds->retired[i].removed &&
			entry_is_named(session_definition(feeds->retired[i].session)->name, name))
			return true;
	return false;
}

void feeds_hold_removals(struct feeds *feeds, bool hold)
{
	CHECK_OBJ(feeds, FEEDS_MAGIC);
	feeds->removals_held = hold;
}

/* Whether an entry without feed may get a retired one: the name may be all that changed. */
static bool replace_awaits_discovery(const struct feeds *feeds)
{
	for (size_t i = 0; i < feeds->n_wildcards; i++)
		if (!feeds->wildcards[i].verified)
			return true;
	for (size_t i = 0; i < feeds->n_configured; i++) {
		const struct configured_feed *w = &feeds->configured[i];

		if (!w->session && (!w->pending.feed || w->pending.phase == FEED_LISTING))
			return true;
	}
	return false;
}

int replace_ready(struct feeds *feeds)
{
	struct recorder *recorder = feeds->shared.recorder;
	bool awaits_discovery = replace_awaits_discovery(feeds);
	int r = 0;

	for (size_t i = 0; r >= 0 && i < feeds->n_retired; i++) {
		struct retired_feed *old = &feeds->retired[i];
		const struct feed_definition *d = session_definition(old->session);
		bool ready = !old->removed, replaced = false;

		for (size_t j = 0; ready && j < feeds->n_configured; j++) {
			const struct configured_feed *w = &feeds->configured[j];

			if (!entry_is_named(d->name, w->entry.name))
				continue;
			replaced = true;
			ready = w->session && session_record(w->session)->listed;
		}
		if (!ready || (!replaced && awaits_discovery))
			continue;
		struct record record = {.feed = d->id, .type = RECORD_FEED_REMOVED};
		uint64_t seq;

		LOG(feed_removed, .feed = d->name, .id = d->id);
		feeds->commit_matters = old->removed = true;
		session_stop(old->session); /* nothing may follow its removal */
		r = recorder_append(recorder, &record, &seq);
	}
	for (size_t i = 0; r >= 0 && i < feeds->n_configured; i++) {
		struct configured_feed *w = &feeds->configured[i];
		const struct feed_definition *d =
			w->session ? session_definition(w->session) : NULL;

		if (!d || w->renamed || !strcmp(d->name, w->entry.name) ||
			replace_has_old_of(feeds, w->entry.name))
			continue;
		r = recorder_change_feed(
			recorder, d->id, &(struct feed_change){.name = w->entry.name});
		if (r < 0)
			return r;
		w->renamed = feeds->commit_matters = true;
	}
	if (r >= 0)
		feeds->names_changed = false;
	return r;
}

/* ---- restored etcd ------------------------------------------------------- */

/*
 * Feeds of a restored etcd: the newest list of such a feed is older than the journal's state of it.
 * The server then uses resourceVersions a second time, perhaps for other states, so nothing stored
 * can be compared with a list. The objects are listed into a feed of their own, and readers move
 * over when it is complete.
 */

/*
 * Returns true if the feed's etcd is the whole cluster's. Built-in groups are kept in it: those
 * without a dot, and *.k8s.io (reserved). Events may have an etcd of their own
 * (--etcd-servers-overrides); an aggregated API always has. A custom resource has not, but looks
 * like an aggregated one and is taken for it: the built-in feeds find out by themselves.
 */
static bool etcd_rollback_is_clusters(const struct feed_definition *d)
{
	static const char end[] = ".k8s.io";
	size_t size = strlen(d->group), n = sizeof(end) - 1;

	if (!strcmp(d->resource, "events"))
		return false;
	return !strchr(d->group, '.') || (size >= n && !strcmp(d->group + size - n, end));
}

bool feeds_take_etcd_rollback(struct feeds *feeds, struct session *session)
{
	const struct feed_definition *d = session_definition(session);

	CHECK_OBJ(feeds, FEEDS_MAGIC);
	LOG(feed_rolled_back, .feed = d->name, .id = d->id);
	if (etcd_rollback_is_clusters(d))
		return true;
	/* A retired feed stops where it is, and is removed as it would have been. */
	for (size_t i = 0; i < feeds->n_configured; i++)
		if (feeds->configured[i].session == session)
			feeds->configured[i].rolled_back = feeds->rolled_back = true;
	return false;
}

int etcd_rollback_replace(struct feeds *feeds)
{
	for (size_t i = 0; feeds->rolled_back && i < feeds->n_configured; i++) {
		struct configured_feed *w = &feeds->configured[i];

		if (!w->rolled_back)
			continue;
		int r = retired_add(feeds, w);
		if (r < 0)
			return r;
		w->rolled_back = false;
		resolve_at(feeds, w, 0);
	}
	feeds->rolled_back = false;
	return 0;
}
