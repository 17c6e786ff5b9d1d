/* SPDX-License-Identifier: Apache-2.0 */
#include "common/mapped_file.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/err.h"

/* a written database has three maps, an index four; both twice during a replacement */
#define WATCHED_MAX 32

static struct mapped_file *watched[WATCHED_MAX]; /* atomic: the handler reads them */
static pthread_mutex_t watched_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction signal_before;
static uint64_t machine_page;

/* ---- the handler -------------------------------------------------------- */

/* Passes the signal on to the previous handler, or lets it end the process. */
static void signal_pass_on(int number, siginfo_t *info, void *context)
{
	if (signal_before.sa_flags & SA_SIGINFO) {
		signal_before.sa_sigaction(number, info, context);
		return;
	}
	if (signal_before.sa_handler != SIG_DFL && signal_before.sa_handler != SIG_IGN) {
		signal_before.sa_handler(number);
		return;
	}
	/* The store is repeated after the handler, and ends the process. */
	(void)sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

bool mapped_file_make_private(struct mapped_file *file, uint64_t at, uint64_t bytes)
{
	uint64_t from = at / machine_page * machine_page,
		 to = (at + bytes + machine_page - 1) / machine_page * machine_page;

	/* Read, not mapped: tmpfs makes a block also for a private map of a hole. */
	void *memory = mmap(NULL, to - from, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	bool held = at < file->bytes &&
		    pread(file->fd, memory, to - from, (off_t)from) > (ssize_t)(at - from);
	if (!held || mremap(memory, to - from, to - from, MREMAP_MAYMOVE | MREMAP_FIXED,
			     file->address + from) == MAP_FAILED) {
		(void)munmap(memory, to - from); /* ours, whole: can't fail */
		return false;
	}
	__atomic_store_n(&file->lost, ENOSPC, __ATOMIC_RELAXED);
	return true;
}

static bool mapped_file_mend(struct mapped_file *file, const uint8_t *address)
{
	if (address < file->address || (uint64_t)(address - file->address) >= file->bytes)
		return false;
	uint64_t at = (uint64_t)(address - file->address);
	return file->mend ? file->mend(file, at) : mapped_file_make_private(file, at, 1);
}

static void signal_handle(int number, siginfo_t *info, void *context)
{
	int saved = errno;
	bool mended = false;

	for (int i = 0; i < WATCHED_MAX && !mended; i++) {
		struct mapped_file *file = __atomic_load_n(&watched[i], __ATOMIC_ACQUIRE);
		mended = file && mapped_file_mend(file, info->si_addr);
	}
	if (!mended)
		signal_pass_on(number, info, context);
	errno = saved;
}

/* ---- the maps ----------------------------------------------------------- */

static int mapped_file_enter(struct mapped_file *file)
{
	struct sigaction action = {.sa_sigaction = signal_handle,
				 .sa_flags = SA_SIGINFO | SA_ONSTACK},
			 now;
	int i = 0;

	while (i < WATCHED_MAX && watched[i])
		i++;
	if (i == WATCHED_MAX)
		return err_say(ERR_TOO_LARGE, "this process writes to %d files of stores already",
			WATCHED_MAX);
	machine_page = (uint64_t)sysconf(_SC_PAGESIZE);
	/* Each time: another part of the program may have set a handler since. */
	(void)sigemptyset(&action.sa_mask);
	if (sigaction(SIGBUS, NULL, &now) < 0)
		return err_set(-errno, "the handler of SIGBUS");
	if (now.sa_sigaction != signal_handle) {
		signal_before = now;
		(void)sigaction(SIGBUS, &action, NULL); /* fails only for unknown signals */
	}
	__atomic_store_n(&watched[i], file, __ATOMIC_RELEASE);
	return 0;
}

int mapped_file_watch(struct mapped_file *file)
{
	(void)pthread_mutex_lock(&watched_lock);
	int r = mapped_file_enter(file);
	(void)pthread_mutex_unlock(&watched_lock);
	return r;
}

void mapped_file_unwatch(const struct mapped_file *file)
{
	for (int i = 0; i < WATCHED_MAX; i++)
		if (__atomic_load_n(&watched[i], __ATOMIC_RELAXED) == file)
			__atomic_store_n(&watched[i], NULL, __ATOMIC_RELEASE);
}

int mapped_file_restore(struct mapped_file *file)
{
	int lost = mapped_file_lost(file);

	if (!lost)
		return 0;
	void *memory = mmap(file->address, file->bytes, PROT_READ | PROT_WRITE,
		MAP_FIXED | MAP_SHARED, file->fd, 0);
	if (memory != MAP_FAILED)
		__atomic_store_n(&file->lost, 0, __ATOMIC_RELAXED);
	return lost;
}

int mapped_file_write_back(struct mapped_file *file)
{
	uint64_t at = 0;

	while (mapped_file_lost(file) && at < file->bytes) {
		ssize_t n = pwrite(file->fd, file->address + at, file->bytes - at, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : ENOSPC;
		at += (uint64_t)n;
	}
	(void)mapped_file_restore(file);
	return mapped_file_lost(file);
}
