/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which versions a watch is about: a query evaluated on one version at a time, without the index.
 * Terms come from the version itself by the rule of store/terms.h, so old states can be asked too.
 */
#ifndef READER_COMMAND_WATCH_FILTER_H
#define READER_COMMAND_WATCH_FILTER_H

#include "reader/plan.h"

struct watch_filter {
	struct query query;
	struct terms *terms; /* definitions of the indexes asked for; NULL: none */
	struct watch_wanted {
		uint32_t feed, definition;
		const char *value; /* the query's */
	} *wanted;
	size_t n;
};

int watch_filter_init(struct watch_filter *filter, const struct kinf_query *query);
void watch_filter_release(struct watch_filter *filter);

/* Looks the indexes up, for these feeds; again whenever the feeds are others. 0, AGAIN (the processor
 * does not know a feed yet), ERR_NO_INDEX. */
int watch_filter_learn(struct watch_filter *filter, struct snapshot *snapshot,
	const struct snapshot_feed *feeds, size_t n_feeds);

/* FOUND, NOT_FOUND, ERR_CORRUPT. */
int watch_filter_takes(struct watch_filter *filter, const struct record *record);

#endif
