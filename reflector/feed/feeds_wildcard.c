/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries for many resources. Each resource of discovery covered by a wildcard becomes a configured
 * feed like the explicit ones, under its usual name ("pods", "widgets.example.com"), and is
 * resolved and replaced like them. A resource in an explicit entry, by any of its names and for any
 * of its objects, belongs to that entry alone; of two wildcards the first counts.
 *
 * Discovery is asked every `recheck`, and seconds after an event of the CustomResourceDefinitions,
 * if they have a feed; for such events once in `recheck`, because some are written all the time. A
 * missing resource keeps its feed while that holds objects (whenGone decides how long); then the
 * entry is removed, and the feed with it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "common/stats.h"
#include "reflector/feed/feeds_internal.h"

/* From the last event of a CustomResourceDefinition to twice as long, until discovery is asked: all
 * machines of a cluster get the event at the same time. */
#define SERVED_NS UINT64_C(2000000000)

static size_t wildcard_places(const struct config_feed *feed)
{
	return feed->n_namespaces ? feed->n_namespaces : 1;
}

static const struct config_feed *wildcard_of(
	const struct feeds *feeds, const struct entry_resource *resource)
{
	for (size_t i = 0; i < feeds->config->n_feeds; i++)
		if (config_covers(&feeds->config->feeds[i], resource->group, resource->version,
			    resource->plural))
			return &feeds->config->feeds[i];
	return NULL;
}

static struct configured_feed *wildcard_find(
	const struct feeds *feeds, const char *stored, const char *name_space)
{
	for (size_t i = 0; i < feeds->n_configured; i++) {
		struct configured_feed *w = &feeds->configured[i];

		if (w->wildcard && entry_is_named(stored, w->entry.name) &&
			!strcmp(w->entry.name_space, name_space))
			return w;
	}
	return NULL;
}

/* Adds a configured feed of ENTRY, taken over, with the retired session I unless SIZE_MAX. */
static int wildcard_add(
	struct feeds *feeds, const struct config_feed *wildcard, struct entry *entry, size_t i)
{
	struct configured_feed *w;
	int r = configured_grow(feeds, &w);

	if (r < 0)
		return r;
	w->entry = *entry;
	*entry = (struct entry){0};
	w->wildcard = wildcard;
	w->served = true;
	if (i != SIZE_MAX)
		configured_take(feeds, w, retired_take(feeds, i));
	return 0;
}

/* ---- stored feeds, before discovery says anything ----------------------- */

/* Lets a stored feed D go on if a wildcard still covers it. */
static int wildcard_adopt(struct feeds *feeds, const struct feed_definition *d)
{
	const struct entry_resource resource = {d->group, d->version, d->resource};
	const struct config_feed *feed = wildcard_of(feeds, &resource);
	int r = 0;

	for (size_t i = 0; feed && !r && i < wildcard_places(feed); i++) {
		struct entry entry;
		size_t found = SIZE_MAX;

		r = entry_init_of(feed, i, &resource, &entry);
		if (!r && config_find_feed(feeds->config, entry.name, d->group, d->version,
				  d->resource) == feed)
			found = retired_find(feeds, &entry);
		if (found != SIZE_MAX)
			r = wildcard_add(feeds, feed, &entry, found);
		entry_release(&entry);
	}
	return r;
}

static int wildcard_adopt_all(struct feeds *feeds)
{
	int r = 0;

	for (size_t i = 0; !r && i < feeds->n_retired;) {
		const struct retired_feed *old = &feeds->retired[i];
		const struct feed_definition *d = session_definition(old->session);
		size_t before = feeds->n_retired;

		if (!old->rolled_back && !old->removed &&
			!wildcard_find(feeds, d->name, d->namespace_))
			r = wildcard_adopt(feeds, d);
		if (feeds->n_retired == before)
			i++; /* else another one has taken its place */
	}
	return r;
}

int wildcard_configure(struct feeds *feeds)
{
	const struct config *config = feeds->config;
	int r = 0;

	wildcard_release(feeds);
	feeds->wildcards = calloc(config->n_feeds + 1, sizeof(*feeds->wildcards));
	if (!feeds->wildcards)
		return err_set(-ENOMEM, "feeds");
	for (size_t i = 0; !r && i < config->n_feeds; i++)
		if (config->feeds[i].wildcard) {
			struct configured_feed *w = &feeds->wildcards[feeds->n_wildcards++];

			w->wildcard = &config->feeds[i];
			r = entry_init(&config->feeds[i], 0, &w->entry);
		}
	feeds->wildcards_ns = 0;
	feeds->wildcards_pause_ns = FEEDS_RETRY_FIRST;
	return r < 0 || !feeds->n_wildcards ? r : wildcard_adopt_all(feeds);
}

