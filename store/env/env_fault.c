/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer and the faults in its map (mapped_file.h).
 *
 * With WRITEMAP LMDB writes new pages into the map, and a page beyond the end of the file is a
 * SIGBUS. LMDB makes the file as long as the map (64 GiB of hole) against it, and every copy
 * carries it. Here the file is about as long as its content (datafile_lengthen()), and the handler
 * of SIGBUS lengthens it and repeats the write. On a full disk memory replaces the page, LMDB's
 * call returns, and the transaction has failed (`lost`): it can only be aborted. Such a commit has
 * its meta page in memory as well; mapping_undo_commit() rolls LMDB back.
 *
 * Without WRITEMAP LMDB writes pages with calls, and their errors fail the transaction. After the
 * error of a meta page it refuses everything until the file is opened again: pwrite() hides this
 * error, and the commit is rolled back in the same way.
 */
#include "store/env/env_internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/check.h"
#include "common/err.h"
#include "common/failpoint.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#define META_MAX      256 /* of a write of a meta page */
#define PREPARE_BYTES ((uint64_t)256 << 10)

static __thread bool fault_keeps_length;

/* ---- while LMDB opens the file ------------------------------------------ */

/* Replaces the C library's function in liblmdb: it passes the map's size for a file with WRITEMAP,
 * without a flag against it. To cut the file afterwards is too late after a kill. */
__attribute__((visibility("default"))) int ftruncate(int fd, off_t length)
{
	struct stat st;

	if (fault_keeps_length && fstat(fd, &st) < 0)
		return -1;
	if (fault_keeps_length && st.st_size > 0)
		return 0;
	/* LMDB writes the first pages of a new file into the map; they have blocks
	 * (datafile_begin()). */
	return (int)syscall(SYS_ftruncate, fd, fault_keeps_length ? DATAFILE_BEGIN_BYTES : length);
}

int mapping_open_short(struct mapping *map, unsigned flags, unsigned mode)
{
	fault_keeps_length = map->writemap;
	int rc = mdb_env_open(map->mdb, map->path, flags, mode);
	fault_keeps_length = false;
	return rc;
}

/* ---- a meta page refused by the disk, without WRITEMAP ------------------ */

static __thread struct mapping *fault_commits; /* it commits in this thread */

static ssize_t fault_pwrite(int fd, const void *from, size_t size, off_t at)
{
	static ssize_t (*next)(int, const void *, size_t, off_t);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "pwrite");
	return next(fd, from, size, at);
}

/* Restores a meta page. With durability the new bytes may be on the disk although the call
 * failed. */
static bool fault_put_back(struct mapping *map, const void *meta, size_t size, off_t at)
{
	unsigned flags = 0;

	(void)mdb_env_get_flags(map->mdb, &flags);
	return fault_pwrite(mapping_fd(map), meta, size, at) == (ssize_t)size &&
	       (flags & MDB_NOSYNC || fdatasync(mapping_fd(map)) == 0);
}

/* Replaces the C library's function in liblmdb. */
__attribute__((visibility("default"))) ssize_t pwrite(
	int fd, const void *from, size_t size, off_t at)
{
	struct mapping *map = fault_commits;
	uint8_t before[META_MAX];

	if (!map || map->writemap || size > sizeof(before) ||
		(uint64_t)at + size > 2 * map->page_size ||
		pread(mapping_fd(map), before, size, at) != (ssize_t)size)
		return fault_pwrite(fd, from, size, at);
	int fails = failpoint_pass(FAILPOINT_ENV_META);
	ssize_t n = fails < 0 ? -1 : fault_pwrite(fd, from, size, at);
	int error = fails < 0 ? -fails : n < 0 ? errno : ENOSPC; /* a short write is a full disk */
	if (n == (ssize_t)size || (error != ENOSPC && error != EDQUOT) ||
		!fault_put_back(map, before, size, at)) {
		errno = error;
		return n;
	}
	__atomic_store_n(&map->written.lost, error, __ATOMIC_RELAXED);
	return (ssize_t)size;
}

int mapping_commit_pages(struct mapping *map, MDB_txn *txn)
{
	fault_commits = map;
	int rc = mapping_write_error(mdb_txn_commit(txn));
	fault_commits = NULL;
	return rc;
}

