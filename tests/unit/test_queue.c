/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work queues. Tests that begin with Test are client-go's of that name, by what they prove
 * (tests/INFORMER_ROWS.md); the others are ours. Where time matters a stepped clock gives it.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/proc.h"
#include "reader/kinf.h"

#define MS         INT64_C(1000000)
#define WITHIN_MS  30000 /* for what must happen */
#define BRIEFLY_MS 30    /* for what must not */

static struct kinf_queue *queue_on(struct kinf_clock *clock, struct kinf_limiter *limiter)
{
	const struct kinf_queue_options options = {
		.size = sizeof(options), .clock = clock, .limiter = limiter};
	struct kinf_queue *queue = NULL;

	cr_assert_eq(kinf_queue_new(&options, &queue), 0);
	return queue;
}

static struct kinf_clock *new_clock(void)
{
	struct kinf_clock *clock = NULL;

	cr_assert_eq(kinf_clock_new(&clock), 0);
	return clock;
}

static int add(struct kinf_queue *queue, const char *key)
{
	return kinf_queue_add(queue, key, strlen(key));
}

static int add_after(struct kinf_queue *queue, const char *key, int64_t delay_ns)
{
	return kinf_queue_add_after(queue, key, strlen(key), delay_ns);
}

static int done(struct kinf_queue *queue, const char *key)
{
	return kinf_queue_done(queue, key, strlen(key));
}

/* The next key is KEY. */
static void get(struct kinf_queue *queue, const char *key)
{
	const char *got = NULL;
	size_t size = 0;

	cr_assert_eq(kinf_queue_get(queue, WITHIN_MS, &got, &size), KINF_FOUND);
	cr_assert_str_eq(got, key);
	cr_assert_eq(size, strlen(key));
}

static int try_get(struct kinf_queue *queue, int timeout_ms)
{
	const char *key;
	size_t size;

	return kinf_queue_get(queue, timeout_ms, &key, &size);
}

static struct kinf_queue_metrics metrics(struct kinf_queue *queue)
{
	struct kinf_queue_metrics m = {.size = sizeof(m)};

	cr_assert_eq(kinf_queue_metrics(queue, &m), 0);
	return m;
}

/* ---- a shutdown in a thread of its own ---- */

struct drain {
	struct kinf_queue *queue;
	pthread_t thread;
	atomic_bool ended;
};

static void *run_drain(void *arg)
{
	struct drain *drain = arg;

	kinf_queue_shut_down_with_drain(drain->queue);
	atomic_store(&drain->ended, true);
	return NULL;
}

static void pause_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	(void)nanosleep(&t, NULL);
}

static void drain_begin(struct drain *drain, struct kinf_queue *queue)
{
	*drain = (struct drain){.queue = queue};
	cr_assert_eq(pthread_create(&drain->thread, NULL, run_drain, drain), 0);
	for (int i = 0; !kinf_queue_shutting_down(queue); i++) {
		cr_assert_lt(i, WITHIN_MS);
		pause_ms(1);
	}
}

static void drain_join(struct drain *drain)
{
	cr_assert_eq(pthread_join(drain->thread, NULL), 0);
	cr_assert(drain->ended);
}

/* ---- many threads ---- */

struct crowd {
	struct kinf_queue *queue;
	atomic_uint number;      /* of the next producer */
	atomic_uint handled[50]; /* of each producer's key */
	atomic_uint at_work[50], doubled, refused, after_shutdown;
};

static void *produce(void *arg)
{
	struct crowd *crowd = arg;
	unsigned number = atomic_fetch_add(&crowd->number, 1);
	char key[16];

	(void)snprintf(key, sizeof(key), "%u", number);
	for (int i = 0; i < 50; i++)
		atomic_fetch_add(&crowd->refused, add(crowd->queue, key) != 0);
	return NULL;
}