void wildcard_release(struct feeds *feeds)
{
	for (size_t i = 0; i < feeds->n_wildcards; i++)
		resolve_hide(feeds, &feeds->wildcards[i]);
	configured_release(feeds->wildcards, feeds->n_wildcards);
	feeds->wildcards = NULL;
	feeds->n_wildcards = 0;
}

/* ---- resources of discovery --------------------------------------------- */

/* Tells whether the written entry W means RESOURCE. Names are slow to look up, so a resolved entry
 * is known by its definition. */
static bool wildcard_is_meant(
	const struct feeds *feeds, const struct configured_feed *w, const struct resource *resource)
{
	struct resource found;

	if (w->verified && w->session) {
		const struct feed_definition *d = session_definition(w->session);

		return !strcmp(d->group, resource->group) && !strcmp(d->resource, resource->plural);
	}
	int r = discovery_known(feeds->shared.discovery, w->entry.resource, &found);
	err_ignore(r, "an entry that can't be resolved means nothing");
	return r == FOUND && !strcmp(found.group, resource->group) &&
	       !strcmp(found.plural, resource->plural);
}

static int wildcard_take(struct feeds *feeds, const struct resource *resource)
{
	const struct entry_resource of = {resource->group, resource->version, resource->plural};
	const struct config_feed *feed = wildcard_of(feeds, &of);
	int r = 0;

	for (size_t i = 0; feed && !r && i < wildcard_places(feed); i++) {
		struct entry entry;

		if (feed->n_namespaces && *feed->namespaces[i] && !resource->namespaced)
			break;
		r = entry_init_of(feed, i, &of, &entry);
		/* An explicit entry may mean the resource, or have its name. */
		bool named = false;
		for (size_t j = 0; !r && !named && j < feeds->n_configured; j++) {
			const struct configured_feed *w = &feeds->configured[j];

			named = !w->wildcard && (!strcmp(w->entry.name, entry.name) ||
							wildcard_is_meant(feeds, w, resource));
		}
		if (!r && !named) {
			struct configured_feed *w =
				wildcard_find(feeds, entry.name, entry.name_space);

			if (w && !w->served) {
				char *was = w->entry.resource;
				bool same = !strcmp(was, entry.resource);

				w->served = true;
				w->entry.resource = entry.resource;
				entry.resource = was;
				/* Another version than before: discovery prefers its first. */
				if (!same || resolve_is_renamed(w, resource))
					resolve_at(feeds, w, 0);
			} else if (!w &&
				   feeds->n_configured + feeds->n_wildcards >= STATS_FEEDS_MAX) {
				feeds->left_out++;
			} else if (!w) {
				r = wildcard_add(feeds, feed, &entry, retired_find(feeds, &entry));
			}
		}
		entry_release(&entry);
	}
	return r;
}

/* ---- missing resources -------------------------------------------------- */

/* Removes the I-th configured feed if a wildcard no longer stands for it: at once if it has no
 * session or another entry names its resource, else when nothing is stored of it. Returns: 1 if it
 * was removed, 0, or an error. */
static int wildcard_drop_unserved(struct feeds *feeds, size_t i)
{
	struct configured_feed *w = &feeds->configured[i];

	if (!w->wildcard || w->served)
		return 0;
	if (w->session) {
		struct resource found;
		int r = discovery_known(feeds->shared.discovery, w->entry.resource, &found);

		err_ignore(r, "a resource that can't be resolved is not served");
		/* If discovery has the resource of the unmarked W, another entry names it. */
		if (r != FOUND || !entry_is_of(&w->entry, &(struct entry_resource){found.group,
								  found.version, found.plural})) {
			r = session_is_void(w->session);
			if (r <= 0)
				return r;
		}
		r = retired_add(feeds, w);
		if (r < 0)
			return r;
	}
	resolve_hide(feeds, w);
	entry_release(&w->entry);
	*w = feeds->configured[--feeds->n_configured];
	feeds->pace.n_feeds = feeds->n_configured;
	feeds->names_changed = true;
	return 1;
}

/* ---- the wildcards' own status rows ------------------------------------- */

bool wildcard_stands_for_any(const struct feeds *feeds, const struct config_feed *feed)
{
	for (size_t i = 0; i < feeds->n_configured; i++)
		if (feeds->configured[i].wildcard == feed)
			return true;
	return false;
}

static void wildcard_report(struct feeds *feeds)
{
	for (size_t i = 0; i < feeds->n_wildcards; i++) {
		struct configured_feed *w = &feeds->wildcards[i];
		char why[128];

		if (feeds->left_out) {
			(void)snprintf(why, sizeof(why),
				"more than %d feeds: %zu are left out; exclude some",
				STATS_FEEDS_MAX, feeds->left_out);
			resolve_show(feeds, w, ERR_CONFIG, why);
		} else if (!wildcard_stands_for_any(feeds, w->wildcard)) {
			resolve_show(feeds, w, ERR_NO_RESOURCE,
				"the server has nothing more of it that can be listed and watched");
		} else {
			resolve_hide(feeds, w);
			w->warned = false;
		}
	}
}

