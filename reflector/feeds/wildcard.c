/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries that stand for many resources. Each resource that discovery has and a wildcard covers becomes
 * an entry like those that were written, named as one would write it ("pods", "widgets.example.com"),
 * and goes its way from there: resolve.c, replace.c. What another entry of the configuration names,
 * by whatever name and of however few of its objects, is that entry's alone; of two wildcards the first
 * counts.
 *
 * Discovery is asked about every `recheck`. What it has no more keeps its feed for as long as that holds
 * objects (whenGone says for how long that is); then the entry goes, and the feed with it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "common/stats.h"
#include "reflector/feeds/feeds_internal.h"

/* ---- entries ---- */

/* The I-th namespace of the wildcard FEED; "": all. */
static const char *namespace_at(const struct config_feed *feed, size_t i)
{
	return feed->n_namespaces ? feed->namespaces[i] : "";
}

static size_t places_of(const struct config_feed *feed)
{
	return feed->n_namespaces ? feed->n_namespaces : 1;
}

/* Takes ENTRY over when it succeeds. */
static int add_entry(struct feeds *feeds, const struct config_feed *wildcard, struct entry *entry,
	struct configured_feed **ret_configured)
{
	struct configured_feed *grown = realloc(feeds->configured, (feeds->n_configured + 1) * sizeof(*grown));

	if (!grown)
		return err_set(-ENOMEM, "feeds");
	feeds->configured = grown;
	grown += feeds->n_configured++;
	*grown = (struct configured_feed){.entry = *entry, .wildcard = wildcard, .seen = true,
		.pause_ns = FEEDS_RETRY_FIRST};
	*entry = (struct entry){0};
	feeds->pace.n_feeds = feeds->n_configured;
	*ret_configured = grown;
	return 0;
}

static void remove_entry(struct feeds *feeds, size_t i)
{
	struct configured_feed *w = &feeds->configured[i];

	resolve_hide(feeds, w);
	entry_release(&w->entry);
	*w = feeds->configured[--feeds->n_configured];
	feeds->pace.n_feeds = feeds->n_configured;
}

/* ---- what the journal has, before discovery says anything ---- */

/* What a wildcard still covers goes on. */
static int adopt(struct feeds *feeds, const struct feed_definition *d)
{
	const struct entry_resource resource = {d->group, d->version, d->resource};
	const struct config_feed *feed = NULL;
	struct configured_feed *w;
	int r = 0;

	for (size_t i = 0; !feed && i < feeds->config->n_feeds; i++)
		if (config_covers(&feeds->config->feeds[i], d->group, d->version, d->resource))
			feed = &feeds->config->feeds[i];
	for (size_t i = 0; feed && !r && i < places_of(feed); i++) {
		struct entry entry;
		size_t found = SIZE_MAX;

		r = entry_init_of(feed, i, &resource, &entry);
		if (!r && config_find_feed(feeds->config, entry.name, d->group, d->version,
			d->resource) == feed)
			found = retired_find(feeds, &entry);
		if (found != SIZE_MAX)
			r = add_entry(feeds, feed, &entry, &w);
		if (!r && found != SIZE_MAX)
			w->session = retired_take(feeds, found);
		entry_release(&entry);
	}
	return r;
}

static bool is_adopted(const struct feeds *feeds, const struct feed_definition *d)
{
	for (size_t i = 0; i < feeds->n_configured; i++) {
		const struct configured_feed *w = &feeds->configured[i];

		if (w->wildcard && entry_is_named(d->name, w->entry.name) &&
			!strcmp(d->namespace_, w->entry.name_space))
			return true;
	}
	return false;
}

