/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks over a feed's objects in key order, for callers reading each version as well. The walk is
 * some objects ahead of the caller: the CPU prefetches the next versions, and the kernel reads them
 * from the disk while the store is not in memory.
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

/* Selects objects before their versions are read: FOUND, NOT_FOUND; errors end the walk. */
typedef int names_accept_fn(void *arg, struct bytes key, const struct index_entry *entry);

/* Walks the keys with PREFIX from FROM on, and gives the objects accepted by ACCEPT, called with
 * ARG; NULL: all. SNAPSHOT is borrowed and must be held until names_close(). */
int names_open(struct snapshot *snapshot, uint32_t feed, struct bytes prefix, struct bytes from,
	names_accept_fn *accept, void *arg, struct names **ret_names);
/* Returns: FOUND, END, errors. KEY lives as long as the snapshot is held. */
int names_next(struct names *names, struct bytes *ret_key, struct index_entry *ret_entry);
/* Nothing happens if *NAMES is NULL. */
void names_close(struct names **names);

#endif
