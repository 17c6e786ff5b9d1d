/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/forks.h"

#include <pthread.h>

#include "tests/unit/unit.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned begun; /* children with a renewed lock */

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

/* Returns whether a child FORKS forks down has its own count and a free lock. */
static bool is_good_child(unsigned forks)
{
	bool is_free = pthread_mutex_trylock(&lock) == 0;

	(void)pthread_mutex_unlock(&lock);
	return is_free && forks_count() == forks && begun == forks;
}

static bool ended_well(pid_t child)
{
	int status;

	return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

Test(forks, children_are_counted_and_have_their_own_locks, .timeout = 60)
{
	forks_watch(before, after, in_child);
	cr_assert_eq(forks_count(), 0);
	pid_t child = fork();
	if (child == 0) {
		bool good = is_good_child(1);
		pid_t its = fork();

		if (its == 0)
			_exit(!is_good_child(2));
		_exit(!(good && ended_well(its) && is_good_child(1)));
	}
	cr_assert(ended_well(child));
	cr_assert(is_good_child(0), "the parent goes on");
}
