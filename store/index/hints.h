/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hints: a hash table beside the index with the probable place of each object's newest version
 * (FORMAT.md, Hints). A lookup by it costs two reads of memory instead of descents of two trees.
 * The index's writer is its only writer; readers map the file read-only. It can be lost at any
 * time: without a hint the index is asked.
 *
 * A reader trusts a hint only if all of this holds:
 *
 *	hints_taken() >= the snapshot's `taken`   (else the table may lack changes of the snapshot)
 *	the hint leads to a record of the feed, and of the key in a lookup by key
 *	the record's seq <= the snapshot's visible(feed)   (else the snapshot does not see it yet)
 *
 * This makes a hint exact: the writer changes the table before each commit, and stores its progress
 * after the change. So the table has every change visible to readers, and a visible version found
 * by hint is the newest one in the snapshot. A writer killed between change and commit leaves hints
 * to seqs above every visible(feed), until the next writer applies the same records.
 *
 *	hints_create(fd, &of, n, taken, mode, &h);
 *	hints_put(h, ...) ...; hints_cover(h, taken, txn);
 *	hints_publish(h, fd);
 *	in each transaction: hints_put, hints_remove ...; hints_cover(h, taken, txn); commit
 */
#ifndef STORE_INDEX_HINTS_H
#define STORE_INDEX_HINTS_H

#include "common/bytes.h"
#include "store/env/generation.h"
#include "store/index/entry.h"

#define HINTS_FILE     GENERATION_HINTS_FILE
#define HINTS_FILE_NEW GENERATION_HINTS_FILE_NEW

struct hints;

/* The index a table belongs to. A table of another one, or of another boot, is not used. */
struct hints_of {
	uint8_t journal[16];
	uint32_t index_generation;
};

/* Creates an empty table in the generation's directory, with room for twice OBJECTS and for the
 * seqs around TAKEN, under a temporary name until hints_publish(). Writer only. -ENOSPC, -ENOMEM,
 * ... */
int hints_create(int directory_fd, const struct hints_of *of, uint64_t objects, uint64_t taken,
	unsigned mode, struct hints **ret_hints);
/* -ENOSPC when the disk was full while it was filled. */
int hints_publish(struct hints *hints, int directory_fd);
/* Returns: FOUND; NOT_FOUND: there is no usable table. */
int hints_open(int directory_fd, const struct hints_of *of, bool write, struct hints **ret_hints);
void hints_close(struct hints **hints);

/* ---- writing ------------------------------------------------------------ */

/* Enters ENTRY as its object's newest version; without effect if the bucket is full. */
void hints_put(
	struct hints *hints, uint32_t feed, struct bytes key, const struct index_entry *entry);
void hints_remove(struct hints *hints, uint32_t feed, struct bytes key, uint64_t object);
/* Declares the table complete up to TAKEN, just before the commit of TXN. */
void hints_cover(struct hints *hints, uint64_t taken, uint64_t txn);
uint64_t hints_txn(const struct hints *hints);
/* Returns true if a new table should replace this one: with OBJECTS in it too many buckets are
 * full, or its range of seqs ends soon after TAKEN. */
bool hints_is_worn(const struct hints *hints, uint64_t objects, uint64_t taken);

/* ---- reading; any thread ------------------------------------------------ */

uint64_t hints_taken(const struct hints *hints);

/* A place in the file of a journal generation, or a seq, or neither (both 0). */
struct hint {
	uint64_t place;
	uint64_t seq;
	uint32_t generation; /* of the journal, for a place */
};
struct hint hints_name(const struct hints *hints, uint32_t feed, struct bytes key);
/* The same in two steps: the first starts to load the hint from memory, the second reads it. */
struct hints_key {
	uint64_t bucket, tag;
};
struct hints_key hints_prefetch_name(const struct hints *hints, uint32_t feed, struct bytes key);
struct hint hints_prefetched(const struct hints *hints, struct hints_key name);
/* Never leads to another object, while hints_name() may. */
struct hint hints_object(const struct hints *hints, uint64_t object);
/* Starts to load the hint of an object from memory. */
void hints_prefetch_object(const struct hints *hints, uint64_t object);

#endif
