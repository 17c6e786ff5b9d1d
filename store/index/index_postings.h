/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of the database `posting`: the objects of a term, in blocks of ascending ids (FORMAT.md,
 * Index). A block's key has its first id, the value the distances of the others from it. Part of
 * the index group.
 *
 * Only the writer changes blocks: it adds an id to the block of its range, divides a large block,
 * and joins a small one with the term's next one.
 */
#ifndef STORE_INDEX_INDEX_POSTINGS_H
#define STORE_INDEX_INDEX_POSTINGS_H

#include "store/env/env.h"
#include "store/index/changes.h"

#define POSTINGS_MOST 120 /* ids in a block: eight blocks fill a page of 4 KiB */

struct postings_block {
	uint64_t term, first;
	size_t n;            /* ids; at least 1 */
	const uint8_t *rest; /* borrowed from the row */
};

/* Reads a row. ERR_CORRUPT. */
int postings_read(struct bytes key, struct bytes value, struct postings_block *ret_block);

/* Returns the id number I of a block. */
static inline uint64_t postings_object(const struct postings_block *block, size_t i)
{
	return i ? block->first + le32_get(block->rest + 4 * (i - 1)) : block->first;
}

/* Returns: FOUND, NOT_FOUND, errors. */
int postings_has(struct txn *txn, uint64_t term, uint64_t object);

/* Writes the postings of several terms in one transaction. All zero but the cursor, over
 * `posting`, is a new writer. */
struct postings_writer {
	struct cursor *cursor;
	uint64_t term;
	bool is_stored; /* the block has a row, beginning with FIRST */
	uint64_t first;
	uint64_t bound; /* the term's next block begins here; POSTINGS_NO_BOUND: none */
	uint64_t old[POSTINGS_MOST]; /* the block as it is */
	size_t n_old;
	uint64_t *objects; /* and as it will be */
	size_t n_objects, objects_room;
};
#define POSTINGS_NO_BOUND UINT64_MAX

void postings_release(struct postings_writer *writer);

/*
 * Changes the postings of TERM: N of them, ascending by object, each to be added or removed.
 * IS_NEW: no posting of this term or a later one is stored. ERR_CORRUPT: one to be added is
 * there, one to be removed is not.
 */
int postings_change(struct postings_writer *writer, uint64_t term, bool is_new,
	const struct change_posting *postings, size_t n);

#endif
