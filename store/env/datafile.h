/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of an environment needs no LMDB: data.mdb and lock.mdb as files in their folder, the blocks
 * they have, the disk they are on. For the env group only.
 */
#ifndef STORE_ENV_DATAFILE_H
#define STORE_ENV_DATAFILE_H

#include <stdbool.h>
#include <stdint.h>

/* So little is free that a write may have failed for it. */
bool datafile_disk_is_full(const char *path);
/* Says so: -ENOSPC. */
int datafile_disk_full(const char *path);

/* ERR_UNSUPPORTED on file systems where mmap and locks are not coherent between processes
 * (docs/architecture.md, LMDB). */
int datafile_refuse_network(const char *directory);
/* ERR_UNSUPPORTED for a reader that can't write lock.mdb: it would silently get no slot, and pages
 * would be recycled under it. */
int datafile_require_slot(const char *directory);
/* The group may read, and needs to write the lock file for its slots; LMDB gives both one mode. */
int datafile_set_modes(const char *directory, unsigned file_mode);

/* Before LMDB opens it with WRITEMAP: BYTES of blocks, because it touches the first pages of a new file
 * before anybody knows its length; and how long the file is before it is made as long as the map. */
int datafile_begin(const char *directory, uint64_t bytes, uint64_t *ret_size);
/*
 * With WRITEMAP the file is as long as the map, with a hole behind the last page; a copy made by a
 * program that knows no holes would be that large. No reader ever looks behind the last page, and the
 * next writer makes the file long again. So the hole is cut off, after LMDB has closed the file, through
 * a descriptor that was taken before: the file at the path may be another one by now. A store that was
 * removed under its daemons and made anew has folders of the same names, and somebody writes there.
 */
int datafile_hold(int fd); /* the caller closes it; -1: none, and nothing to cut */
void datafile_cut(int fd, uint64_t bytes);

struct datafile_blocks {
	uint64_t end;    /* they exist up to here */
	bool impossible; /* the file system can't keep any */
};
/* Blocks up to END, and some more but not beyond MOST; the file becomes that long. 0, -ENOSPC. */
int datafile_extend(struct datafile_blocks *blocks, int fd, uint64_t end, uint64_t most,
	const char *path);
/* Blocks up to BETTER, or at least to END, behind the end of the file, which stays where it is. */
int datafile_keep(struct datafile_blocks *blocks, int fd, uint64_t end, uint64_t better,
	const char *path);

#endif
