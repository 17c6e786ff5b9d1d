/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One work queue and many threads, for ThreadSanitizer. Producers add keys now, later and
 * rate-limited; workers take them and add them again. It runs once on the machine's clock, where
 * the program hangs if a wake-up is lost, and once while a test clock is stepped. The program
 * checks that no two workers have a key at once, the last addition of a key is not forgotten, and a
 * drain waits for the last worker. It prints "ok" and exits with 0, or exits with 1.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "reader/kinf.h"

#define PRODUCERS 4
#define WORKERS   4
#define KEYS      64
#define ROUNDS    20000

struct shared {
	struct kinf_queue *queue;
	struct kinf_clock *clock;
	unsigned number;
	unsigned at_work[KEYS]; /* workers with the key: 0 or 1 */
	unsigned asked[KEYS];   /* raised before each add; the worker must see it or more */
	unsigned seen[KEYS];    /* asked, as the last worker found it */
	unsigned wrong;
	bool stop;
};

static size_t key_of(unsigned i, char key[8])
{
	return (size_t)snprintf(key, 8, "%u", i);
}

static void *produce(void *arg)
{
	struct shared *shared = arg;
	unsigned seed = __atomic_fetch_add(&shared->number, 1, __ATOMIC_RELAXED) + 1;
	char key[8];

	for (int i = 0; i < ROUNDS; i++) {
		seed = seed * 1664525 + 1013904223;
		unsigned n = seed >> 16 & (KEYS - 1);
		size_t size = key_of(n, key);
		int r;

		(void)__atomic_add_fetch(&shared->asked[n], 1, __ATOMIC_SEQ_CST);
		if (seed >> 24 & 1)
			r = kinf_queue_add(shared->queue, key, size);
		else
			r = kinf_queue_add_after(shared->queue, key, size, seed >> 25 & 127);
		(void)__atomic_add_fetch(&shared->wrong, r != 0, __ATOMIC_SEQ_CST);
		if (i % 64 == 0)
			(void)kinf_queue_len(shared->queue);
	}
	return NULL;
}

static void *work(void *arg)
{
	struct shared *shared = arg;
	const char *key;
	size_t size;
	unsigned n;

	while (kinf_queue_get(shared->queue, -1, &key, &size) == KINF_FOUND) {
		if (sscanf(key, "%u", &n) != 1 || n >= KEYS)
			return NULL;
		if (__atomic_fetch_add(&shared->at_work[n], 1, __ATOMIC_SEQ_CST) != 0)
			(void)__atomic_add_fetch(&shared->wrong, 1, __ATOMIC_SEQ_CST);
		unsigned asked = __atomic_load_n(&shared->asked[n], __ATOMIC_SEQ_CST);
		__atomic_store_n(&shared->seen[n], asked, __ATOMIC_SEQ_CST);
		if (asked % 7 == 0 && kinf_queue_num_requeues(shared->queue, key, size) < 3)
			(void)kinf_queue_add_rate_limited(shared->queue, key, size);
		else
			kinf_queue_forget(shared->queue, key, size);
		(void)__atomic_fetch_sub(&shared->at_work[n], 1, __ATOMIC_SEQ_CST);
		(void)kinf_queue_done(shared->queue, key, size);
	}
	return NULL;
}

static void *step(void *arg)
{
	struct shared *shared = arg;

	while (shared->clock && !__atomic_load_n(&shared->stop, __ATOMIC_ACQUIRE))
		kinf_clock_step(shared->clock, 64);
	return NULL;
}

static bool run(struct shared *shared)
{
	pthread_t producers[PRODUCERS], workers[WORKERS], stepper;
	struct kinf_queue_counts metrics = {.size = sizeof(metrics)};
	bool ok = pthread_create(&stepper, NULL, step, shared) == 0;

	for (int i = 0; i < WORKERS; i++)
		ok &= pthread_create(&workers[i], NULL, work, shared) == 0;
	for (int i = 0; i < PRODUCERS; i++)
		ok &= pthread_create(&producers[i], NULL, produce, shared) == 0;
	if (!ok)
		return false;
	for (int i = 0; i < PRODUCERS; i++)
		(void)pthread_join(producers[i], NULL);
	while (kinf_queue_metrics(shared->queue, &metrics) == 0 &&
		metrics.depth + metrics.delayed + metrics.processing > 0)
		;
	kinf_queue_shut_down_with_drain(shared->queue);
	for (int i = 0; i < WORKERS; i++)
		(void)pthread_join(workers[i], NULL);
	__atomic_store_n(&shared->stop, true, __ATOMIC_RELEASE);
	(void)pthread_join(stepper, NULL);
	for (int i = 0; i < KEYS; i++)
		ok &= shared->seen[i] == shared->asked[i] && shared->at_work[i] == 0;
	return ok && shared->wrong == 0;
}

static bool run_on(struct kinf_clock *clock)
{
	struct shared shared = {.clock = clock};
	struct kinf_queue_options options = {.size = sizeof(options), .clock = clock};
	bool ok = kinf_limiter_item_exponential_failure(1, 100, &options.limiter) == 0 &&
		  kinf_queue_new(&options, &shared.queue) == 0 && run(&shared);

	kinf_queue_free(&shared.queue);
	return ok;
}

int main(void)
{
	struct kinf_clock *clock = NULL;
	bool ok = run_on(NULL) && kinf_clock_new(&clock) == 0 && run_on(clock);

	kinf_clock_free(&clock);
	(void)puts(ok ? "ok" : "wrong");
	return ok ? 0 : 1;
}
