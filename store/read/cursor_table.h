/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reflector's memory of all cursor files: each is read once, not at every trimming. Any member
 * of the store's group may put anything into the directory. So a walk goes on in slices, a file is
 * read again only after a change of inode, size or time (links to one file cost nothing), and only
 * CURSORS_PER_OWNER files of one user count.
 *
 * A cursor is expired by both clocks: the wall clock since its writing, and the monotonic one since
 * this table knows of it. So a step of the wall clock, for instance soon after boot, takes no
 * cursor away.
 */
#ifndef STORE_READ_CURSOR_TABLE_H
#define STORE_READ_CURSOR_TABLE_H

#include "store/read/cursor_file.h"

struct cursor_table;

/* Borrows HOME. */
int cursor_table_new(struct home *home, struct cursor_table **ret_table);
void cursor_table_free(struct cursor_table **table);

/*
 * Goes on with the walk: a slice of the directory, and of the bytes of changed files. Removes
 * expired cursors on its way (cursor_sweep), and adds their number to *REMOVED. Returns: FOUND: the
 * table is complete, as of the end of the last walk; AGAIN: the first walk has not ended yet;
 * errors.
 */
int cursor_table_walk(struct cursor_table *table, uint64_t expiry_ns, unsigned *removed);

/* Returns the least seq needed by a cursor of journal UUID; UINT64_MAX: none. */
uint64_t cursor_table_least(
	const struct cursor_table *table, const uint8_t uuid[16], uint64_t expiry_ns);

/* Returns how many files were read since the table was made. */
uint64_t cursor_table_reads(const struct cursor_table *table);

#endif
