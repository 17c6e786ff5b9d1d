/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps of files written by this process, and a full disk.
 *
 * A store into a map is a SIGBUS if the file system finds no block for it: beyond the end of the
 * file; on a file system with copy on write (btrfs, ZFS); in blocks shared with a copy (cp
 * --reflink, also on XFS). The handler of SIGBUS then puts memory of this process, with the same
 * content, in place of that page, for the store to be repeated, and sets `lost`. Nobody else sees
 * that store. The map's owner looks at `lost` after its stores, does not publish the result, and
 * calls mapped_file_restore(); or it goes on, and calls mapped_file_write_back() now and then.
 *
 * Another fault (a cut file, a broken disk) goes to the earlier handler (common/daemon/faults.h).
 */
#ifndef COMMON_MAPPED_FILE_H
#define COMMON_MAPPED_FILE_H

#include <stdbool.h>
#include <stdint.h>

struct mapped_file {
	uint8_t *address;
	uint64_t bytes;
	int fd;   /* of the file; open as long as it is watched */
	int lost; /* an errno: pages of the map are memory of this process. Atomic, relaxed */
	/* Makes it possible to repeat a store at address + AT, or returns false;
	 * async-signal-safe. NULL: mapped_file_make_private() of that byte. */
	bool (*mend)(struct mapped_file *file, uint64_t at);
};

/* Lets the handler of SIGBUS know FILE, fixed in memory until mapped_file_unwatch().
 * ERR_TOO_LARGE. */
int mapped_file_watch(struct mapped_file *file);
void mapped_file_unwatch(const struct mapped_file *file);

/* Puts memory with the same content in place of the pages of BYTES from AT on, and sets `lost`.
 * Async-signal-safe. False: there is none, or the file can't be read there, or ends before. */
bool mapped_file_make_private(struct mapped_file *file, uint64_t at, uint64_t bytes);

static inline int mapped_file_lost(const struct mapped_file *file)
{
	return __atomic_load_n(&file->lost, __ATOMIC_RELAXED);
}
/* Maps the file again; stores into memory are gone. If it fails, `lost` stays. Returns the former
 * `lost`. */
int mapped_file_restore(struct mapped_file *file);
/* Writes the whole map into the file, then maps it again: only stores of other threads meanwhile
 * are lost. For a file of this process alone. Returns: 0; an errno: there is still no room, and all
 * stays as it is. */
int mapped_file_write_back(struct mapped_file *file);

#endif
