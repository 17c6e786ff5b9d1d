/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates a query on one version at a time, for followers. The index has no old states, so the
 * terms are computed from the version, by the rule of store/index/terms.h.
 */
#ifndef READER_FILTER_H
#define READER_FILTER_H

#include "reader/query.h"
#include "store/index/terms.h"
#include "store/read/snapshot.h"

struct filter {
	struct query query;
	struct terms *terms; /* definitions of the indexes asked for; NULL: none */
	struct filter_term {
		uint32_t feed, definition;
		const char *value; /* the query's */
	} * wanted;
	size_t n;
};

/* Returns: 0; the errors of query_init(); ERR_SYNTAX also if a selector depends on the present
 * time. */
int filter_init(struct filter *filter, const struct kinf_query *query);
void filter_release(struct filter *filter);

/* Finds the indexes named by the query in these feeds. The caller calls it again when the name
 * stands for other feeds. Returns: 0; AGAIN: the processor does not know a feed yet; ERR_NO_INDEX;
 * as query_check_feed(). */
int filter_find_indexes(struct filter *filter, struct snapshot *snapshot,
	const struct snapshot_feed *feeds, size_t n_feeds);

/* Returns: FOUND, NOT_FOUND, ERR_CORRUPT. */
int filter_accepts(struct filter *filter, const struct record *record);

#endif