/* ---- a fault ------------------------------------------------------------ */

/* Replaces the map beyond the end of the file by memory. Async-signal-safe. */
static bool fault_lose_rest(struct mapped_file *file, uint64_t length, int error)
{
	void *rest = mmap(file->address + length, file->bytes - length, PROT_READ | PROT_WRITE,
		MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (rest == MAP_FAILED)
		return false;
	__atomic_store_n(&file->lost, error, __ATOMIC_RELAXED);
	return true;
}

/* Runs in the handler. Async-signal-safe. */
static bool fault_mend(struct mapped_file *file, uint64_t at)
{
	struct mapping *map =
		(struct mapping *)(void *)((uint8_t *)file - offsetof(struct mapping, written));
	bool is_first = !mapped_file_lost(file), mended;

	if (map->forks != forks_count())
		return false;
	if (at < map->blocks.length) {
		mended = mapped_file_make_private(file, at, 1);
	} else {
		int error = datafile_lengthen(&map->blocks, file->fd, at + 1, file->bytes);
		if (!error)
			return true;
		mended = fault_lose_rest(file, map->blocks.length, error);
	}
	/* LMDB does not know of this fault, and a commit writes a meta page last. Once: the pages
	 * beside them may have changed since. */
	if (mended && is_first && at >= 2 * map->page_size)
		mended = mapped_file_make_private(file, 0, 2 * map->page_size);
	return mended;
}

/* ---- while the writer is idle ------------------------------------------- */

void env_prepare(struct env *env)
{
	CHECK_OBJ(env, ENV_MAGIC);
	struct mapping *map = env->map;
	uint64_t end = mapping_state_end(map), until = end + PREPARE_BYTES;

	if (!map->writemap || mapping_is_forked(map) || mapped_file_lost(&map->written) ||
		map->prepared >= end + PREPARE_BYTES / 2)
		return;
	if (until > map->blocks.length)
		until = map->blocks.length; /* beyond it are no blocks yet */
	uint64_t from = map->prepared > end ? map->prepared : end,
		 machine_page = (uint64_t)sysconf(_SC_PAGESIZE);
	from = (from + machine_page - 1) / machine_page *
	       machine_page; /* LMDB's pages may be smaller */
	if (from < until &&
		madvise(map->written.address + from, until - from, MADV_POPULATE_WRITE) < 0)
		until = end + PREPARE_BYTES; /* an old kernel, or no memory: not at once again */
	map->prepared = until;
}

/* ---- the handler's place ------------------------------------------------ */

int mapping_watch_faults(struct mapping *map)
{
	map->written.address = (uint8_t *)(uintptr_t)map->address;
	map->written.bytes = map->map_bytes;
	map->written.fd = mapping_fd(map);
	map->written.mend = fault_mend;
	return mapped_file_watch(&map->written);
}

/* ---- after a transaction ------------------------------------------------ */

/* Maps the file again, with WRITEMAP. After a failure writes fail until the next opening. */
static void fault_restore(struct mapping *map)
{
	if (!map->writemap) {
		__atomic_store_n(&map->written.lost, 0, __ATOMIC_RELAXED);
		return;
	}
	(void)mapped_file_restore(&map->written);
	(void)madvise(map->written.address, map->written.bytes, MADV_RANDOM); /* only saves time */
}

int mapping_undo_commit(struct mapping *map, uint64_t txn)
{
	int lost = mapped_file_lost(&map->written);

	fault_restore(map);
	if (*map->newest == txn) /* else it wrote nothing */
		*map->newest = txn - 1;
	return lost;
}

void mapping_end_write(struct mapping *map)
{
	uint64_t end = mapping_state_end(map), ahead = datafile_ahead(end);

	if (!map->writemap)
		return;
	if (mapped_file_lost(&map->written)) {
		fault_restore(map);
		end = mapping_state_end(map);
		datafile_shorten(&map->blocks, mapping_fd(map), end);
	} else if (map->blocks.end >
		   end + 2 * ahead) { /* txn_allocate() reserves the most of a step */
		datafile_shorten(&map->blocks, mapping_fd(map), end + ahead);
	}
}

/* ---- blocks ------------------------------------------------------------- */

/*
 * Blocks are reserved (fallocate) before pages are written: a full disk is -ENOSPC before a step,
 * and not a failed transaction. The file keeps its length until the pages are written.
 */

/* Returns the end of BYTES beyond the last page. */
static uint64_t mapping_end_with(const struct mapping *map, uint64_t bytes)
{
	uint64_t end = mapping_state_end(map) + bytes;

	return end < map->map_bytes ? end : map->map_bytes;
}

/* Returns the most bytes of a commit. LMDB's list has 8 bytes for a free page, twice at most. */
static uint64_t mapping_commit_bytes(const struct mapping *map)
{
	return map->open_bytes + map->blocks.length / (map->page_size / 16);
}

/* A transaction with a room of its own (txn_allocate()) has counted the commit in. */
int mapping_allocate_commit(struct mapping *map, const struct txn *txn)
{
	uint64_t end = map->blocks.length, bytes = mapping_commit_bytes(map);

	if (!map->writemap || txn->room)
		return 0;
	end = bytes < map->map_bytes - end ? end + bytes : map->map_bytes;
	return datafile_keep(&map->blocks, mapping_fd(map), end, end, map->path);
}

int mapping_count_pages(
	const struct mapping *map, MDB_txn *txn, bool with_overflow, uint64_t *ret_pages)
{
	uint64_t pages = 2; /* meta pages */
	MDB_stat stat;

	/* 0 is LMDB's list of free pages, 1 its table of databases. */
	for (MDB_dbi i = 0; i < map->n_databases + 2; i++) {
		int rc = mdb_stat(txn, i < 2 ? i : map->databases[i - 2], &stat);
		if (rc)
			return mapping_failed(map, rc, "reading");
		pages += stat.ms_branch_pages + stat.ms_leaf_pages;
		pages += with_overflow ? stat.ms_overflow_pages : 0;
	}
	*ret_pages = pages;
	return 0;
}

int txn_keep_free(struct txn *txn, uint64_t bytes)
{
	struct mapping *map = txn->map;
	uint64_t pages;

	txn_require_write(txn);
	if (bytes > map->map_bytes / 8)
		bytes = map->map_bytes / 8;
	int r = mapping_count_pages(map, txn->mdb, true, &pages);
	if (r < 0)
		return r;
	uint64_t used = pages * map->page_size;
	if (used + bytes > map->map_bytes)
		return mapping_failed(map, MDB_MAP_FULL, "writing");
	if (map->writemap) {
		txn->kept = bytes;
		return txn_allocate(txn, bytes);
	}
	/* Keeps blocks beyond the last page, unless free pages before it are enough. */
	if (mapping_end_with(map, 0) > used + 2 * bytes)
		return 0;
	return datafile_keep(&map->blocks, mapping_fd(map), mapping_end_with(map, bytes),
		mapping_end_with(map, 2 * bytes), map->path); /* twice: not each time */
}

/* All written pages lie before the end of the file. Blocks after it for this step, the kept bytes
 * and the commit are enough, however much all steps together could take. */
int txn_allocate(struct txn *txn, uint64_t bytes)
{
	struct mapping *map = txn->map;

	txn_require_write(txn);
	if (!map->writemap)
		return 0;
	uint64_t written = map->blocks.length + bytes + txn->kept + mapping_commit_bytes(map);
	uint64_t end = mapping_end_with(map, txn->room + bytes);
	if (written < end)
		end = written;
	uint64_t better = end + datafile_ahead(end);
	int r = datafile_keep(&map->blocks, mapping_fd(map), end,
		better < map->map_bytes ? better : map->map_bytes, map->path);
	if (r == 0)
		txn->room += bytes;
	return r;
}

int txn_allocate_copies(struct txn *txn, uint64_t bytes)
{
	struct mapping *map = txn->map;
	uint64_t pages;

	txn_require_write(txn);
	int r = mapping_count_pages(map, txn->mdb, false, &pages);
	if (r < 0)
		return r;
	uint64_t most = pages * map->page_size + map->open_bytes;
	return txn_allocate(txn, bytes < most ? bytes : most);
}
