/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of an environment without LMDB: data.mdb and lock.mdb as files, their blocks, their
 * disk. For the env group only.
 */
#ifndef STORE_ENV_DATAFILE_H
#define STORE_ENV_DATAFILE_H

#include <stdbool.h>
#include <stdint.h>

/* Returns true if the disk is so full that a write may have failed for it. */
bool datafile_disk_is_full(const char *path);
/* Sets the sentence of a full disk. Returns -ENOSPC. */
int datafile_disk_full(const char *path);

/* ERR_UNSUPPORTED on file systems without coherent mmap and locks between processes. */
int datafile_refuse_network(const char *directory);
/* Sets the modes of both files: data.mdb for all readers, lock.mdb for the writer alone. */
int datafile_set_modes(const char *directory, unsigned file_mode);

#define DATAFILE_BEGIN_BYTES (256 << 10)

/* Makes the file if it is missing, and reserves its first DATAFILE_BEGIN_BYTES. RET_RESERVES: a
 * reserved block is there when it is written. Not so on file systems writing each change to another
 * place: pages must not be written in place there. */
int datafile_begin(const char *directory, bool *ret_reserves);
/* Makes lock.mdb if it is missing, and reserves its blocks: LMDB writes it through a map while it
 * opens it. On a file system that loses reserved blocks the disk must have room. -ENOSPC. The
 * caller closes the file after LMDB. */
int datafile_begin_lock(const char *directory, int *ret_fd);
/* Returns whether file systems of this type (statfs) keep reserved blocks. */
bool datafile_type_reserves(uint32_t type);
/* Cuts off the preallocated end. Readers never read beyond the last page. */
void datafile_cut(int fd, uint64_t bytes);

struct datafile_blocks {
	uint64_t end;    /* blocks exist up to here */
	uint64_t length; /* length of the file, at most `end` */
	bool impossible; /* the file system can't reserve any */
};
/* Returns the bytes to allocate ahead of END, to ask the file system less often: an eighth, but
 * little enough to leave the journal room on a small disk. */
uint64_t datafile_ahead(uint64_t end);
/* Makes the file as long as END and some more, but not longer than MOST, and reserves the blocks.
 * Async-signal-safe. Returns an errno: 0, ENOSPC, ... */
int datafile_lengthen(struct datafile_blocks *blocks, int fd, uint64_t end, uint64_t most);
/* Cuts the file off after END if it is longer, and gives all blocks beyond its end back. */
void datafile_shorten(struct datafile_blocks *blocks, int fd, uint64_t end);
/* Reserves blocks beyond the end of the file, up to BETTER, or at least to END. The file keeps its
 * length. */
int datafile_keep(
	struct datafile_blocks *blocks, int fd, uint64_t end, uint64_t better, const char *path);

#endif