static void *consume(void *arg)
{
	struct crowd *crowd = arg;
	const char *key;
	size_t size;
	unsigned number;

	while (kinf_queue_get(crowd->queue, -1, &key, &size) == KINF_FOUND) {
		if (strcmp(key, "added after shutdown") == 0) {
			atomic_fetch_add(&crowd->after_shutdown, 1);
		} else if (sscanf(key, "%u", &number) == 1 && number < 50) {
			if (atomic_fetch_add(&crowd->at_work[number], 1) != 0)
				atomic_fetch_add(&crowd->doubled, 1);
			atomic_fetch_add(&crowd->handled[number], 1);
			atomic_fetch_sub(&crowd->at_work[number], 1);
		}
		(void)kinf_queue_done(crowd->queue, key, size);
	}
	return NULL;
}

static void basic(void (*shut_down)(struct kinf_queue *))
{
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(NULL, NULL);
	struct crowd crowd = {.queue = queue};
	pthread_t producers[50], consumers[10];

	for (int i = 0; i < 10; i++)
		cr_assert_eq(pthread_create(&consumers[i], NULL, consume, &crowd), 0);
	for (int i = 0; i < 50; i++)
		cr_assert_eq(pthread_create(&producers[i], NULL, produce, &crowd), 0);
	for (int i = 0; i < 50; i++)
		(void)pthread_join(producers[i], NULL);
	shut_down(queue);
	cr_assert_eq(add(queue, "added after shutdown"), KINF_END);
	for (int i = 0; i < 10; i++)
		(void)pthread_join(consumers[i], NULL);
	for (int i = 0; i < 50; i++)
		cr_assert_geq(crowd.handled[i], 1);
	cr_assert_eq(crowd.refused, 0);
	cr_assert_eq(crowd.after_shutdown, 0);
	cr_assert_eq(crowd.doubled, 0);
	cr_assert_eq(kinf_queue_len(queue), 0);
}

Test(queue, TestBasic)
{
	basic(kinf_queue_shut_down);
	basic(kinf_queue_shut_down_with_drain);
}

/* ---- one key ---- */

static void add_while_processing(void (*shut_down)(struct kinf_queue *))
{
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(NULL, NULL);

	cr_assert_eq(add(queue, "a"), 0);
	get(queue, "a");
	cr_assert_eq(add(queue, "a"), 0);
	cr_assert_eq(done(queue, "a"), 0);
	shut_down(queue); /* nobody works on it now: neither waits */
	get(queue, "a");
	cr_assert_eq(done(queue, "a"), 0);
	cr_assert_eq(try_get(queue, WITHIN_MS), KINF_END);
}

Test(queue, TestAddWhileProcessing)
{
	add_while_processing(kinf_queue_shut_down);
	add_while_processing(kinf_queue_shut_down_with_drain);
}

Test(queue, TestLen)
{
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(NULL, NULL);

	cr_assert_eq(add(queue, "foo"), 0);
	cr_assert_eq(kinf_queue_len(queue), 1);
	cr_assert_eq(add(queue, "bar"), 0);
	cr_assert_eq(kinf_queue_len(queue), 2);
	cr_assert_eq(add(queue, "foo"), 0);
	cr_assert_eq(kinf_queue_len(queue), 2);
}

Test(queue, TestReinsert)
{
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(NULL, NULL);

	cr_assert_eq(add(queue, "foo"), 0);
	get(queue, "foo");
	cr_assert_eq(add(queue, "foo"), 0);
	cr_assert_eq(kinf_queue_len(queue), 0, "it is being worked on");
	cr_assert_eq(done(queue, "foo"), 0);
	get(queue, "foo");
	cr_assert_eq(done(queue, "foo"), 0);
	cr_assert_eq(kinf_queue_len(queue), 0);
	cr_assert_eq(try_get(queue, 0), KINF_AGAIN);
}

/* ---- a queue with an order of its own ---- */

struct last_in_first {
	const char *keys[8];
	unsigned n, touched;
	bool full;
};

