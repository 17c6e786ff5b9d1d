/* SPDX-License-Identifier: Apache-2.0 */
/* The indexes of a feed: the built-in ones of every feed (namespace, label), and those in kinf.yaml
 * for the feed's name, or for its wildcard. */
#ifndef PROCESSOR_CONFIG_INDEXES_H
#define PROCESSOR_CONFIG_INDEXES_H

#include "common/config/config.h"
#include "store/index/index.h"
#include "store/journal/journal.h"

/* Returns the entry of the configuration for the feed OF; NULL: it has none. */
const struct config_feed *config_indexes_entry(
	const struct config *config, const struct feed_definition *of);

/* Calls FN for each index of the feed OF, until it returns non-zero. Returns that. */
typedef int config_index_fn(void *arg, uint32_t feed, const char *name, const char *paths);
int config_indexes_each(const struct config *config, const struct feed_definition *of,
	config_index_fn *fn, void *arg);

#endif
