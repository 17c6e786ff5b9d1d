/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks over the objects of a feed in key order, for callers that read each one's version as
 * well. The walk is some objects ahead of the caller: it lets the CPU fetch the versions that
 * come next, and lets the kernel read them from the disk while the store is not in memory.
 *
 *	names_open(snapshot, feed, prefix, from, NULL, NULL, &names);
 *	while (names_next(names, &key, &entry) == FOUND)
 *		snapshot_record(snapshot, feed, key, &entry, &record);
 *	names_close(&names);
 */
#ifndef STORE_READ_NAMES_H
#define STORE_READ_NAMES_H

#include "store/read/snapshot.h"

struct names;

/* Tells whether the caller wants an object, before its version is read: FOUND, NOT_FOUND,
 * errors, which end the walk. */
typedef int names_accept_fn(void *arg, struct bytes key, const struct index_entry *entry);

/* Begins at the first key that is not below FROM, and ends after those that begin with PREFIX.
 * Gives the objects that ACCEPT, called with ARG, accepts; NULL: all. SNAPSHOT is borrowed and
 * has to be held until names_close(). */
int names_open(struct snapshot *snapshot, uint32_t feed, struct bytes prefix, struct bytes from,
	names_accept_fn *accept, void *arg, struct names **ret_names);
/* Returns: FOUND, END, errors. KEY lives as long as the snapshot is held. */
int names_next(struct names *names, struct bytes *ret_key, struct index_entry *ret_entry);
/* Nothing happens if *NAMES is NULL. */
void names_close(struct names **names);

#endif