static void note_touch(void *arg, const char *key, size_t size)
{
	struct last_in_first *order = arg;

	cr_assert_eq(strlen(key), size);
	order->touched++;
}

static int push_last(void *arg, const char *key, size_t size)
{
	struct last_in_first *order = arg;

	(void)size;
	if (order->full)
		return -ENOMEM;
	order->keys[order->n++] = key;
	return 0;
}

static const char *pop_last(void *arg)
{
	struct last_in_first *order = arg;

	return order->keys[--order->n];
}

static struct kinf_queue *queue_in_order(struct last_in_first *arg, struct kinf_clock *clock)
{
	const struct kinf_queue_order order = {.size = sizeof(order),
		.touch = note_touch,
		.push = push_last,
		.pop = pop_last,
		.arg = arg};
	const struct kinf_queue_options options = {
		.size = sizeof(options), .order = &order, .clock = clock};
	struct kinf_queue *queue = NULL;

	cr_assert_eq(kinf_queue_new(&options, &queue), 0);
	return queue;
}

Test(queue, TestCollapse)
{
	struct last_in_first order = {.n = 0};
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_in_order(&order, NULL);

	cr_assert_eq(add(queue, "bar"), 0);
	cr_assert_eq(add(queue, "bar"), 0);
	cr_assert_eq(order.touched, 1);
	cr_assert_eq(kinf_queue_len(queue), 1);
	get(queue, "bar");
	cr_assert_eq(done(queue, "bar"), 0);
	cr_assert_eq(kinf_queue_len(queue), 0);
	cr_assert_eq(try_get(queue, 0), KINF_AGAIN);
}

Test(queue, TestCollapseWhileProcessing)
{
	struct last_in_first order = {.n = 0};
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_in_order(&order, NULL);

	cr_assert_eq(add(queue, "foo"), 0);
	get(queue, "foo");
	cr_assert_eq(add(queue, "foo"), 0);
	cr_assert_eq(add(queue, "foo"), 0);
	cr_assert_eq(order.touched, 0);
	cr_assert_eq(try_get(queue, BRIEFLY_MS), KINF_AGAIN, "only after done");
	cr_assert_eq(done(queue, "foo"), 0);
	get(queue, "foo");
	cr_assert_eq(done(queue, "foo"), 0);
	cr_assert_eq(try_get(queue, 0), KINF_AGAIN, "once more, not twice");
}

Test(queue, order_decides_who_comes_first)
{
	struct last_in_first order = {.n = 0};
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_in_order(&order, NULL);

	cr_assert_eq(add(queue, "a"), 0);
	cr_assert_eq(add(queue, "b"), 0);
	cr_assert_eq(add(queue, "c"), 0);
	get(queue, "c");
	get(queue, "b");
	get(queue, "a");
}

Test(queue, order_without_room_loses_no_key)
{
	struct last_in_first order = {.full = true};
	CLEANUP(kinf_clock_free) struct kinf_clock *clock = new_clock();
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_in_order(&order, clock);

	cr_assert_eq(add(queue, "a"), -ENOMEM);
	cr_assert_eq(add_after(queue, "b", MS), 0);
	kinf_clock_step(clock, MS);
	cr_assert_eq(try_get(queue, 0), -ENOMEM);
	order.full = false;
	get(queue, "b");
	cr_assert_eq(add(queue, "b"), 0);
	order.full = true;
	cr_assert_eq(done(queue, "b"), -ENOMEM);
	order.full = false;
	cr_assert_eq(done(queue, "b"), 0);
	get(queue, "b");
}

/* ---- the end ---- */

Test(queue, TestQueueDrainageUsingShutDownWithDrain)
{
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(NULL, NULL);
	struct drain drain;

	cr_assert_eq(add(queue, "foo"), 0);
	cr_assert_eq(add(queue, "bar"), 0);
	get(queue, "foo");
	get(queue, "bar");
	drain_begin(&drain, queue);
	cr_assert_eq(done(queue, "foo"), 0);
	pause_ms(BRIEFLY_MS);
	cr_assert_not(drain.ended, "bar is still worked on");
	cr_assert_eq(done(queue, "bar"), 0);
	drain_join(&drain);
}

