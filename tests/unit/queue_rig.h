/* SPDX-License-Identifier: Apache-2.0 */
/* Work queues under test: short words for their calls. All failures fail the test. */
#ifndef UNIT_QUEUE_RIG_H
#define UNIT_QUEUE_RIG_H

#include <time.h>

#include "reader/kinf.h"
#include "tests/unit/unit.h"

#define MS         INT64_C(1000000)
#define WITHIN_MS  30000 /* for an expected event */
#define BRIEFLY_MS 30    /* to see that nothing happens */

static struct kinf_clock *stepped;
static struct kinf_queue *queue;

/* Opens the queue anew. Without a clock in OPTIONS it goes by the machine's. */
static inline void queue_open(struct kinf_queue_options options)
{
	options.size = sizeof(options);
	kinf_queue_free(&queue);
	cr_assert_eq(kinf_queue_new(&options, &queue), 0);
}

/* A queue on a stepped clock, for each test; a suite's .init. */
static void queue_begin(void)
{
	cr_assert_eq(kinf_clock_new(&stepped), 0);
	queue_open((struct kinf_queue_options){.clock = stepped});
}

static void queue_end(void)
{
	kinf_queue_free(&queue);
	kinf_clock_free(&stepped);
}

TestSuite(queue, .init = queue_begin, .fini = queue_end);

static inline int add(const char *key)
{
	return kinf_queue_add(queue, key, strlen(key));
}

static inline int add_after(const char *key, int64_t delay_ns)
{
	return kinf_queue_add_after(queue, key, strlen(key), delay_ns);
}

static inline int done(const char *key)
{
	return kinf_queue_done(queue, key, strlen(key));
}

/* The next key is KEY. */
static inline void get(const char *key)
{
	const char *got = NULL;
	size_t size = 0;

	cr_assert_eq(kinf_queue_get(queue, WITHIN_MS, &got, &size), KINF_FOUND);
	cr_assert_str_eq(got, key);
	cr_assert_eq(size, strlen(key));
}

static inline int try_get(int timeout_ms)
{
	const char *key;
	size_t size;

	return kinf_queue_get(queue, timeout_ms, &key, &size);
}

static inline struct kinf_queue_counts metrics(void)
{
	struct kinf_queue_counts m = {.size = sizeof(m)};

	cr_assert_eq(kinf_queue_metrics(queue, &m), 0);
	return m;
}

static inline void pause_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	(void)nanosleep(&t, NULL);
}

#endif
