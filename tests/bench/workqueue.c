/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the keys a second through a work queue: added, got and done. With one thread a thousand
 * keys wait at a time; with more threads half of them add and half of them work. tests/bench/peer
 * does the same with client-go's queue and prints the same figures. usage: workqueue KEYS THREADS
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "reader/kinf.h"
#include "tests/bench/measure.h"

#define WAITING 1000

struct load {
	struct kinf_queue *queue;
	uint64_t from, keys;
};

static void add(struct kinf_queue *queue, uint64_t number)
{
	char key[48];
	int n = snprintf(
		key, sizeof(key), "team-%05" PRIu64 "/shop-%07" PRIu64, number / 400, number);

	must_true(kinf_queue_add(queue, key, (size_t)n) == 0, "add");
}

/* Returns false at the end of the queue. */
static bool take(struct kinf_queue *queue)
{
	const char *key;
	size_t size;

	if (kinf_queue_get(queue, -1, &key, &size) != KINF_FOUND)
		return false;
	must_true(kinf_queue_done(queue, key, size) == 0, "done");
	return true;
}

static void run_alone(struct load *load)
{
	for (uint64_t done = 0; done < load->keys; done += WAITING) {
		for (uint64_t i = 0; i < WAITING; i++)
			add(load->queue, done + i);
		for (uint64_t i = 0; i < WAITING; i++)
			must_true(take(load->queue), "get");
	}
}

static void *add_all(void *arg)
{
	struct load *load = arg;

	for (uint64_t i = 0; i < load->keys; i++)
		add(load->queue, load->from + i);
	return NULL;
}

static void *work(void *arg)
{
	struct load *load = arg;

	while (take(load->queue))
		load->keys++;
	return NULL;
}

/* Returns the number of keys taken from the queue: equal to the number added, since no two are
 * equal. */
static uint64_t run_threads(struct kinf_queue *queue, uint64_t keys, uint64_t pairs)
{
	pthread_t adders[64], workers[64];
	struct load adding[64], working[64];
	uint64_t taken = 0;

	for (uint64_t i = 0; i < pairs; i++) {
		adding[i] = (struct load){queue, i * (keys / pairs), keys / pairs};
		working[i] = (struct load){queue, 0, 0};
		must_true(!pthread_create(&workers[i], NULL, work, &working[i]) &&
				  !pthread_create(&adders[i], NULL, add_all, &adding[i]),
			"thread");
	}
	for (uint64_t i = 0; i < pairs; i++)
		must_true(!pthread_join(adders[i], NULL), "thread");
	kinf_queue_shut_down(queue);
	for (uint64_t i = 0; i < pairs; i++) {
		must_true(!pthread_join(workers[i], NULL), "thread");
		taken += working[i].keys;
	}
	return taken;
}

int main(int argc, char **argv)
{
	struct kinf_queue *queue;
	struct measure measure;

	if (argc < 3) {
		(void)fputs("usage: workqueue KEYS THREADS\n", stderr);
		return 2;
	}
	uint64_t keys = must_number(argv[1], WAITING, "KEYS") / WAITING * WAITING;
	uint64_t pairs = must_number(argv[2], 1, "THREADS") / 2;

	must_true(pairs <= 64, "at most 128 threads");
	must_true(kinf_queue_new(NULL, &queue) == 0, "queue");
	measure_begin(&measure);
	if (pairs)
		must_true(
			run_threads(queue, keys, pairs) == keys / pairs * pairs, "keys were lost");
	else
		run_alone(&(struct load){queue, 0, keys});
	double wall = measure_wall(&measure);
	result_begin();
	result_number("keys_per_s", (double)keys / wall);
	result_number("cpu_us_per_key", measure_cpu(&measure) / (double)keys * 1e6);
	result_end();
	kinf_queue_free(&queue);
	return 0;
}