Test(queue, TestNoQueueDrainageUsingShutDown)
{
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(NULL, NULL);

	cr_assert_eq(add(queue, "foo"), 0);
	get(queue, "foo");
	kinf_queue_shut_down(queue); /* returns at all */
	cr_assert_eq(try_get(queue, -1), KINF_END);
	cr_assert_eq(done(queue, "foo"), 0);
}

Test(queue, TestForceQueueShutdownUsingShutDown)
{
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(NULL, NULL);
	struct drain drain;

	cr_assert_eq(add(queue, "foo"), 0);
	get(queue, "foo");
	drain_begin(&drain, queue);
	pause_ms(BRIEFLY_MS);
	cr_assert_not(drain.ended);
	kinf_queue_shut_down(queue);
	drain_join(&drain);
}

Test(queue, TestQueueDrainageUsingShutDownWithDrainWithDirtyItem)
{
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(NULL, NULL);
	struct drain drain;

	cr_assert_eq(add(queue, "foo"), 0);
	get(queue, "foo");
	cr_assert_eq(add(queue, "foo"), 0);
	drain_begin(&drain, queue);
	cr_assert_eq(done(queue, "foo"), 0);
	get(queue, "foo");
	cr_assert_eq(done(queue, "foo"), 0);
	drain_join(&drain);
	cr_assert_eq(try_get(queue, -1), KINF_END);
}

/* The queue knows nothing of a key any more that it gave away. */
Test(queue, TestGarbageCollection)
{
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(NULL, NULL);
	char key[16];

	for (int i = 0; i < 1000; i++) { /* what stays is a leak, or found by the sanitizer */
		(void)snprintf(key, sizeof(key), "key-%d", i);
		cr_assert_eq(add(queue, key), 0);
		get(queue, key);
		cr_assert_eq(done(queue, key), 0);
		cr_assert_eq(done(queue, key), KINF_NOT_FOUND);
	}
	struct kinf_queue_metrics m = metrics(queue);
	cr_assert_eq(m.depth + m.processing + m.delayed, 0);
}

/* ---- later ---- */

Test(queue, TestSimpleQueue)
{
	CLEANUP(kinf_clock_free) struct kinf_clock *clock = new_clock();
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(clock, NULL);

	cr_assert_eq(add_after(queue, "foo", 50 * MS), 0);
	cr_assert_eq(kinf_queue_len(queue), 0);
	kinf_clock_step(clock, 60 * MS);
	cr_assert_eq(kinf_queue_len(queue), 1);
	get(queue, "foo");
	cr_assert_eq(done(queue, "foo"), 0);
	kinf_clock_step(clock, 10 * 1000 * MS);
	cr_assert_eq(kinf_queue_len(queue), 0, "once");
	cr_assert_eq(try_get(queue, BRIEFLY_MS), KINF_AGAIN);
}

Test(queue, TestDeduping)
{
	CLEANUP(kinf_clock_free) struct kinf_clock *clock = new_clock();
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(clock, NULL);

	/* the later one counts for nothing */
	cr_assert_eq(add_after(queue, "foo", 50 * MS), 0);
	cr_assert_eq(add_after(queue, "foo", 70 * MS), 0);
	cr_assert_eq(kinf_queue_len(queue), 0);
	kinf_clock_step(clock, 60 * MS);
	get(queue, "foo");
	cr_assert_eq(done(queue, "foo"), 0);
	kinf_clock_step(clock, 20 * MS);
	cr_assert_eq(kinf_queue_len(queue), 0);

	/* the earlier one wins */
	cr_assert_eq(add_after(queue, "foo", 50 * MS), 0);
	cr_assert_eq(add_after(queue, "foo", 30 * MS), 0);
	kinf_clock_step(clock, 40 * MS);
	get(queue, "foo");
	cr_assert_eq(done(queue, "foo"), 0);
	kinf_clock_step(clock, 20 * MS);
	cr_assert_eq(kinf_queue_len(queue), 0);
}

