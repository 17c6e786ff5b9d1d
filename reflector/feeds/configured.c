/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "reflector/feeds/feeds_internal.h"

int retired_add(struct feeds *feeds, struct session *session)
{
	struct retired_feed *grown = realloc(feeds->retired, (feeds->n_retired + 1) * sizeof(*grown));

	if (!grown)
		return err_set(-ENOMEM, "feeds");
	feeds->retired = grown;
	grown[feeds->n_retired++] = (struct retired_feed){.session = session};
	return 0;
}

struct session *retired_take(struct feeds *feeds, size_t i)
{
	struct session *session = feeds->retired[i].session;

	feeds->retired[i] = feeds->retired[--feeds->n_retired];
	return session;
}

void configured_tune(const struct configured_feed *w)
{
	if (w->session)
		session_tune(w->session, w->entry.page_size, w->entry.drop_gone);
}

void configured_release(struct configured_feed *configured, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		entry_release(&configured[i].entry);
		session_free(&configured[i].session);
	}
	free(configured);
}

static int read_entries(const struct config *config, struct configured_feed **ret_configured, size_t *ret_n)
{
	struct configured_feed *configured = NULL;
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < config->n_feeds; i++) {
		const struct config_feed *feed = &config->feeds[i];

		if (feed->wildcard)
			continue;
		size_t places = feed->n_namespaces ? feed->n_namespaces : 1;

		for (size_t j = 0; r >= 0 && j < places; j++) {
			struct configured_feed *grown = realloc(configured, (n + 1) * sizeof(*grown));

			if (!grown) {
				r = err_set(-ENOMEM, "feeds");
				break;
			}
			configured = grown;
			configured[n] = (struct configured_feed){.pause_ns = FEEDS_RETRY_FIRST};
			r = entry_init(feed, j, &configured[n++].entry);
		}
	}
	if (r < 0) {
		configured_release(configured, n);
		return r;
	}
	*ret_configured = configured;
	*ret_n = n;
	return 0;
}

/* What is configured still, and was, goes on as it is. */
static void keep_same(struct feeds *feeds, struct configured_feed *configured, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < feeds->n_configured; j++) {
			struct configured_feed *was = &feeds->configured[j];

			if (!was->session || !entry_same(&was->entry, &configured[i].entry))
				continue;
			configured[i].verified = was->verified;
			configured[i].rolled_back = was->rolled_back;
			configured[i].session = TAKE(was->session);
			break;
		}
	}
}

size_t retired_find(const struct feeds *feeds, const struct entry *entry)
{
	size_t found = SIZE_MAX;
	uint32_t id = 0;

	for (size_t i = 0; i < feeds->n_retired; i++) {
		const struct retired_feed *u = &feeds->retired[i];
		const struct feed_definition *d = session_definition(u->session);

		if (u->rolled_back || u->removed || d->id <= id || !entry_means(entry, d))
			continue;
		found = i;
		id = d->id;
	}
	return found;
}

static void take_meant(struct feeds *feeds)
{
	for (size_t i = 0; i < feeds->n_configured; i++) {
		struct configured_feed *w = &feeds->configured[i];
		size_t found = w->session ? SIZE_MAX : retired_find(feeds, &w->entry);

		if (found != SIZE_MAX)
			w->session = retired_take(feeds, found);
	}
}

int feeds_configure(struct feeds *feeds, const struct config *config)
{
	struct configured_feed *configured;
	size_t n;
	bool larger = config->policy.max_object_bytes > feeds->shared.policy.max_object_bytes;
	int r = read_entries(config, &configured, &n);

	CHECK_OBJ(feeds, FEEDS_MAGIC);
	if (r < 0)
		return r;
	keep_same(feeds, configured, n);
	for (size_t i = 0; r >= 0 && i < feeds->n_configured; i++) {
		if (!feeds->configured[i].session)
			continue;
		r = retired_add(feeds, feeds->configured[i].session);
		if (r < 0)
			break;
		feeds->retired[feeds->n_retired - 1].rolled_back = feeds->configured[i].rolled_back;
		feeds->configured[i].session = NULL;
	}
	for (size_t i = 0; i < feeds->n_configured; i++)
		resolve_hide(feeds, &feeds->configured[i]);
	configured_release(feeds->configured, feeds->n_configured);
	feeds->configured = configured;
	feeds->n_configured = feeds->pace.n_feeds = n;
	feeds->shared.policy = config->policy;
	/* What is asked again at the earliest after this is to be looked up then. */
	discovery_set_recheck(feeds->shared.discovery, config->policy.recheck_ns / 2);
	take_meant(feeds);
	feeds->config = config;
	if (r >= 0)
		r = wildcard_configure(feeds);
	for (size_t i = 0; i < feeds->n_configured; i++) {
		configured_tune(&feeds->configured[i]);
		if (larger && feeds->configured[i].session)
			session_retry_passed(feeds->configured[i].session);
	}
	return r;
}

int feeds_tell(struct feeds *feeds)
{
	struct recorder *recorder = feeds->shared.recorder;
	int r = 0;

	CHECK_OBJ(feeds, FEEDS_MAGIC);
	for (size_t i = 0; r >= 0 && i < feeds->n_configured; i++) {
		const struct configured_feed *w = &feeds->configured[i];
		const struct feed_definition *d = w->session ? session_definition(w->session) : NULL;

		if (!d || d->resync_ns == w->entry.resync_ns)
			continue;
		r = recorder_begin(recorder);
		if (r < 0)
			return r;
		r = journal_set_resync(feeds->journal, d->id, w->entry.resync_ns);
		if (r < 0)
			return recorder_fail(recorder, r);
		recorder_changed(recorder);
		session_set_resync(w->session, w->entry.resync_ns);
	}
	return r;
}
