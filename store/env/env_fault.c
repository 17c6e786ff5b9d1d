/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer and the faults in its map.
 *
 * With WRITEMAP LMDB writes new pages into the map, and a page beyond the end of the file is a
 * SIGBUS. LMDB makes the file as long as the map (64 GiB of hole) against it, and every copy
 * carries it. Here the file is about as long as its content (datafile_lengthen()), and the handler
 * of SIGBUS lengthens it and repeats the write. On a full disk memory replaces the page, LMDB's
 * call returns, and the transaction has failed (`lost`): it can only be aborted. A commit has the
 * blocks of its pages already (mapping_allocate_commit()).
 *
 * Any other fault goes to the previous handler, which ends a daemon (common/daemon/faults.h): of a
 * block shared with a copy (cp --reflink) when the disk is full, for instance.
 */
#include "store/env/env_internal.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/check.h"
#include "common/err.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#define PREPARE_BYTES ((uint64_t)256 << 10)
#define WATCHED_MAX   32 /* a daemon writes one database, and two while a copy is made */

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

/* ---- a fault ------------------------------------------------------------ */

static struct mapping *fault_watched[WATCHED_MAX]; /* atomic: the handler reads them */
static struct sigaction fault_before;

/* Passes the signal on to the previous handler, or lets it end the process. */
static void fault_pass_on(int number, siginfo_t *info, void *context)
{
	if (fault_before.sa_flags & SA_SIGINFO) {
		fault_before.sa_sigaction(number, info, context);
		return;
	}
	if (fault_before.sa_handler != SIG_DFL && fault_before.sa_handler != SIG_IGN) {
		fault_before.sa_handler(number);
		return;
	}
	/* The store is repeated after the handler, and ends the process. */
	(void)sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

/* Puts memory in place of the map beyond the end of the file: the write transaction has failed with
 * ERROR, an errno. Async-signal-safe. */
static bool fault_lose_rest(struct mapping *map, int error)
{
	uint64_t length = map->blocks.length;
	void *rest = mmap((void *)(uintptr_t)(map->address + length), map->map_bytes - length,
		PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		0);

	if (rest == MAP_FAILED)
		return false;
	__atomic_store_n(&map->lost, error, __ATOMIC_RELAXED);
	return true;
}

/* Makes a store at ADDRESS repeatable. Async-signal-safe. */
static bool fault_mend(struct mapping *map, const uint8_t *address)
{
	uint64_t at = (uint64_t)(address - map->address);

	if (address < map->address || at >= map->map_bytes || at < map->blocks.length ||
		mapping_is_forked(map))
		return false;
	int error = datafile_lengthen(&map->blocks, mapping_fd(map), at + 1, map->map_bytes);
	/* In memory a commit would be none, and LMDB would not know it. */
	return !error || (!map->is_committing && fault_lose_rest(map, error));
}

static void fault_handle(int number, siginfo_t *info, void *context)
{
	int saved = errno;
	bool mended = false;

	for (int i = 0; i < WATCHED_MAX && !mended; i++) {
		struct mapping *map = __atomic_load_n(&fault_watched[i], __ATOMIC_ACQUIRE);
		mended = map && fault_mend(map, info->si_addr);
	}
	if (!mended)
		fault_pass_on(number, info, context);
	errno = saved;
}

int mapping_watch_faults(struct mapping *map)
{
	struct sigaction action = {.sa_sigaction = fault_handle,
				 .sa_flags = SA_SIGINFO | SA_ONSTACK},
			 now;
	int i = 0;

	while (i < WATCHED_MAX && fault_watched[i])
		i++;
	if (i == WATCHED_MAX)
		return err_say(
			ERR_TOO_LARGE, "this process writes to %d databases already", WATCHED_MAX);
	/* Each time: another part of the program may have set a handler since. */
	(void)sigemptyset(&action.sa_mask);
	if (sigaction(SIGBUS, NULL, &now) < 0)
		return err_set(-errno, "the handler of SIGBUS");
	if (now.sa_sigaction != fault_handle) {
		fault_before = now;
		(void)sigaction(SIGBUS, &action, NULL); /* fails only for unknown signals */
	}
	__atomic_store_n(&fault_watched[i], map, __ATOMIC_RELEASE);
	return 0;
}

void mapping_unwatch_faults(const struct mapping *map)
{
	for (int i = 0; i < WATCHED_MAX; i++)
		if (__atomic_load_n(&fault_watched[i], __ATOMIC_RELAXED) == map)
			__atomic_store_n(&fault_watched[i], NULL, __ATOMIC_RELEASE);
}

/* ---- while the writer is idle ------------------------------------------- */

void env_prepare(struct env *env)
{
	CHECK_OBJ(env, ENV_MAGIC);
	struct mapping *map = env->map;
	uint64_t end = mapping_state_end(map), until = end + PREPARE_BYTES;

	if (!map->writemap || mapping_is_forked(map) || map->lost ||
		map->prepared >= end + PREPARE_BYTES / 2)
		return;
	if (until > map->blocks.length)
		until = map->blocks.length; /* beyond it are no blocks yet */
	uint64_t from = map->prepared > end ? map->prepared : end,
		 machine_page = (uint64_t)sysconf(_SC_PAGESIZE);
	from = (from + machine_page - 1) / machine_page *
	       machine_page; /* LMDB's pages may be smaller */
	if (from < until && madvise((void *)(uintptr_t)(map->address + from), until - from,
				    MADV_POPULATE_WRITE) < 0)
		until = end + PREPARE_BYTES; /* an old kernel, or no memory: not at once again */
	map->prepared = until;
}

/* ---- after a transaction ------------------------------------------------ */

void mapping_end_write(struct mapping *map)
{
	uint64_t end = mapping_state_end(map), ahead = datafile_ahead(end);

	if (!map->writemap)
		return;
	if (map->lost) {
		void *memory = mmap((void *)(uintptr_t)map->address, map->map_bytes,
			PROT_READ | PROT_WRITE, MAP_FIXED | MAP_SHARED, mapping_fd(map), 0);

		if (memory != MAP_FAILED) { /* else writes fail until the next opening */
			__atomic_store_n(&map->lost, 0, __ATOMIC_RELAXED);
			(void)madvise(memory, map->map_bytes, MADV_RANDOM); /* only saves time */
		}
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
