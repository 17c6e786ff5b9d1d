/* SPDX-License-Identifier: Apache-2.0 */
/* The wanted indexes of a feed: the built-in ones (namespace, label), and those of kinf.yaml for
 * the feed's name or wildcard. */
#ifndef PROCESSOR_CONFIG_INDEXES_H
#define PROCESSOR_CONFIG_INDEXES_H

#include "common/config/config.h"
#include "store/index/index.h"
#include "store/journal/journal.h"

/* Returns the configuration's entry for the feed OF; NULL: none. */
const struct config_feed *config_indexes_entry(
	const struct config *config, const struct feed_definition *of);

/* Calls FN for each wanted index of the feed OF until it returns non-zero. Returns that. */
typedef int config_index_fn(void *arg, uint32_t feed, const char *name, const char *paths);
int config_indexes_each(const struct config *config, const struct feed_definition *of,
	config_index_fn *fn, void *arg);

#endif
