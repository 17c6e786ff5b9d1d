/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A feed whose newest list is older than what it has: its etcd went back in time. What is known of
 * it is of no use, not even where RVs are equal: they may have been given anew to other states. So
 * the objects are listed into a place of their own, and readers move over when that is complete.
 */
#include <string.h>

#include "common/check.h"
#include "common/log.h"
#include "reflector/feeds/feeds_internal.h"

static bool ends_with(const char *text, const char *end)
{
	size_t size = strlen(text), n = strlen(end);

	return size >= n && !strcmp(text + size - n, end);
}

/*
 * Is this the etcd of the whole cluster? Built-in groups are kept in it: those without a dot, and
 * *.k8s.io, which no API server of somebody else's may use. Events may have an etcd of their own
 * (--etcd-servers-overrides), an aggregated API always has; a custom resource has not, but looks
 * like one, and is taken for one: the built-in feeds find out by themselves.
 */
static bool speaks_for_cluster(const struct feed_definition *d)
{
	if (!strcmp(d->resource, "events"))
		return false;
	return !strchr(d->group, '.') || ends_with(d->group, ".k8s.io");
}

bool feeds_take_etcd_rollback(struct feeds *feeds, struct session *session)
{
	const struct feed_definition *d = session_definition(session);

	CHECK_OBJ(feeds, FEEDS_MAGIC);
	LOG(feed_rolled_back, .feed = d->name, .id = d->id);
	if (speaks_for_cluster(d))
		return true;
	for (size_t i = 0; i < feeds->n_configured; i++)
		if (feeds->configured[i].session == session)
			feeds->configured[i].rolled_back = true;
	return false; /* one that is not configured any more stops, and goes as it would have */
}

/* What is configured is looked for again, and becomes a feed of its own: the old one, which has stopped,
 * goes when that has been listed. */
int etcd_rollback_replace(struct feeds *feeds)
{
	for (size_t i = 0; i < feeds->n_configured; i++) {
		struct configured_feed *w = &feeds->configured[i];

		if (!w->rolled_back)
			continue;
		int r = retired_add(feeds, w->session);
		if (r < 0)
			return r;
		feeds->retired[feeds->n_retired - 1].rolled_back = true;
		w->session = NULL;
		w->rolled_back = w->verified = false;
		w->ask_ns = 0;
	}
	return 0;
}
