/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One page of a list in the order of a field (--sort-by). The caller offers candidates in any
 * order; the smallest ones of the page are kept, and given out in order at the end.
 *
 *	sorted_new(..., &sorted);
 *	sorted_offer(sorted, plan, feed, key, &entry) ...   (or sorted_walk, for an index)
 *	sorted_end(sorted);
 *	while (sorted_next(sorted, &item) == FOUND) ...
 *
 * For a page of N objects N + 1 are kept, however many candidates there are; without a limit, all.
 * Values and keys are borrowed from the snapshot, or from the as_of of the key.
 */
#ifndef READER_SORTED_H
#define READER_SORTED_H

#include "reader/candidates.h"
#include "reader/plan.h"

struct sorted_item {
	struct sort_value value;
	struct bytes key;
	struct index_entry entry;
	size_t feed; /* of the list's */
};

struct sorted {
	struct snapshot *snapshot;
	const struct snapshot_feed *feeds; /* the list's */
	const struct query *query;
	struct sorted_item *items; /* while the page is full: a heap, the last one first */
	size_t n, items_room, next;
	uint64_t room; /* kept items at most */
	uint64_t read; /* objects */
};

/* FEEDS and QUERY, with a sort path, stay the caller's and must stay. */
int sorted_new(struct snapshot *snapshot, const struct snapshot_feed *feeds,
	const struct query *query, struct sorted **ret_sorted);
void sorted_free(struct sorted **sorted);

/* Offers an object accepted by plan_accepts(); the rest is checked here. */
int sorted_offer(struct sorted *sorted, const struct plan *plan, size_t feed, struct bytes key,
	const struct index_entry *entry);
void sorted_end(struct sorted *sorted);
/* Returns: FOUND, END. ITEM is borrowed. */
int sorted_next(struct sorted *sorted, const struct sorted_item **ret_item);

/* Reads the sort value of a body, and borrows from it. */
int sorted_value(const struct sorted *sorted, struct bytes body, struct sort_value *ret_value);
/* Returns true if an object with this value and key belongs between the page's beginning and the
 * last kept one. */
bool sorted_wants(const struct sorted *sorted, const struct sort_value *value, struct bytes key);
/* Returns whether one with this value could. */
bool sorted_wants_value(const struct sorted *sorted, const struct sort_value *value);

/* ---- sorted_walk.c ------------------------------------------------------ */

/* Offers the objects of CANDIDATES' feed, number FEED of the list, that the page can need, by an
 * index of the sort field: sorts the index's values and offers their objects, from the page's
 * beginning on, until no later value can belong on the page. Objects missing from the index are
 * offered as well: those without a value and, on a page of an earlier state, those changed since.
 * CANDIDATES is not open. Returns: 0; NOT_FOUND: no index has that order, or the plan's own
 * candidates cost less. */
int sorted_walk(struct sorted *sorted, const struct candidates *candidates, size_t feed);

#endif