Test(queue, TestAddTwoFireEarly)
{
	CLEANUP(kinf_clock_free) struct kinf_clock *clock = new_clock();
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(clock, NULL);

	cr_assert_eq(add_after(queue, "foo", 1000 * MS), 0);
	cr_assert_eq(add_after(queue, "bar", 50 * MS), 0);
	cr_assert_eq(kinf_queue_len(queue), 0);
	kinf_clock_step(clock, 60 * MS);
	get(queue, "bar");
	cr_assert_eq(try_get(queue, 0), KINF_AGAIN);
	cr_assert_eq(add_after(queue, "bar", 0), 0);
	cr_assert_eq(done(queue, "bar"), 0);
	get(queue, "bar");
	kinf_clock_step(clock, 1000 * MS);
	get(queue, "foo");
}

Test(queue, TestCopyShifting)
{
	CLEANUP(kinf_clock_free) struct kinf_clock *clock = new_clock();
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(clock, NULL);

	cr_assert_eq(add_after(queue, "foo", 1000 * MS), 0);
	cr_assert_eq(add_after(queue, "bar", 500 * MS), 0);
	cr_assert_eq(add_after(queue, "baz", 700 * MS), 0);
	cr_assert_eq(kinf_queue_len(queue), 0);
	kinf_clock_step(clock, 2000 * MS);
	cr_assert_eq(kinf_queue_len(queue), 3);
	get(queue, "bar");
	get(queue, "baz");
	get(queue, "foo");
}

Test(queue, delayed_keys_come_by_time_whatever_the_order_they_were_added_in)
{
	CLEANUP(kinf_clock_free) struct kinf_clock *clock = new_clock();
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(clock, NULL);
	char key[16];

	for (int i = 0; i < 500; i++) {
		(void)snprintf(key, sizeof(key), "%d", i * 7919 % 500);
		cr_assert_eq(add_after(queue, key, (1000 + i * 7919 % 500) * MS), 0);
	}
	for (int i = 0; i < 500; i += 3) { /* moves to the front, from anywhere */
		(void)snprintf(key, sizeof(key), "%d", i);
		cr_assert_eq(add_after(queue, key, (1 + i) * MS), 0);
	}
	cr_assert_eq(metrics(queue).delayed, 500);
	kinf_clock_step(clock, 500 * MS);
	for (int i = 0; i < 500; i += 3) {
		(void)snprintf(key, sizeof(key), "%d", i);
		get(queue, key);
	}
	cr_assert_eq(kinf_queue_len(queue), 0);
	kinf_clock_step(clock, 2000 * MS);
	for (int i = 0; i < 500; i++) {
		(void)snprintf(key, sizeof(key), "%d", i);
		if (i % 3)
			get(queue, key);
	}
}

Test(queue, key_added_now_still_comes_again_at_its_time)
{
	CLEANUP(kinf_clock_free) struct kinf_clock *clock = new_clock();
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(clock, NULL);

	cr_assert_eq(add_after(queue, "a", 10 * MS), 0);
	cr_assert_eq(add(queue, "a"), 0);
	get(queue, "a");
	cr_assert_eq(done(queue, "a"), 0);
	kinf_clock_step(clock, 10 * MS);
	get(queue, "a");
}

Test(queue, shutdown_drops_what_was_for_later)
{
	CLEANUP(kinf_clock_free) struct kinf_clock *clock = new_clock();
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(clock, NULL);

	cr_assert_eq(add_after(queue, "due", 10 * MS), 0);
	cr_assert_eq(add_after(queue, "later", 20 * MS), 0);
	kinf_clock_step(clock, 10 * MS);
	kinf_queue_shut_down(queue);
	cr_assert_eq(metrics(queue).delayed, 0);
	cr_assert_eq(add_after(queue, "after", 0), KINF_END);
	get(queue, "due");
	cr_assert_eq(try_get(queue, -1), KINF_END);
}

