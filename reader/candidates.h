/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The candidates of a query in one feed, in key order, by the plan's way: the names, or the
 * postings of one term sorted by key. The key and the terms in the index are checked here; the
 * caller reads the version and asks plan_matches() for the rest.
 *
 *	candidates_open(&c);                  with the first five fields set
 *	while (candidates_next(&c, &key, &entry) == FOUND)
 *		snapshot_record(snapshot, feed, key, &entry, &record);
 *	candidates_close(&c); ... candidates_release(&c);
 *
 * With an as_of the candidates are those of its seq: objects unchanged since come from the index,
 * the others from the as_of, and the object id in their entry is 0.
 */
#ifndef READER_CANDIDATES_H
#define READER_CANDIDATES_H

#include "reader/plan.h"
#include "store/read/as_of.h"
#include "store/read/names.h"

struct candidates {
	struct snapshot *snapshot;
	uint32_t feed;
	const struct query *query;
	const struct plan *plan;
	struct as_of *as_of; /* NULL: the newest state */
	struct names *names;
	/* of the postings, at most SORT_MAX and those changed since */
	struct snapshot_object *objects;
	size_t n, room, next;
};

int candidates_open(struct candidates *c);
/* Returns: FOUND, END. KEY is borrowed from the snapshot or the as_of. */
int candidates_next(struct candidates *c, struct bytes *ret_key, struct index_entry *ret_entry);
/* Keeps the memory for the next candidates_open(). */
void candidates_close(struct candidates *c);
void candidates_release(struct candidates *c);

#endif