/* Warns of words in W's `exclude` that name nothing: a misspelt one would let Secrets in. */
static void wildcard_check_excluded(struct feeds *feeds, const struct configured_feed *w)
{
	for (size_t i = 0; i < w->wildcard->n_exclude; i++) {
		const struct resource *resource;
		char name[CONFIG_FULL_NAME_SIZE];
		size_t at = 0;

		(void)snprintf(name, sizeof(name), "%s", w->wildcard->exclude[i]);
		char *group = strchr(name, '.');
		if (group)
			*group++ = '\0';
		while ((resource = discovery_next(feeds->shared.discovery, &at)))
			if (strcmp(name, resource->plural) == 0 &&
				(!group || strcmp(group, resource->group) == 0))
				break;
		if (!resource)
			LOG(feed_unresolved, .feed = w->entry.name,
				.resource = w->wildcard->exclude[i],
				.error = "the server has no such resource to exclude");
	}
}

/* ---- turns -------------------------------------------------------------- */

/* Shows the error and asks discovery again after a growing pause. */
static void wildcard_failed(struct feeds *feeds, int error)
{
	const char *why = err_text(error);
	uint64_t longest = feeds->shared.policy.backoff_max_ns;

	for (size_t i = 0; i < feeds->n_wildcards; i++)
		if (!wildcard_stands_for_any(feeds, feeds->wildcards[i].wildcard))
			resolve_show(feeds, &feeds->wildcards[i], error, why);
	if (feeds->wildcards_pause_ns > longest)
		feeds->wildcards_pause_ns = longest;
	feeds->wildcards_ns = proc_monotonic_ns() + pace_jitter(feeds->wildcards_pause_ns);
	feeds->wildcards_pause_ns *= 2;
}

void wildcard_heard(struct feeds *feeds, const struct session *session)
{
	const struct feed_definition *d = session_definition(session);
	uint64_t changes = session_changes(session);

	if (strcmp(d->resource, "customresourcedefinitions") != 0 ||
		strcmp(d->group, "apiextensions.k8s.io") != 0 ||
		changes == feeds->definitions_changes)
		return;
	uint64_t now = proc_monotonic_ns();
	feeds->definitions_changes = changes;
	if (feeds->served_ns && feeds->served_ns <= now)
		feeds->served_least_ns = feeds->served_ns + feeds->shared.policy.recheck_ns;
	feeds->served_ns = now + pace_jitter(SERVED_NS);
	if (feeds->served_ns < feeds->served_least_ns)
		feeds->served_ns = feeds->served_least_ns;
	if (feeds->wildcards_ns != UINT64_MAX && feeds->wildcards_ns > feeds->served_ns)
		feeds->wildcards_ns = feeds->served_ns;
}

int wildcard_due(struct feeds *feeds)
{
	uint64_t now = proc_monotonic_ns(), recheck = feeds->shared.policy.recheck_ns;
	uint64_t max_age = recheck / 2;
	const struct resource *resource;
	size_t at = 0;

	if (!feeds->n_wildcards || feeds->wildcards_ns > now)
		return 0;
	if (feeds->served_ns <= now && now - feeds->served_ns < max_age)
		max_age = now - feeds->served_ns;
	int r = discovery_refresh(feeds->shared.discovery, max_age);
	if (r == AGAIN)
		feeds->wildcards_ns = UINT64_MAX;
	else if (r < 0)
		wildcard_failed(feeds, r);
	if (r != FOUND)
		return 0;
	feeds->wildcards_ns =
		feeds->served_ns > now ? feeds->served_ns : now + pace_jitter(recheck);
	feeds->wildcards_pause_ns = FEEDS_RETRY_FIRST;
	feeds->left_out = 0;
	for (size_t i = 0; i < feeds->n_configured; i++)
		feeds->configured[i].served = false;
	r = 0;
	while (r == 0 && (resource = discovery_next(feeds->shared.discovery, &at)))
		r = wildcard_take(feeds, resource);
	for (size_t i = 0; r >= 0 && i < feeds->n_configured;) {
		r = wildcard_drop_unserved(feeds, i);
		i += r == 0;
	}
	if (r >= 0)
		wildcard_report(feeds);
	for (size_t i = 0; r >= 0 && i < feeds->n_wildcards; i++) {
		if (!feeds->wildcards[i].verified) /* once for each configuration */
			wildcard_check_excluded(feeds, &feeds->wildcards[i]);
		feeds->wildcards[i].verified = feeds->names_changed = true;
	}
	return r < 0 ? r : 0;
}

void wildcard_discovered(struct feeds *feeds, int result)
{
	if (!result)
		feeds->wildcards_ns = 0; /* the answer may have something new */
	else if (feeds->wildcards_ns == UINT64_MAX)
		wildcard_failed(feeds, result);
}
