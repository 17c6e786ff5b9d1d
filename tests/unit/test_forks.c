/* SPDX-License-Identifier: Apache-2.0 */
/* Children of a process are noticed, however they were made, also where madvise(2) promises what
 * it does not do. */
#include "store/env/forks.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* How the kernel of this program takes MADV_WIPEONFORK. */
static enum { AS_IT_IS, PROMISED, UNKNOWN } advice;

/* In place of the C library's. PROMISED: as qemu-user 7.2. */
int madvise(void *start, size_t size, int kind)
{
	if (advice == PROMISED)
		return 0;
	if (advice == UNKNOWN) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_madvise, start, size, kind);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int begun; /* children that have made the lock again */

static void in_child(void)
{
	(void)pthread_mutex_init(&lock, NULL);
	begun++;
}

static void before(void)
{
	(void)pthread_mutex_lock(&lock);
}

static void after(void)
{
	(void)pthread_mutex_unlock(&lock);
}

static pid_t fork_with_handlers(void)
{
	return fork();
}

static pid_t fork_without_handlers(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

typedef pid_t fork_fn(void);

static void expect_good_end(pid_t child)
{
	int status;

	cr_assert_gt(child, 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%#x", (unsigned)status);
}

/* Runs in a child that FORKS forks lie above. Returns what is wrong, 0: nothing. */
static int check_child(unsigned forks)
{
	if (forks_count() != forks)
		return 1;
	if (begun != (int)forks || forks_count() != forks)
		return 2;
	return pthread_mutex_trylock(&lock) == 0 ? 0 : 3;
}

/* A child, and a child of that one. fork(3) makes them while the lock is held. */
static void expect_to_notice(fork_fn *first, fork_fn *second)
{
	pid_t child = first();

	if (child == 0) {
		int status = 0, wrong = check_child(1);
		if (wrong)
			_exit(wrong);
		(void)pthread_mutex_unlock(&lock);
		pid_t other = second();
		if (other == 0)
			_exit(check_child(2));
		_exit(waitpid(other, &status, 0) != other || status ? 10 : check_child(1));
	}
	expect_good_end(child);
	cr_assert_eq(forks_count(), 0);
	cr_assert_eq(begun, 0);
}

static void expect_to_notice_all(void)
{
	fork_fn *const ways[] = {fork_with_handlers, fork_without_handlers};

	forks_watch(before, after, in_child);
	cr_assert_eq(forks_count(), 0);
	for (int i = 0; i < 4; i++)
		expect_to_notice(ways[i % 2], ways[i / 2]);
}

Test(forks, children_are_noticed, .timeout = 60)
{
	expect_to_notice_all();
}

/* Nothing noticed a child of fork(3): it waited for ever for a lock of the parent's other
 * threads. */
Test(forks, children_are_noticed_if_pages_are_promised_and_not_wiped, .timeout = 60)
{
	advice = PROMISED;
	expect_to_notice_all();
}

Test(forks, children_are_noticed_without_such_pages, .timeout = 60)
{
	advice = UNKNOWN;
	expect_to_notice_all();
}

static bool holds, ends;

static void *hold_the_lock(void *arg)
{
	(void)arg;
	(void)pthread_mutex_lock(&lock);
	__atomic_store_n(&holds, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&ends, __ATOMIC_ACQUIRE))
		(void)sched_yield();
	(void)pthread_mutex_unlock(&lock);
	return NULL;
}

/* Another thread has the lock when the first child is made; that one is not noticed before it
 * calls fork(3), whose handler takes the lock. */
static void expect_to_notice_at_the_next_fork(void)
{
	pthread_t thread;

	forks_watch(before, after, in_child);
	cr_assert_eq(pthread_create(&thread, NULL, hold_the_lock, NULL), 0);
	while (!__atomic_load_n(&holds, __ATOMIC_ACQUIRE))
		(void)sched_yield();
	pid_t child = fork_without_handlers();
	if (child == 0) {
		int status = 0;
		pid_t other = fork();

		if (other == 0)
			_exit(check_child(2));
		_exit(waitpid(other, &status, 0) != other || status ? 10 : check_child(1));
	}
	expect_good_end(child);
	__atomic_store_n(&ends, true, __ATOMIC_RELEASE);
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

Test(forks, a_child_that_was_not_noticed_may_fork, .timeout = 60)
{
	expect_to_notice_at_the_next_fork();
}

Test(forks, a_child_that_was_not_noticed_may_fork_if_pages_are_promised, .timeout = 60)
{
	advice = PROMISED;
	expect_to_notice_at_the_next_fork();
}

/* A handler of another library, registered before ours, runs first in the child and uses this
 * one. */
static unsigned seen_by_other;

static void use_in_child(void)
{
	seen_by_other = forks_count();
}

static void expect_one_fork(void)
{
	cr_assert_eq(pthread_atfork(NULL, NULL, use_in_child), 0);
	forks_watch(before, after, in_child);
	pid_t child = fork();
	if (child == 0)
		_exit(seen_by_other == 1 ? check_child(1) : 20);
	expect_good_end(child);
}

Test(forks, a_child_is_counted_once_if_another_handler_asks_first, .timeout = 60)
{
	expect_one_fork();
}

Test(forks, a_child_is_counted_once_if_another_handler_asks_first_and_there_are_no_pages,
	.timeout = 60)
{
	advice = UNKNOWN;
	expect_one_fork();
}

struct crowd {
	pthread_barrier_t barrier;
	unsigned wrong;
};

static void *ask(void *arg)
{
	struct crowd *crowd = arg;

	(void)pthread_barrier_wait(&crowd->barrier); /* which of them is told is no matter */
	if (forks_count() != 1)
		(void)__atomic_add_fetch(&crowd->wrong, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* Returns what is wrong in a child whose threads all ask at once. */
static int ask_at_once(void)
{
	struct crowd crowd = {.wrong = 0};
	pthread_t threads[8];

	(void)pthread_barrier_init(&crowd.barrier, NULL, 8);
	for (size_t i = 0; i < 8; i++)
		if (pthread_create(&threads[i], NULL, ask, &crowd) != 0)
			return 30;
	for (size_t i = 0; i < 8; i++)
		(void)pthread_join(threads[i], NULL);
	return crowd.wrong ? 31 : begun == 1 ? 0 : 32;
}

static void expect_one_notice(void)
{
	forks_watch(before, after, in_child);
	for (int i = 0; i < 20; i++) {
		pid_t child = fork_without_handlers();

		if (child == 0)
			_exit(ask_at_once());
		expect_good_end(child);
	}
}

Test(forks, threads_of_a_child_that_ask_at_once_are_one_child, .timeout = 60)
{
	expect_one_notice();
}

Test(forks, threads_of_a_child_that_ask_at_once_are_one_child_also_without_pages, .timeout = 60)
{
	advice = UNKNOWN;
	expect_one_notice();
}
