/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of an environment that does not need LMDB: data.mdb and lock.mdb as files, their blocks, the disk they are
 * on. For the env group only.
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
/* ERR_UNSUPPORTED for a reader that can't write lock.mdb: LMDB would give it no slot without saying so, and the writer
 * would reuse pages that it reads. */
int datafile_require_slot(const char *directory);
/* Sets the modes of both files: a group that may read has to write lock.mdb. LMDB gives both one mode. */
int datafile_set_modes(const char *directory, unsigned file_mode);

/* Reserves BYTES of blocks before LMDB opens the file with WRITEMAP, because it touches the first pages of a new file at
 * once. RET_SIZE: how long the file is before LMDB makes it as long as the map. */
int datafile_begin(const char *directory, uint64_t bytes, uint64_t *ret_size);
/*
 * With WRITEMAP the file is as long as the map, with a hole after the last page. A program that knows nothing of holes
 * would make a copy of that length. So the writer cuts the hole off after LMDB has closed the file; readers never read
 * beyond the last page, and the next writer makes the file long again. The writer cuts through a descriptor that it
 * opened before, because by then the path may name a file of another writer.
 */
int datafile_hold(int fd); /* the caller closes it; -1: none, and nothing to cut */
void datafile_cut(int fd, uint64_t bytes);

struct datafile_blocks {
	uint64_t end;    /* blocks exist up to here */
	bool impossible; /* the file system can't reserve any */
};
/* Reserves blocks up to END, and some more, but not beyond MOST; the file becomes that long. 0, -ENOSPC. */
int datafile_extend(struct datafile_blocks *blocks, int fd, uint64_t end, uint64_t most,
	const char *path);
/* Reserves blocks beyond the end of the file, which keeps its length: up to BETTER, or at least to END. */
int datafile_keep(struct datafile_blocks *blocks, int fd, uint64_t end, uint64_t better,
	const char *path);

#endif
