/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the newest version of an object probably is: a hash table in the index's generation folder
 * (FORMAT.md, Hints), so that a lookup costs two reads of memory instead of the descents of two
 * trees. One writer, the index's; readers map the file read-only. Disposable: without it, or where
 * it has nothing, the index is asked.
 *
 * A hint is looked at, then believed only when all of this holds:
 *
 *	hints_taken() >= the snapshot's `taken`   (else the table is behind it)
 *	what stands at the hint is a record of that feed, and of that key where one was asked for
 *	the record's seq <= the snapshot's visible(feed)   (else the table is ahead of it)
 *
 * Why that is enough: the writer changes the table before it commits, and says then how far it has
 * come. So the table is never behind what a reader sees, and an entry that a reader can see at all
 * is of the object's newest version, in the reader's snapshot too. A writer that dies between the
 * two leaves a table that is ahead: its seqs are above every visible(feed) until the same records
 * are taken again, from the same journal.
 *
 *	hints_create(fd, &of, n, &h); hints_put(h, ...) ...; hints_cover(h, taken, txn);
 *	hints_publish(h, fd);
 *	in each transaction: hints_put, hints_remove ...; hints_cover(h, taken, txn); commit
 */
#ifndef STORE_INDEX_HINTS_H
#define STORE_INDEX_HINTS_H

#include "store/index/index.h"

#define HINTS_FILE     "hints"
#define HINTS_FILE_NEW ".hints.new"

struct hints;

/* What a table belongs to; one of anything else, or of another boot, is none. */
struct hints_of {
	uint8_t journal[16];
	uint32_t index_generation;
};

/* DIRECTORY_FD: the generation's folder. Writer: an empty table with room for OBJECTS and as many
 * again, under another name until hints_publish(). -ENOSPC, -ENOMEM, ... */
int hints_create(int directory_fd, const struct hints_of *of, uint64_t objects, unsigned mode,
	struct hints **ret_hints);
int hints_publish(struct hints *hints, int directory_fd);
/* FOUND; NOT_FOUND when there is none that can be used, for whatever reason. */
int hints_open(int directory_fd, const struct hints_of *of, bool write, struct hints **ret_hints);
void hints_close(struct hints **hints);

/* ---- writing ---- */

/* The version that ENTRY names is the newest of its object. A full bucket leaves it out. */
void hints_put(struct hints *hints, uint32_t feed, struct bytes key, const struct index_entry *entry);
void hints_remove(struct hints *hints, uint32_t feed, struct bytes key, uint64_t object);
/* All changes up to TAKEN are in; TXN, the index's transaction that will say so, comes next. */
void hints_cover(struct hints *hints, uint64_t taken, uint64_t txn);
uint64_t hints_txn(const struct hints *hints);
/* With OBJECTS in it, so many buckets are full that a larger table is worth its making. */
bool hints_is_crowded(const struct hints *hints, uint64_t objects);

/* ---- reading; any thread ---- */

uint64_t hints_taken(const struct hints *hints);

/* One of the two: a place in the file of that journal generation, or a seq; else neither. */
struct hint {
	uint64_t place;
	uint64_t seq;
	uint32_t generation; /* of the journal, for a place */
};
struct hint hints_name(const struct hints *hints, uint32_t feed, struct bytes key);
/* Never that of another object, unlike a name's. */
struct hint hints_object(const struct hints *hints, uint64_t object);
/* Will be asked for soon. */
void hints_prefetch_object(const struct hints *hints, uint64_t object);

#endif