/* The machine's clock, and somebody who already waits. */
struct waiter {
	struct kinf_queue *queue;
	pthread_t thread;
	int result;
	char key[16];
};

static void *run_waiter(void *arg)
{
	struct waiter *waiter = arg;
	const char *key;
	size_t size;

	waiter->result = kinf_queue_get(waiter->queue, WITHIN_MS, &key, &size);
	if (waiter->result == KINF_FOUND)
		(void)snprintf(waiter->key, sizeof(waiter->key), "%s", key);
	return NULL;
}

Test(queue, those_who_wait_get_what_becomes_due)
{
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(NULL, NULL);
	struct waiter waiters[3];
	bool seen[3] = {false};

	for (int i = 0; i < 3; i++) {
		waiters[i] = (struct waiter){.queue = queue};
		cr_assert_eq(pthread_create(&waiters[i].thread, NULL, run_waiter, &waiters[i]), 0);
	}
	cr_assert_eq(add_after(queue, "2", 60 * MS), 0);
	cr_assert_eq(add_after(queue, "1", 40 * MS), 0);
	cr_assert_eq(add_after(queue, "0", 20 * MS), 0);
	for (int i = 0; i < 3; i++) {
		(void)pthread_join(waiters[i].thread, NULL);
		cr_assert_eq(waiters[i].result, KINF_FOUND);
		seen[waiters[i].key[0] - '0'] = true;
	}
	cr_assert(seen[0] && seen[1] && seen[2]);
}

Test(queue, step_of_the_clock_wakes_who_waits)
{
	CLEANUP(kinf_clock_free) struct kinf_clock *clock = new_clock();
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(clock, NULL);
	struct waiter waiter = {.queue = queue};

	cr_assert_eq(add_after(queue, "a", 3600 * 1000 * MS), 0);
	cr_assert_eq(pthread_create(&waiter.thread, NULL, run_waiter, &waiter), 0);
	pause_ms(BRIEFLY_MS);
	kinf_clock_step(clock, (uint64_t)(3600 * 1000 * MS));
	(void)pthread_join(waiter.thread, NULL);
	cr_assert_eq(waiter.result, KINF_FOUND);
	cr_assert_eq(kinf_clock_now(clock), (uint64_t)(3600 * 1000 * MS));
}

Test(queue, poll_loop_learns_how_long_to_sleep)
{
	CLEANUP(kinf_clock_free) struct kinf_clock *clock = new_clock();
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(clock, NULL);

	cr_assert_eq(kinf_queue_next_ms(queue), -1);
	cr_assert_eq(add_after(queue, "a", 10 * MS), 0);
	cr_assert_eq(kinf_queue_next_ms(queue), 11);
	kinf_clock_step(clock, 10 * MS);
	cr_assert_eq(kinf_queue_next_ms(queue), 0);
	get(queue, "a");
	cr_assert_eq(kinf_queue_next_ms(queue), -1);
	kinf_queue_shut_down(queue);
	cr_assert_eq(kinf_queue_next_ms(queue), 0);
}

/* ---- rate limits ---- */

