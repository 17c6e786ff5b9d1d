/* SPDX-License-Identifier: Apache-2.0 */
/* Lists feeds again because 'kinf relist' asks for it. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/err.h"
#include "reflector/feeds/feeds_internal.h"

/* Returns whether NAME is one of ALIASES, each of which ends with a blank. */
static bool relist_is_alias(const char *aliases, const char *name)
{
	size_t size = strlen(name);

	for (const char *at = aliases; size && (at = strcasestr(at, name)); at++)
		if ((at == aliases || at[-1] == ' ') && at[size] == ' ')
			return true;
	return false;
}

static bool relist_means(const struct feed_definition *definition, const char *name)
{
	const char *dot = strchr(name, '.');
	char resource[256];

	if (strcmp(definition->name, name) == 0)
		return true;
	if (dot && strcasecmp(dot + 1, definition->group) != 0) {
		const char *group = strchr(dot + 1, '.');
		size_t version = strlen(definition->version);

		if (strncasecmp(dot + 1, definition->version, version) != 0 ||
			(group ? dot + 1 + version != group || strcasecmp(group + 1, definition->group) != 0
			       : dot[1 + version] || *definition->group))
			return false;
	}
	(void)snprintf(resource, sizeof(resource), "%.*s", dot ? (int)(dot - name) : 255, name);
	return strcasecmp(definition->resource, resource) == 0 ||
	       strcasecmp(definition->kind, resource) == 0 ||
	       relist_is_alias(definition->aliases, resource);
}

int feeds_relist(struct feeds *feeds, const char *name, char ret_text[CONTROL_SIZE])
{
	size_t n = 0;

	for (size_t i = 0; i < feeds->n_configured; i++) {
		struct configured_feed *w = &feeds->configured[i];

		if (w->session && relist_means(session_definition(w->session), name))
			session_on(w->session, FEED_ON_RELIST);
		else if (!w->session && w->entry.name && strcmp(w->entry.name, name) == 0)
			resolve_at(feeds, w, 0); /* there is no feed yet: discovery is asked for it */
		else
			continue;
		n++;
	}
	if (!n) {
		(void)snprintf(ret_text, CONTROL_SIZE,
			"no feed '%.200s': 'kinf status' shows the feeds, and what is wrong with those "
			"that could not be made yet",
			name);
		return err_say(ERR_NO_FEED, "%s", ret_text);
	}
	(void)snprintf(ret_text, CONTROL_SIZE, n == 1 ? "listing again" : "listing %zu feeds again", n);
	return 0;
}
