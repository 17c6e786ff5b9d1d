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

static inline struct kinf_queue *queue_on(struct kinf_clock *clock, struct kinf_limiter *limiter)
{
	const struct kinf_queue_options options = {
		.size = sizeof(options), .clock = clock, .limiter = limiter};
	struct kinf_queue *queue = NULL;

	cr_assert_eq(kinf_queue_new(&options, &queue), 0);
	return queue;
}

static inline struct kinf_clock *new_clock(void)
{
	struct kinf_clock *clock = NULL;

	cr_assert_eq(kinf_clock_new(&clock), 0);
	return clock;
}

static inline int add(struct kinf_queue *queue, const char *key)
{
	return kinf_queue_add(queue, key, strlen(key));
}

static inline int add_after(struct kinf_queue *queue, const char *key, int64_t delay_ns)
{
	return kinf_queue_add_after(queue, key, strlen(key), delay_ns);
}

static inline int done(struct kinf_queue *queue, const char *key)
{
	return kinf_queue_done(queue, key, strlen(key));
}

/* The next key is KEY. */
static inline void get(struct kinf_queue *queue, const char *key)
{
	const char *got = NULL;
	size_t size = 0;

	cr_assert_eq(kinf_queue_get(queue, WITHIN_MS, &got, &size), KINF_FOUND);
	cr_assert_str_eq(got, key);
	cr_assert_eq(size, strlen(key));
}

static inline int try_get(struct kinf_queue *queue, int timeout_ms)
{
	const char *key;
	size_t size;

	return kinf_queue_get(queue, timeout_ms, &key, &size);
}

static inline struct kinf_queue_counts metrics(struct kinf_queue *queue)
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