Test(queue, TestRateLimitingQueue)
{
	CLEANUP(kinf_clock_free) struct kinf_clock *clock = new_clock();
	struct kinf_limiter *limiter = NULL;

	cr_assert_eq(kinf_limiter_item_exponential_failure(MS, 1000 * MS, &limiter), 0);
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(clock, limiter);
	cr_assert_eq(kinf_queue_add_rate_limited(queue, "one", 3), 0);
	cr_assert_eq(kinf_queue_num_requeues(queue, "one", 3), 1);
	cr_assert_eq(kinf_queue_len(queue), 0);
	kinf_clock_step(clock, MS);
	get(queue, "one");
	cr_assert_eq(kinf_queue_add_rate_limited(queue, "one", 3), 0);
	cr_assert_eq(kinf_queue_num_requeues(queue, "one", 3), 2);
	cr_assert_eq(done(queue, "one"), 0);
	kinf_clock_step(clock, MS);
	cr_assert_eq(kinf_queue_len(queue), 0, "now it takes 2 ms");
	kinf_clock_step(clock, MS);
	get(queue, "one");
	cr_assert_eq(kinf_queue_add_rate_limited(queue, "two", 3), 0);
	kinf_clock_step(clock, MS);
	get(queue, "two");
	kinf_queue_forget(queue, "one", 3);
	cr_assert_eq(kinf_queue_num_requeues(queue, "one", 3), 0);
	cr_assert_eq(done(queue, "one"), 0, "forgotten, but not done");
	cr_assert_eq(kinf_queue_add_rate_limited(queue, "one", 3), 0);
	kinf_clock_step(clock, MS);
	get(queue, "one");
}

/* ---- metrics ---- */

static void assert_near(double value, double wanted)
{
	cr_assert(value > wanted - 1e-12 && value < wanted + 1e-12, "%g, not %g", value, wanted);
}

Test(queue, TestMetrics)
{
	CLEANUP(kinf_clock_free) struct kinf_clock *clock = new_clock();
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(clock, NULL);
	struct kinf_queue_metrics m = metrics(queue);

	cr_assert_eq(m.depth + m.adds + m.retries + m.queue_duration.count, 0);
	cr_assert_eq(add(queue, "foo"), 0);
	m = metrics(queue);
	cr_assert_eq(m.depth, 1);
	cr_assert_eq(m.adds, 1);

	kinf_clock_step(clock, 50000);
	get(queue, "foo");
	m = metrics(queue);
	cr_assert_eq(m.depth, 0);
	cr_assert_eq(m.queue_duration.count, 1);
	assert_near(m.queue_duration.sum, 5e-5);
	cr_assert_eq(m.queue_duration.buckets[4], 1, "up to 1e-4 s");

	/* Added while it is worked on: that is depth, though it does not stand in line. */
	cr_assert_eq(add(queue, "foo"), 0);
	m = metrics(queue);
	cr_assert_eq(m.depth, 1);
	cr_assert_eq(m.adds, 2);
	cr_assert_eq(kinf_queue_len(queue), 0);
	cr_assert_eq(add(queue, "foo"), 0);
	cr_assert_eq(metrics(queue).adds, 2, "that one was there");

	kinf_clock_step(clock, 25000);
	cr_assert_eq(done(queue, "foo"), 0);
	m = metrics(queue);
	cr_assert_eq(m.work_duration.count, 1);
	assert_near(m.work_duration.sum, 2.5e-5);
	cr_assert_eq(m.depth, 1);

	/* From the first add on, though that was before the work ended. */
	kinf_clock_step(clock, 10000);
	get(queue, "foo");
	m = metrics(queue);
	cr_assert_eq(m.queue_duration.count, 2);
	assert_near(m.queue_duration.sum, 5e-5 + 3.5e-5);

	/* What is worked on ages by itself. */
	kinf_clock_step(clock, 1000 * MS);
	cr_assert_eq(add(queue, "bar"), 0);
	get(queue, "bar");
	kinf_clock_step(clock, 500 * MS);
	m = metrics(queue);
	cr_assert_eq(m.processing, 2);
	assert_near(m.unfinished_work_seconds, 2.0);
	assert_near(m.longest_running_processor_seconds, 1.5);
	cr_assert_eq(done(queue, "foo"), 0);
	m = metrics(queue);
	assert_near(m.unfinished_work_seconds, 0.5);
	assert_near(m.longest_running_processor_seconds, 0.5);
	assert_near(m.work_duration.sum, 2.5e-5 + 1.5);
}

