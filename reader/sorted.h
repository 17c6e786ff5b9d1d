/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list in the order of a field: candidates are offered in any order, the smallest that a page
 *needs are kept, and given out in order at the end.
 *
 *	sorted_new(..., &sorted);                 (reads the continue token)
 *	sorted_offer(sorted, feed, &entry) ...    (or sorted_walk, which finds them by an index)
 *	sorted_end(sorted);
 *	while (sorted_next(sorted, &item) == FOUND) ...
 *
 * Pages stay correct under change: a walk in pages is one of the objects that were there at its
 *first page, in the order they had then. A token names that instant (an event number), and an
 *object that changed since is put where it was, by the version of then, out of the log. Each object
 *that lives through the walk comes exactly once; one that came later does not. When the log no
 *longer reaches back to it, the walk is over: GONE.
 *
 * Of a page of N objects N + 1 are kept, whatever the number of candidates; without a limit all
 *are. Values and keys are borrowed from the snapshot.
 */
#ifndef READER_SORTED_H
#define READER_SORTED_H

#include "common/value/path.h"
#include "reader/plan.h"
#include "reader/sort_value.h"

struct sorted_item {
	struct sort_value value;
	struct bytes key;
	struct index_entry entry;
	size_t feed; /* which of the list's */
};

/* What was visible of a feed when the walk began, where that is not what the walk says. */
struct sorted_since {
	uint32_t feed;
	uint64_t visible;
};

struct sorted {
	struct snapshot *snapshot;
	const struct snapshot_feed *feeds; /* the list's */
	size_t n_feeds;
	const struct query *query;
	struct path *path;
	uint64_t as_of; /* the walk's instant; UINT64_MAX: now */
	struct sorted_since *since;
	size_t n_since;
	bool continues;
	struct buf token; /* that the page began with, decoded: what follows borrows from it */
	struct sort_value after_value;
	struct bytes after_key;
	struct bytes next_key;     /* the smallest behind it */
	struct sorted_item *items; /* while the page is full: a heap, the last one first */
	size_t n, capacity, next;
	uint64_t room; /* items that are kept at most */
};

/* 0, GONE, ERR_SYNTAX. FEEDS and QUERY stay the caller's and must stay. */
int sorted_new(struct snapshot *snapshot, const struct snapshot_feed *feeds, size_t n_feeds,
	const struct query *query, struct sorted **ret_sorted);
void sorted_free(struct sorted **sorted);

/* An object that the plan's index part accepts; the rest is looked at here. */
int sorted_offer(struct sorted *sorted, const struct plan *plan, size_t feed, struct bytes key,
	const struct index_entry *entry);
void sorted_end(struct sorted *sorted);
/* FOUND, END. Borrowed from the list. */
int sorted_next(struct sorted *sorted, const struct sorted_item **ret_item);
/* The token for what follows the last but one that was given out. */
int sorted_token(const struct sorted *sorted, struct buf *token);

/* Offers the objects of a feed by way of an index of the sorted path, as far as the page needs
 * them. FOUND; NOT_FOUND: there is none, or the plan's own candidates are cheaper. */
int sorted_walk(struct sorted *sorted, const struct plan *plan, size_t feed);

/* ---- for sorted_walk.c ---- */

/* The last event of FEED that counts: later versions are put where they were at it. */
uint64_t sorted_as_of(const struct sorted *sorted, size_t feed);
/* The field's value in a body; borrowed from it. */
int sorted_value(const struct sorted *sorted, struct bytes body, struct sort_value *ret_value);
/* Is an object with this value and key behind the page's begin, and before the last that is kept?
 */
bool sorted_wants(const struct sorted *sorted, const struct sort_value *value, struct bytes key);
/* Could one with this value be? */
bool sorted_wants_value(const struct sorted *sorted, const struct sort_value *value);

#endif