static int adopt_all(struct feeds *feeds)
{
	int r = 0;

	for (size_t i = 0; !r && i < feeds->n_retired;) {
		const struct retired_feed *u = &feeds->retired[i];
		size_t before = feeds->n_retired;

		if (!u->rolled_back && !u->removed && !is_adopted(feeds, session_definition(u->session)))
			r = adopt(feeds, session_definition(u->session));
		if (feeds->n_retired == before)
			i++; /* else another one has its place now */
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
	return r < 0 || !feeds->n_wildcards ? r : adopt_all(feeds);
}

void wildcard_release(struct feeds *feeds)
{
	for (size_t i = 0; i < feeds->n_wildcards; i++)
		resolve_hide(feeds, &feeds->wildcards[i]);
	configured_release(feeds->wildcards, feeds->n_wildcards);
	feeds->wildcards = NULL;
	feeds->n_wildcards = 0;
}

/* ---- what discovery has ---- */

/* Looking names up is slow: what has been resolved is known by its definition. */
static bool means(const struct feeds *feeds, const struct configured_feed *w, const struct resource *resource)
{
	struct resource found;

	if (w->verified && w->session) {
		const struct feed_definition *d = session_definition(w->session);

		return !strcmp(d->group, resource->group) && !strcmp(d->resource, resource->plural);
	}
	if (discovery_known(feeds->shared.discovery, w->entry.resource, &found) == FOUND)
		return !strcmp(found.group, resource->group) &&
			!strcmp(found.plural, resource->plural);
	err_clear();
	return false;
}

/* An entry of the configuration names it, or has the name that it would get. */
static bool is_named(const struct feeds *feeds, const struct resource *resource, const char *name)
{
	for (size_t i = 0; i < feeds->n_configured; i++) {
		const struct configured_feed *w = &feeds->configured[i];

		if (!w->wildcard && (!strcmp(w->entry.name, name) || means(feeds, w, resource)))
			return true;
	}
	return false;
}

static struct configured_feed *find_entry(struct feeds *feeds, const struct entry *entry)
{
	for (size_t i = 0; i < feeds->n_configured; i++)
		if (feeds->configured[i].wildcard && !strcmp(feeds->configured[i].entry.name, entry->name) &&
			!strcmp(feeds->configured[i].entry.name_space, entry->name_space))
			return &feeds->configured[i];
	return NULL;
}

static int add_new(struct feeds *feeds, const struct config_feed *wildcard, struct entry *entry)
{
	struct configured_feed *w;

	if (feeds->n_configured + feeds->n_wildcards >= STATS_FEEDS_MAX) {
		feeds->left_out++;
		return 0;
	}
	size_t found = retired_find(feeds, entry);
	int r = add_entry(feeds, wildcard, entry, &w);
	if (r < 0 || found == SIZE_MAX)
		return r;
	w->session = retired_take(feeds, found);
	configured_tune(w);
	return 0;
}

/* The same resource may be served in another version now; its first one is preferred. */
static void see(struct configured_feed *w, struct entry *entry)
{
	if (w->seen)
		return;
	w->seen = true;
	if (!strcmp(w->entry.resource, entry->resource))
		return;
	char *was = w->entry.resource;
	w->entry.resource = entry->resource;
	entry->resource = was;
	w->verified = false;
	w->ask_ns = 0;
}

static int take_resource(void *arg, const struct resource *resource)
{
	const struct entry_resource of = {resource->group, resource->version, resource->plural};
	struct feeds *feeds = arg;
	const struct config_feed *feed = NULL;
	int r = 0;

	for (size_t i = 0; !feed && i < feeds->config->n_feeds; i++)
		if (config_covers(&feeds->config->feeds[i], of.group, of.version, of.plural))
			feed = &feeds->config->feeds[i];
	for (size_t i = 0; feed && !r && i < places_of(feed); i++) {
		struct entry entry;

		if (*namespace_at(feed, i) && !resource->namespaced)
			break;
		r = entry_init_of(feed, i, &of, &entry);
		if (!r && !is_named(feeds, resource, entry.name)) {
			struct configured_feed *w = find_entry(feeds, &entry);

			if (w)
				see(w, &entry);
			else
				r = add_new(feeds, feed, &entry);
		}
		entry_release(&entry);
	}
	return r;
}

/* ---- what it has no more ---- */

/* If so, and it was not seen, another entry names it now. */
static bool is_served(const struct feeds *feeds, const struct configured_feed *w)
{
	struct resource found;

	if (discovery_known(feeds->shared.discovery, w->entry.resource, &found) == FOUND)
		return entry_is_of(&w->entry, &(struct entry_resource){found.group, found.version,
			found.plural});
	err_clear();
	return false;
}

/* What has no feed goes at once, what has one when that is empty or was never meant. 1: it has gone. */
static int drop_unseen(struct feeds *feeds, size_t i)
{
	struct configured_feed *w = &feeds->configured[i];

	if (!w->wildcard || w->seen)
		return 0;
	if (w->session) {
		int r = is_served(feeds, w) ? 1 : session_is_void(w->session);

		if (r > 0)
			r = retired_add(feeds, w->session) < 0 ? -ENOMEM : 1;
		if (r <= 0)
			return r;
		w->session = NULL;
	}
	remove_entry(feeds, i);
	return 1;
}

/* ---- what people see ---- */

static bool stands_for_any(const struct feeds *feeds, const struct config_feed *feed)
{
	for (size_t i = 0; i < feeds->n_configured; i++)
		if (feeds->configured[i].wildcard == feed)
			return true;
	return false;
}

static void report(struct feeds *feeds)
{
	for (size_t i = 0; i < feeds->n_wildcards; i++) {
		struct configured_feed *w = &feeds->wildcards[i];
		char why[128];

		if (feeds->left_out) {
			(void)snprintf(why, sizeof(why), "more than %d feeds: %zu are left out; exclude some",
				STATS_FEEDS_MAX, feeds->left_out);
			resolve_show(feeds, w, ERR_CONFIG, why);
		} else if (!stands_for_any(feeds, w->wildcard)) {
			resolve_show(feeds, w, ERR_NO_RESOURCE,
				"the server has nothing more of it that can be listed and watched");
		} else {
			resolve_hide(feeds, w);
			w->said = false;
		}
	}
}

/* ---- turns ---- */

static int look(struct feeds *feeds)
{
	int r = 0;

	feeds->left_out = 0;
	for (size_t i = 0; i < feeds->n_configured; i++)
		feeds->configured[i].seen = false;
	r = discovery_each(feeds->shared.discovery, take_resource, feeds);
	for (size_t i = 0; r >= 0 && i < feeds->n_configured;) {
		r = drop_unseen(feeds, i);
		i += r == 0;
	}
	if (r >= 0)
		report(feeds);
	return r < 0 ? r : 0;
}

static void look_later(struct feeds *feeds, int error)
{
	const char *why = err_text(error);
	uint64_t longest = feeds->shared.policy.backoff_max_ns;

	for (size_t i = 0; i < feeds->n_wildcards; i++)
		if (!stands_for_any(feeds, feeds->wildcards[i].wildcard))
			resolve_show(feeds, &feeds->wildcards[i], error, why);
	if (feeds->wildcards_pause_ns > longest)
		feeds->wildcards_pause_ns = longest;
	feeds->wildcards_ns = proc_monotonic_ns() + pace_jitter(feeds->wildcards_pause_ns);
	feeds->wildcards_pause_ns *= 2;
}

int wildcard_due(struct feeds *feeds)
{
	uint64_t now = proc_monotonic_ns(), recheck = feeds->shared.policy.recheck_ns;

	if (!feeds->n_wildcards || feeds->wildcards_ns > now)
		return 0;
	int r = discovery_refresh(feeds->shared.discovery, recheck / 2);
	if (r == AGAIN)
		feeds->wildcards_ns = UINT64_MAX;
	else if (r < 0)
		look_later(feeds, r);
	if (r != FOUND)
		return 0;
	feeds->wildcards_ns = now + pace_jitter(recheck);
	feeds->wildcards_pause_ns = FEEDS_RETRY_FIRST;
	return look(feeds);
}

uint64_t wildcard_until(const struct feeds *feeds)
{
	return feeds->n_wildcards ? feeds->wildcards_ns : UINT64_MAX;
}

void wildcard_discovered(struct feeds *feeds, int result)
{
	if (!result)
		feeds->wildcards_ns = 0; /* whoever asked for it: it may have something new */
	else if (feeds->wildcards_ns == UINT64_MAX)
		look_later(feeds, result);
}
