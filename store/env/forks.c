/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/forks.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/check.h"

#define FORKS_WATCHERS_MAX 4

/* The page has FORKS_KNOWN in the process that wrote it and FORKS_CHILD in its children. */
enum { FORKS_CHILD = 0, FORKS_KNOWN, FORKS_BUSY };

static struct {
	pthread_once_t once;
	pthread_mutex_t lock; /* of the watchers */
	unsigned count;       /* atomic */
	unsigned *page;       /* atomic; NULL: the kernel has no such pages, or there was no memory for one */
	unsigned n;           /* atomic */
	void (*in_child[FORKS_WATCHERS_MAX])(void);
} forks = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static void forks_begin_child(void)
{
	unsigned n = __atomic_load_n(&forks.n, __ATOMIC_ACQUIRE);

	(void)pthread_mutex_init(&forks.lock, NULL);
	for (unsigned i = 0; i < n; i++)
		forks.in_child[i]();
	(void)__atomic_add_fetch(&forks.count, 1, __ATOMIC_RELEASE);
}

/* Several threads of a child may come here at once: all of them return when one has done it. */
static void __attribute__((cold)) forks_notice(unsigned *page)
{
	unsigned child = FORKS_CHILD;

	if (__atomic_compare_exchange_n(page, &child, FORKS_BUSY, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		forks_begin_child();
		__atomic_store_n(page, FORKS_KNOWN, __ATOMIC_RELEASE);
	}
	while (__atomic_load_n(page, __ATOMIC_ACQUIRE) == FORKS_BUSY)
		(void)sched_yield();
}

static void forks_after_fork(void)
{
	if (!forks.page)
		forks_begin_child();
	else
		forks_notice(forks.page);
}

static void forks_begin(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	unsigned *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page != MAP_FAILED && madvise(page, size, MADV_WIPEONFORK) == 0) {
		*page = FORKS_KNOWN;
		__atomic_store_n(&forks.page, page, __ATOMIC_RELEASE);
	} else if (page != MAP_FAILED) {
		(void)munmap(page, size);
	}
	(void)pthread_atfork(NULL, NULL, forks_after_fork);
}

void forks_watch(void (*before)(void), void (*after)(void), void (*in_child)(void))
{
	(void)pthread_once(&forks.once, forks_begin);
	(void)pthread_mutex_lock(&forks.lock);
	REQUIRE(forks.n < FORKS_WATCHERS_MAX);
	forks.in_child[forks.n] = in_child;
	__atomic_store_n(&forks.n, forks.n + 1, __ATOMIC_RELEASE);
	(void)pthread_mutex_unlock(&forks.lock);
	(void)pthread_atfork(before, after, NULL);
}

unsigned forks_count(void)
{
	unsigned *page = __atomic_load_n(&forks.page, __ATOMIC_ACQUIRE);

	if (page && __builtin_expect(__atomic_load_n(page, __ATOMIC_ACQUIRE) != FORKS_KNOWN, 0))
		forks_notice(page);
	return __atomic_load_n(&forks.count, __ATOMIC_ACQUIRE);
}
