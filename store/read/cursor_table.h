/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reflector's memory of all cursor files, so that each file is read once and not again at
 * every trimming. The directory belongs to all members of the store's group, and a member may
 * put anything into it. Therefore a walk goes on in slices, a file is read again only when its
 * inode, size or time has changed (so links to one file cost nothing), and only
 * CURSORS_PER_OWNER files of one user count.
 *
 * A cursor is expired when both clocks say so: the wall clock, by which it was written, and the
 * monotonic one since this table knows of it. So a step of the wall clock, as that of a machine
 * which learns the time after its start, takes no cursor away from a follower.
 */
#ifndef STORE_READ_CURSOR_TABLE_H
#define STORE_READ_CURSOR_TABLE_H

#include "store/read/cursor_file.h"

struct cursor_table;

/* Borrows HOME. */
int cursor_table_new(struct home *home, struct cursor_table **ret_table);
void cursor_table_free(struct cursor_table **table);

/*
 * Goes on with the walk: a slice of the directory, and of the bytes of changed files. On its way it
 * removes expired cursors (cursor_sweep), and adds how many to *REMOVED.
 * Returns: FOUND: the table has every cursor that counts, or had it at the end of the last walk;
 * AGAIN: the first walk has not ended yet; errors.
 */
int cursor_table_walk(struct cursor_table *table, uint64_t expiry_ns, unsigned *removed);

/* Returns the least seq that a cursor of the journal UUID needs; UINT64_MAX: there is none. */
uint64_t cursor_table_least(
	const struct cursor_table *table, const uint8_t uuid[16], uint64_t expiry_ns);

/* Returns how many files were read since the table was made. */
uint64_t cursor_table_reads(const struct cursor_table *table);

#endif
