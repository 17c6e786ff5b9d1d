/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer and the faults in its map (mapped_file.h).
 *
 * With WRITEMAP LMDB writes new pages into the map, and a page beyond the end of the file is a
 * SIGBUS. LMDB avoids that by making the file as long as the map (64 GiB of hole), which every
 * copy then has to carry. Here the file is as long as what it holds and some more
 * (datafile_lengthen()), and the handler of SIGBUS makes it longer: the write is then repeated.
 * If the disk is full, there or in the middle of the file, memory takes the place of what can't
 * be written, so that LMDB's call can return: the transaction has failed (`lost`) and can only
 * be aborted. A commit that fails in that way has written its meta page into memory as well, and
 * mapping_undo_commit() puts LMDB back.
 *
 * Without WRITEMAP LMDB writes pages with calls, which fail, and so does the transaction. Only
 * after a meta page that could not be written LMDB refuses all until the file is opened again.
 * pwrite() hides that from it, and the commit is undone in the same way.
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
#define META_MAX      256 /* of what LMDB writes into a meta page */
#define PREPARE_BYTES ((uint64_t)256 << 10)

static __thread bool fault_keeps_length;

/* ---- while LMDB opens the file ------------------------------------------ */

/* Takes the place of the C library's function in liblmdb, which calls it with the map's size
 * when it maps a file with WRITEMAP. There is no flag against that, and a file that is cut
 * afterwards has that length for a moment, or for ever if the process is killed in it. */
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

/* ---- a meta page that the disk does not take, without WRITEMAP ---------- */

static __thread struct mapping *fault_commits; /* it commits in this thread */

static ssize_t fault_pwrite(int fd, const void *from, size_t size, off_t at)
{
	static ssize_t (*next)(int, const void *, size_t, off_t);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "pwrite");
	return next(fd, from, size, at);
}

/* Puts back what a meta page held. With durability the new bytes may have reached the disk
 * before the call failed. */
static bool fault_put_back(struct mapping *map, const void *meta, size_t size, off_t at)
{
	unsigned flags = 0;

	(void)mdb_env_get_flags(map->mdb, &flags);
	return fault_pwrite(mapping_fd(map), meta, size, at) == (ssize_t)size &&
	       (flags & MDB_NOSYNC || fdatasync(mapping_fd(map)) == 0);
}

/* Takes the place of the C library's function in liblmdb. */
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

/* Puts memory in the place of all that lies beyond the end of the file. Async-signal-safe. */
static bool fault_lose_rest(struct mapped_file *file, uint64_t length, int error)
{
	void *rest = mmap(file->address + length, file->bytes - length, PROT_READ | PROT_WRITE,
		MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (rest == MAP_FAILED)
		return false;
	__atomic_store_n(&file->lost, error, __ATOMIC_RELAXED);
	return true;
}

/* The handler's part. Async-signal-safe, like all that it calls. */
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
	/* A commit writes a meta page last, and LMDB does not know of this fault. Only once: the
	 * pages beside them may have been written to since. */
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
		until = map->blocks.length; /* what is longer has no block yet */
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

/* Maps the file again, with WRITEMAP. If that fails, all that is written fails until the
 * environment is opened again. */
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
		   end + 2 * ahead) { /* txn_allocate() reserves the most that a step can take */
		datafile_shorten(&map->blocks, mapping_fd(map), end + ahead);
	}
}

/* ---- blocks ------------------------------------------------------------- */

/*
 * Reserves blocks (fallocate) for pages before they are written, so that a full disk is -ENOSPC
 * before a step instead of a failed transaction. The file keeps its length: env_fault.c makes it
 * longer as far as it is written.
 */

/* Returns where BYTES beyond the last page end. */
static uint64_t mapping_end_with(const struct mapping *map, uint64_t bytes)
{
	uint64_t end = mapping_state_end(map) + bytes;

	return end < map->map_bytes ? end : map->map_bytes;
}

/* Returns the most that a commit writes. LMDB's list of free pages has 8 bytes for a page, twice
 * at most: for those that were freed and those that are left. */
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

/* All that LMDB has written so far lies before the end of the file, which grows where it writes.
 * So blocks after that end for this step, for what is kept free and for the commit are enough,
 * however much all steps together could take. */
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
