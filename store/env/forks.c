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

/*
 * The word has one value in the process that wrote it, and another in its children: it is in a
 * page that the kernel gives them as zeros, or the process's number. FORKS_BUSY is in it while a
 * child makes its locks again.
 */
#define FORKS_KNOWN 1u
#define FORKS_BUSY  (~0u)

static struct {
	pthread_once_t once;
	pthread_mutex_t lock; /* of the watchers */
	unsigned count;       /* atomic */
	unsigned number;      /* the word when there is no page */
	unsigned *word;       /* atomic; NULL: nobody watches */
	bool has_page;
	unsigned n; /* atomic */
	void (*in_child[FORKS_WATCHERS_MAX])(void);
} forks = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static __thread unsigned forks_prepared; /* the count when this thread called fork(3) */

static unsigned forks_own_value(void)
{
	return forks.has_page ? FORKS_KNOWN : (unsigned)getpid();
}

static void forks_begin_child(void)
{
	unsigned n = __atomic_load_n(&forks.n, __ATOMIC_ACQUIRE);

	(void)pthread_mutex_init(&forks.lock, NULL);
	for (unsigned i = 0; i < n; i++)
		forks.in_child[i]();
	(void)__atomic_add_fetch(&forks.count, 1, __ATOMIC_RELEASE);
}

/* Several threads of a child may come here at once: all of them return when one has done it. */
static void __attribute__((cold)) forks_notice(unsigned *word, unsigned own)
{
	unsigned seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);

	if (seen != own && seen != FORKS_BUSY &&
		__atomic_compare_exchange_n(
			word, &seen, FORKS_BUSY, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		forks_begin_child();
		__atomic_store_n(word, own, __ATOMIC_RELEASE);
	}
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == FORKS_BUSY)
		(void)sched_yield();
}

static void forks_before_fork(void)
{
	forks_prepared = forks_count();
}

/* Whatever the word says: an emulated kernel may promise pages of zeros and not give them.
 * Another library's handler may have called this one before, and been noticed. */
static void forks_after_fork(void)
{
	if (__atomic_load_n(&forks.count, __ATOMIC_RELAXED) != forks_prepared)
		return;
	forks_begin_child();
	__atomic_store_n(forks.word, forks_own_value(), __ATOMIC_RELEASE);
}

static unsigned *forks_map(int kind)
{
	void *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
		kind | MAP_ANONYMOUS, -1, 0);

	return page == MAP_FAILED ? NULL : page;
}

static bool forks_is_promised(unsigned *page)
{
	return page && madvise(page, (size_t)sysconf(_SC_PAGESIZE), MADV_WIPEONFORK) == 0;
}

static void forks_unmap(unsigned *page)
{
	if (page)
		(void)munmap(page, (size_t)sysconf(_SC_PAGESIZE));
}

/* Returns a page that children get as zeros; NULL: the kernel has none. Linux refuses a page
 * that processes share. An emulator that promises it also for such a page passes over the
 * advice, as it may with other kinds (qemu-user 7.2). */
static unsigned *forks_make_page(void)
{
	unsigned *page = forks_map(MAP_PRIVATE), *shared = forks_map(MAP_SHARED);

	if (!shared || forks_is_promised(shared) || !forks_is_promised(page)) {
		forks_unmap(page);
		page = NULL;
	}
	forks_unmap(shared);
	return page;
}

static void forks_begin(void)
{
	unsigned *page = forks_make_page(), *word = page ? page : &forks.number;

	forks.has_page = page;
	*word = forks_own_value();
	__atomic_store_n(&forks.word, word, __ATOMIC_RELEASE);
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
	/* The last handler runs first: a child that was not noticed yet makes its locks again
	 * before BEFORE takes one. */
	(void)pthread_atfork(before, after, NULL);
	(void)pthread_atfork(forks_before_fork, NULL, NULL);
}

unsigned forks_count(void)
{
	unsigned *word = __atomic_load_n(&forks.word, __ATOMIC_ACQUIRE);

	if (word) {
		unsigned own = forks_own_value();

		if (__builtin_expect(__atomic_load_n(word, __ATOMIC_ACQUIRE) != own, 0))
			forks_notice(word, own);
	}
	return __atomic_load_n(&forks.count, __ATOMIC_ACQUIRE);
}