/* There is no ticker: a queue that is shut down only changes by what is done to it. */
Test(queue, TestMetricShutdown)
{
	CLEANUP(kinf_clock_free) struct kinf_clock *clock = new_clock();
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(clock, NULL);

	cr_assert_eq(add_after(queue, "later", 100 * MS), 0);
	kinf_queue_shut_down(queue);
	struct kinf_queue_metrics before = metrics(queue);
	kinf_clock_step(clock, 1000 * MS);
	cr_assert_eq(add(queue, "ignored"), KINF_END);
	struct kinf_queue_metrics after = metrics(queue);
	cr_assert_eq(memcmp(&before, &after, sizeof(before)), 0);
}

Test(queue, retries_count_what_is_added_for_later)
{
	CLEANUP(kinf_clock_free) struct kinf_clock *clock = new_clock();
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(clock, NULL);

	cr_assert_eq(add_after(queue, "a", 0), 0);
	cr_assert_eq(add_after(queue, "b", MS), 0);
	cr_assert_eq(kinf_queue_add_rate_limited(queue, "c", 1), 0);
	cr_assert_eq(add(queue, "d"), 0);
	cr_assert_eq(metrics(queue).retries, 3);
}

Test(queue, what_takes_very_long_is_in_no_bucket)
{
	CLEANUP(kinf_clock_free) struct kinf_clock *clock = new_clock();
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(clock, NULL);

	cr_assert_eq(add(queue, "a"), 0);
	get(queue, "a");
	kinf_clock_step(clock, (uint64_t)(11000 * MS));
	cr_assert_eq(done(queue, "a"), 0);
	struct kinf_histogram h = metrics(queue).work_duration;
	for (int i = 0; i < KINF_HISTOGRAM_BUCKETS; i++)
		cr_assert_eq(h.buckets[i], 0);
	cr_assert_eq(h.count, 1);
	cr_assert_eq(metrics(queue).queue_duration.buckets[0], 1);
}

/* ---- keys, options ---- */

Test(queue, keys_are_bytes)
{
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(NULL, NULL);
	const char *key;
	size_t size;

	cr_assert_eq(kinf_queue_add(queue, "a\0b", 3), 0);
	cr_assert_eq(kinf_queue_add(queue, "a\0c", 3), 0);
	cr_assert_eq(kinf_queue_add(queue, NULL, 0), 0);
	cr_assert_eq(kinf_queue_len(queue), 3);
	cr_assert_eq(kinf_queue_get(queue, 0, &key, &size), KINF_FOUND);
	cr_assert(size == 3 && memcmp(key, "a\0b", 4) == 0);
	cr_assert_eq(kinf_queue_get(queue, 0, &key, &size), KINF_FOUND);
	cr_assert_eq(kinf_queue_get(queue, 0, &key, &size), KINF_FOUND);
	cr_assert(size == 0 && *key == '\0');
	/* with the very bytes that were lent */
	cr_assert_eq(kinf_queue_done(queue, key, size), 0);
}

Test(queue, structures_of_another_version_are_refused)
{
	struct kinf_queue_options options = {.size = 1};
	struct kinf_queue_metrics m = {.size = 1};
	struct kinf_queue *queue = NULL;

	cr_assert_eq(kinf_queue_new(&options, &queue), KINF_UNSUPPORTED);
	struct kinf_queue_order order = {.size = 1};
	options = (struct kinf_queue_options){.size = sizeof(options), .order = &order};
	cr_assert_eq(kinf_queue_new(&options, &queue), KINF_UNSUPPORTED);
	order.size = sizeof(order);
	cr_assert_eq(kinf_queue_new(&options, &queue), -EINVAL, "an order that can't pop");
	cr_assert_null(queue);
	cr_assert_eq(kinf_queue_new(NULL, &queue), 0);
	cr_assert_eq(kinf_queue_metrics(queue, &m), KINF_UNSUPPORTED);
	kinf_queue_free(&queue);
	kinf_queue_free(&queue);
}
