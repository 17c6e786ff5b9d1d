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

bool feeds_take_past(struct feeds *feeds, struct runner *runner)
{
	const struct feed_definition *d = runner_definition(runner);

	CHECK_OBJ(feeds, FEEDS_MAGIC);
	log_event(LOG_WARNING, "feed", "another-past", "feed=%s id=%u text=%s", log_quote(d->name),
		d->id, log_quote("the server's newest state is older than ours"));
	if (speaks_for_cluster(d))
		return true;
	for (size_t i = 0; i < feeds->n_wanted; i++)
		if (feeds->wanted[i].runner == runner)
			feeds->wanted[i].past = true;
	return false; /* one that is not wanted any more stops, and goes as it would have */
}

/* What is wanted is looked for again, and becomes a feed of its own: the old one, which has stopped,
 * goes when that has been listed. */
int past_replace(struct feeds *feeds)
{
	for (size_t i = 0; i < feeds->n_wanted; i++) {
		struct wanted *w = &feeds->wanted[i];

		if (!w->past)
			continue;
		int r = unwanted_add(feeds, w->runner);
		if (r < 0)
			return r;
		feeds->unwanted[feeds->n_unwanted - 1].past = true;
		w->runner = NULL;
		w->past = w->verified = false;
		w->ask_ns = 0;
	}
	return 0;
}
