/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a writer's file longer where LMDB writes beyond its end.
 *
 * With WRITEMAP LMDB writes new pages into the map, and a page beyond the end of the file is a SIGBUS. LMDB avoids that
 * by making the file as long as the map (64 GiB of hole), which every copy then has to carry. Here the file is as long
 * as what it holds and some more (datafile_lengthen()), and the handler of SIGBUS makes it longer: the write is then
 * repeated. If the disk is full, the handler puts memory in the place of the map's rest, so that LMDB's call can
 * return; the transaction has failed (`lost`), can only be aborted, and nothing of it was written.
 *
 * The handler acts only for pages beyond the file's end as the writer left it. Every other fault goes to the handler
 * that was there before (common/daemon/faults.h): a file that somebody cut, a disk that can't be read.
 */
#include "store/env/env_internal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/check.h"
#include "common/err.h"

#define FAULT_MAPS \
	8 /* writers of a process: journal and index, and each twice while one replaces the other \
	   */

static struct mapping *fault_maps[FAULT_MAPS]; /* atomic: the handler reads them */
static struct sigaction fault_before;
static __thread bool fault_keeps_length;

/* ---- while LMDB opens the file ---- */

/* Takes the place of the C library's function in liblmdb, which calls it with the map's size when it maps a file with
 * WRITEMAP. There is no flag against that, and a file that is cut afterwards has that length for a moment, or for ever if
 * the process is killed in it. */
__attribute__((visibility("default"))) int ftruncate(int fd, off_t length)
{
	struct stat st;

	if (fault_keeps_length && fstat(fd, &st) < 0)
		return -1;
	if (fault_keeps_length && st.st_size > 0)
		return 0;
	/* LMDB writes the first pages of a new file into the map; they have blocks (datafile_begin()). */
	return (int)syscall(SYS_ftruncate, fd, fault_keeps_length ? DATAFILE_BEGIN_BYTES : length);
}

int mapping_open_short(struct mapping *map, unsigned flags, unsigned mode)
{
	fault_keeps_length = map->writemap;
	int rc = mdb_env_open(map->mdb, map->path, flags, mode);
	fault_keeps_length = false;
	return rc;
}

/* ---- the handler ---- */

/* Gives the signal to the handler that was there before, or lets it end the process. */
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
	/* The write is repeated after the handler returns, and ends the process then. */
	(void)sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

/* Returns whether the write to ADDRESS can be repeated. Async-signal-safe, like all that it calls. */
static bool fault_mend(struct mapping *map, const uint8_t *address)
{
	uint64_t at = (uint64_t)(address - map->address), length = map->blocks.length;

	if (address < map->address || at >= map->map_bytes || at < length ||
		map->forks != env_forks())
		return false;
	int error = datafile_lengthen(&map->blocks, mapping_fd(map), at + 1, map->map_bytes);
	if (!error)
		return true;
	void *rest = mmap((void *)(uintptr_t)(map->address + length), map->map_bytes - length,
		PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		0);
	if (rest == MAP_FAILED)
		return false;
	__atomic_store_n(&map->lost, error, __ATOMIC_RELAXED);
	return true;
}

static void fault_handle(int number, siginfo_t *info, void *context)
{
	int saved = errno;
	bool mended = false;

	for (int i = 0; i < FAULT_MAPS && !mended; i++) {
		struct mapping *map = __atomic_load_n(&fault_maps[i], __ATOMIC_ACQUIRE);
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

	while (i < FAULT_MAPS && fault_maps[i])
		i++;
	if (i == FAULT_MAPS)
		return err_say(ERR_TOO_LARGE, "'%s': this process writes %d databases already",
			map->path, FAULT_MAPS);
	/* Again each time, because another part of the program may have set a handler since. */
	(void)sigemptyset(&action.sa_mask);
	if (sigaction(SIGBUS, NULL, &now) < 0)
		return err_set(-errno, "the handler of SIGBUS");
	if (now.sa_sigaction != fault_handle) {
		fault_before = now;
		(void)sigaction(SIGBUS, &action, NULL); /* fails only for unknown signals */
	}
	__atomic_store_n(&fault_maps[i], map, __ATOMIC_RELEASE);
	return 0;
}

void mapping_unwatch_faults(const struct mapping *map)
{
	for (int i = 0; i < FAULT_MAPS; i++)
		if (fault_maps[i] == map)
			__atomic_store_n(&fault_maps[i], NULL, __ATOMIC_RELEASE);
}

/* ---- after a transaction ---- */

void mapping_end_write(struct mapping *map)
{
	uint64_t end = mapping_state_end(map), ahead = datafile_ahead(end),
		 from = map->blocks.length;

	if (!map->writemap)
		return;
	if (map->lost) {
		void *rest = mmap((void *)(uintptr_t)(map->address + from), map->map_bytes - from,
			PROT_READ | PROT_WRITE, MAP_FIXED | MAP_SHARED, mapping_fd(map),
			(off_t)from);
		if (rest == MAP_FAILED)
			return; /* all that is written fails until the environment is opened again
				 */
		(void)madvise(rest, map->map_bytes - from, MADV_RANDOM); /* only saves time */
		map->lost = 0;
		datafile_shorten(&map->blocks, mapping_fd(map), end);
	} else if (map->blocks.end >
		   end + 2 * ahead) { /* txn_allocate() reserves the most that a step can take */
		datafile_shorten(&map->blocks, mapping_fd(map), end + ahead);
	}
}
