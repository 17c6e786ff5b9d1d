/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/catalog/lost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/err.h"

#define LOST_MAX  1024
#define NAME_SIZE 512

struct lost_feed {
	char *resource; /* group/version/resource */
	timeline_rv newest;
};

void lost_release(struct lost *lost)
{
	for (size_t i = 0; i < lost->n; i++)
		free(lost->feeds[i].resource);
	free(lost->feeds);
	*lost = (struct lost){0};
}

/* Finds the resource of D, and writes its NAME. Returns NULL if it is not there. */
static struct lost_feed *lost_find(
	const struct lost *lost, const struct feed_definition *d, char ret_name[NAME_SIZE])
{
	(void)snprintf(ret_name, NAME_SIZE, "%s/%s/%s", d->group, d->version, d->resource);
	for (size_t i = 0; i < lost->n; i++)
		if (strcmp(lost->feeds[i].resource, ret_name) == 0)
			return &lost->feeds[i];
	return NULL;
}

timeline_rv lost_newest(const struct lost *lost, const struct feed_definition *definition)
{
	char name[NAME_SIZE];
	const struct lost_feed *feed = lost_find(lost, definition, name);

	return feed ? feed->newest : 0;
}

void lost_remember(struct lost *lost, const struct feed_definition *definition, timeline_rv newest)
{
	char name[NAME_SIZE];
	struct lost_feed *known = lost_find(lost, definition, name), feed = {.newest = newest};

	if (known) {
		if (known->newest < newest)
			known->newest = newest;
		return;
	}
	feed.resource = lost->n < LOST_MAX ? strdup(name) : NULL;
	if (!feed.resource)
		return;
	int r = ARRAY_ADD(lost->feeds, lost->n, lost->room, feed, "RVs of an earlier journal");
	if (r < 0) {
		err_ignore(r, "a client that comes back waits instead of listing again");
		free(feed.resource);
	}
}
