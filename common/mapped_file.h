/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps of files that this process writes to, and a full disk.
 *
 * A store into a map is a SIGBUS if the file system finds no block: beyond the end of the file, on
 * copy-on-write file systems (btrfs, ZFS), in blocks shared with a copy (cp --reflink, also on
 * XFS). The handler of SIGBUS replaces the page by private memory with the same content, sets
 * `lost`, and the store is repeated. No other process sees it. The map's owner checks `lost` after
 * its stores; then it publishes nothing and calls mapped_file_restore(), or goes on and calls
 * mapped_file_write_back() now and then.
 *
 * Another fault (a cut file, an unreadable disk) goes to the previous handler
 * (common/daemon/faults.h).
 */
#ifndef COMMON_MAPPED_FILE_H
#define COMMON_MAPPED_FILE_H

#include <stdbool.h>
#include <stdint.h>

struct mapped_file {
	uint8_t *address;
	uint64_t bytes;
	int fd;   /* open while the file is watched */
	int lost; /* an errno: the map has private pages. Atomic, relaxed */
	/* Makes a store at address + AT repeatable, or returns false; async-signal-safe. NULL:
	 * mapped_file_make_private() of that byte. */
	bool (*mend)(struct mapped_file *file, uint64_t at);
};

/* Registers FILE with the handler of SIGBUS; it must not move until mapped_file_unwatch().
 * ERR_TOO_LARGE. */
int mapped_file_watch(struct mapped_file *file);
void mapped_file_unwatch(const struct mapped_file *file);

/* Replaces the pages of BYTES from AT on by private memory with the same content, and sets `lost`.
 * Async-signal-safe. Returns false without memory, or if the file is unreadable or shorter. */
bool mapped_file_make_private(struct mapped_file *file, uint64_t at, uint64_t bytes);

static inline int mapped_file_lost(const struct mapped_file *file)
{
	return __atomic_load_n(&file->lost, __ATOMIC_RELAXED);
}
/* Maps the file again; stores into private memory are gone. Returns the old `lost`, which stays on
 * failure. */
int mapped_file_restore(struct mapped_file *file);
/* Writes the whole map into the file, then maps it again; only concurrent stores of other threads
 * are lost. For files of one writer. Returns 0, or an errno with everything as before: there is
 * still no room. */
int mapped_file_write_back(struct mapped_file *file);

#endif
