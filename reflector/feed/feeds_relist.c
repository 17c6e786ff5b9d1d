/* SPDX-License-Identifier: Apache-2.0 */
/* Lists feeds again because 'kinf relist' asks for it. */
#include <stdio.h>
#include <string.h>

#include "common/err.h"
#include "reflector/feed/feeds_internal.h"

/* Returns whether NAME is the name of the feed; else it can be its resource's. */
static bool relist_is_named(const struct configured_feed *w, const char *name)
{
	const char *own = w->session ? session_definition(w->session)->name : w->entry.name;

	return own && strcmp(own, name) == 0;
}

/* Returns the definition that NAME means first, NULL: it is a name of none. */
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

/* Returns whether NAME means the feed of W, FIRST being what it means first. */
static bool relist_is_called(const struct feeds *feeds, const struct configured_feed *w,
	const char *name, const struct feed_definition *first)
{
	const struct feed_definition *d = w->session ? session_definition(w->session) : NULL;

	return d && feed_definition_is_called(d, name) &&
	       feed_definition_compare(d, first, name, buf_bytes(&feeds->order)) == 0;
}

/* Lists the feed of W again, or asks discovery for it. Returns why that can't be done at once,
 * NULL: it can. */
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
	if (session_is_queued(w->session) && !feeds_may_list(feeds))
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

		if (named ? !relist_is_named(w, name) : !relist_is_called(feeds, w, name, first))
			continue;
		const char *why = relist_one(feeds, w);
		obstacle = obstacle ? obstacle : why;
		n++;
	}
	if (!n) {
		(void)snprintf(ret_text, CONTROL_SIZE,
			"no feed '%.200s': 'kinf status' shows the feeds, and what is wrong with "
			"those "
			"that could not be made yet",
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
