/* SPDX-License-Identifier: Apache-2.0 */
/* How far the feeds of earlier journals had come: clients may come back with an RV that only
 * those had. */
#ifndef SERVE_CATALOG_LOST_H
#define SERVE_CATALOG_LOST_H

#include "serve/catalog/timeline.h"

struct lost_feed;

/* Begins as zeroes. */
struct lost {
	struct lost_feed *feeds;
	size_t n, room;
};

void lost_release(struct lost *lost);
/* Returns the newest RV that an earlier journal had of the definition's resource; 0: none is
 * known. */
timeline_rv lost_newest(const struct lost *lost, const struct feed_definition *definition);
void lost_remember(struct lost *lost, const struct feed_definition *definition, timeline_rv newest);

#endif
