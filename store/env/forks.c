/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/forks.h"

#include <pthread.h>

static unsigned count; /* atomic */

static void forks_in_child(void)
{
	(void)__atomic_add_fetch(&count, 1, __ATOMIC_RELEASE);
}

static void forks_begin(void)
{
	(void)pthread_atfork(NULL, NULL, forks_in_child);
}

void forks_watch(void (*before)(void), void (*after)(void), void (*in_child)(void))
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, forks_begin);
	(void)pthread_atfork(before, after, in_child);
}

unsigned forks_count(void)
{
	return __atomic_load_n(&count, __ATOMIC_ACQUIRE);
}
