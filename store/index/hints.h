/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hints: a hash table beside the index that says where the newest version of an object probably is
 * (FORMAT.md, Hints). A lookup by it costs two reads of memory instead of descents of two trees.
 * The index's writer is its only writer; readers map the file read-only. It can be lost at any
 * time: a reader that finds no hint asks the index.
 *
 * A reader trusts a hint only if all of this holds:
 *
 *	hints_taken() >= the snapshot's `taken`   (else the table may lack changes that it sees)
 *	the hint leads to a record of that feed, and of that key if it was looked up by key
 *	the record's seq <= the snapshot's visible(feed)   (else the snapshot does not see it yet)
 *
 * This makes a hint exact, because the writer changes the table before it commits, and then stores
 * how far it has come. So the table contains every change that a reader can see, and a hinted
 * version that a reader can see is the newest one in its snapshot. A writer that dies between the
 * change and the commit leaves hints to seqs above every visible(feed), until the next writer takes
 * the same records from the same journal.
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
/* Returns: FOUND; NOT_FOUND: there is no table that can be used. */
int hints_open(int directory_fd, const struct hints_of *of, bool write, struct hints **ret_hints);
void hints_close(struct hints **hints);

/* ---- writing ------------------------------------------------------------ */

/* Stores that ENTRY's version is the newest of its object; without effect if the bucket is full. */
void hints_put(
	struct hints *hints, uint32_t feed, struct bytes key, const struct index_entry *entry);
void hints_remove(struct hints *hints, uint32_t feed, struct bytes key, uint64_t object);
/* Returns whether the disk was full when something was stored here (mapped_file.h): readers may
 * lack it. The table stays as it was covered last, so that they ask the index for what is newer. */
bool hints_is_lost(const struct hints *hints);
/* Stores that the table contains all changes up to TAKEN, which the index transaction TXN is about
 * to commit; without effect if it is lost. */
void hints_cover(struct hints *hints, uint64_t taken, uint64_t txn);
uint64_t hints_txn(const struct hints *hints);
/* Checks whether a new table should replace this one: with OBJECTS in it too many buckets are full,
 * or the seqs that it can hold end soon after TAKEN. */
bool hints_is_worn(const struct hints *hints, uint64_t objects, uint64_t taken);

/* ---- reading; any thread ------------------------------------------------ */

uint64_t hints_taken(const struct hints *hints);

/* A place in the file of that journal generation, or a seq, or neither (both 0). */
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
