/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of an environment that does not need LMDB: data.mdb and lock.mdb as files, their
 * blocks, the disk they are on. For the env group only.
 */
#ifndef STORE_ENV_DATAFILE_H
#define STORE_ENV_DATAFILE_H

#include <stdbool.h>
#include <stdint.h>

/* Returns whether the disk has so little space that a write may have failed because of it. */
bool datafile_disk_is_full(const char *path);
/* Sets the sentence of a full disk. Returns -ENOSPC. */
int datafile_disk_full(const char *path);

/* ERR_UNSUPPORTED on file systems on which mmap and locks are not coherent between processes. */
int datafile_refuse_network(const char *directory);
/* Sets the modes of both files: data.mdb for those who may read, lock.mdb for the writer alone. */
int datafile_set_modes(const char *directory, unsigned file_mode);

#define DATAFILE_BEGIN_BYTES (256 << 10)

/* Makes the file if it is missing, and reserves its first DATAFILE_BEGIN_BYTES. RET_RESERVES:
 * whether a block that is reserved in it is there when it is written. That is not so on file
 * systems that write each change to another place, and then pages must not be written in place. */
int datafile_begin(const char *directory, bool *ret_reserves);
/* Makes lock.mdb if it is missing, and reserves its blocks: LMDB writes it through a map while
 * it opens it. On a file system that does not keep what it reserves, the disk has to have room.
 * -ENOSPC. The caller closes the file after LMDB. */
int datafile_begin_lock(const char *directory, int *ret_fd);
/* Returns whether file systems of this type (statfs) keep what they reserve. */
bool datafile_type_reserves(uint32_t type);
/* The writer cuts off what it allocated ahead after LMDB has closed the file, through a
 * descriptor that it opened before, because by then the path may name a file of another writer.
 * Readers never read beyond the last page. */
int datafile_hold(int fd); /* the caller closes it; -1: none, and nothing to cut */
void datafile_cut(int fd, uint64_t bytes);

struct datafile_blocks {
	uint64_t end;    /* blocks exist up to here, */
	uint64_t length; /* and the file has been made that long, which is less or the same */
	bool impossible; /* the file system can't reserve any */
};
/* Returns how much is allocated ahead of END, so that not each batch asks the file system: an
 * eighth, but not so much that a small database takes a small disk from the journal. */
uint64_t datafile_ahead(uint64_t end);
/* Makes the file as long as END and some more, but not longer than MOST, and reserves the
 * blocks. Async-signal-safe. Returns an errno: 0, ENOSPC, ... */
int datafile_lengthen(struct datafile_blocks *blocks, int fd, uint64_t end, uint64_t most);
/* Cuts the file off after END if it is longer, and gives all blocks beyond its end back. */
void datafile_shorten(struct datafile_blocks *blocks, int fd, uint64_t end);
/* Reserves blocks beyond the end of the file, which keeps its length: up to BETTER, or at least
 * to END. */
int datafile_keep(
	struct datafile_blocks *blocks, int fd, uint64_t end, uint64_t better, const char *path);

#endif
