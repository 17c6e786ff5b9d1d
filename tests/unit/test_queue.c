/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work queues. Tests beginning with Test prove the same as client-go's of the same name
 * (tests/INFORMER_ROWS.md); the others are ours. Where time matters a stepped clock gives it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "reader/kinf.h"
#include "tests/unit/queue_rig.h"

/* ---- a shutdown in a thread of its own ---------------------------------- */

struct drain {
	pthread_t thread;
	atomic_bool ended;
};

static void *run_drain(void *arg)
{
	struct drain *drain = arg;

	kinf_queue_shut_down_with_drain(queue);
	atomic_store(&drain->ended, true);
	return NULL;
}

static void drain_begin(struct drain *drain)
{
	*drain = (struct drain){.ended = false};
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

/* ---- many threads ------------------------------------------------------- */

struct crowd {
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
		atomic_fetch_add(&crowd->refused, add(key) != 0);
	return NULL;
}

static void *consume(void *arg)
{
	struct crowd *crowd = arg;
	const char *key;
	size_t size;
	unsigned number;

	while (kinf_queue_get(queue, -1, &key, &size) == KINF_FOUND) {
		if (strcmp(key, "added after shutdown") == 0) {
			atomic_fetch_add(&crowd->after_shutdown, 1);
		} else if (sscanf(key, "%u", &number) == 1 && number < 50) {
			if (atomic_fetch_add(&crowd->at_work[number], 1) != 0)
				atomic_fetch_add(&crowd->doubled, 1);
			atomic_fetch_add(&crowd->handled[number], 1);
			atomic_fetch_sub(&crowd->at_work[number], 1);
		}
		(void)kinf_queue_done(queue, key, size);
	}
	return NULL;
}

static void basic(void (*shut_down)(struct kinf_queue *))
{
	struct crowd crowd = {.number = 0};
	pthread_t producers[50], consumers[10];

	queue_open((struct kinf_queue_options){.clock = NULL});
	for (int i = 0; i < 10; i++)
		cr_assert_eq(pthread_create(&consumers[i], NULL, consume, &crowd), 0);
	for (int i = 0; i < 50; i++)
		cr_assert_eq(pthread_create(&producers[i], NULL, produce, &crowd), 0);
	for (int i = 0; i < 50; i++)
		(void)pthread_join(producers[i], NULL);
	shut_down(queue);
	cr_assert_eq(add("added after shutdown"), KINF_END);
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

/* ---- one key ------------------------------------------------------------ */

static void add_while_processing(void (*shut_down)(struct kinf_queue *))
{
	queue_open((struct kinf_queue_options){.clock = NULL});
	cr_assert_eq(add("a"), 0);
	get("a");
	cr_assert_eq(add("a"), 0);
	cr_assert_eq(kinf_queue_len(queue), 0, "it is being worked on");
	cr_assert_eq(done("a"), 0);
	shut_down(queue); /* nobody works on it now: neither waits */
	get("a");
	cr_assert_eq(done("a"), 0);
	cr_assert_eq(try_get(WITHIN_MS), KINF_END);
}

Test(queue, TestAddWhileProcessing)
{
	add_while_processing(kinf_queue_shut_down);
	add_while_processing(kinf_queue_shut_down_with_drain);
}

Test(queue, TestLen)
{
	cr_assert_eq(add("foo"), 0);
	cr_assert_eq(kinf_queue_len(queue), 1);
	cr_assert_eq(add("bar"), 0);
	cr_assert_eq(kinf_queue_len(queue), 2);
	cr_assert_eq(add("foo"), 0);
	cr_assert_eq(kinf_queue_len(queue), 2);
}

/* ---- a queue with an order of its own ----------------------------------- */

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

static void queue_in_order(struct last_in_first *arg)
{
	const struct kinf_queue_order order = {.size = sizeof(order),
		.touch = note_touch,
		.push = push_last,
		.pop = pop_last,
		.arg = arg};

	queue_open((struct kinf_queue_options){.order = &order, .clock = stepped});
}

Test(queue, TestCollapse)
{
	struct last_in_first order = {.n = 0};
	queue_in_order(&order);

	cr_assert_eq(add("bar"), 0);
	cr_assert_eq(add("bar"), 0);
	cr_assert_eq(order.touched, 1);
	cr_assert_eq(kinf_queue_len(queue), 1);
	get("bar");
	cr_assert_eq(done("bar"), 0);
	cr_assert_eq(kinf_queue_len(queue), 0);
	cr_assert_eq(try_get(0), KINF_AGAIN);
}

Test(queue, TestCollapseWhileProcessing)
{
	struct last_in_first order = {.n = 0};
	queue_in_order(&order);

	cr_assert_eq(add("foo"), 0);
	get("foo");
	cr_assert_eq(add("foo"), 0);
	cr_assert_eq(add("foo"), 0);
	cr_assert_eq(order.touched, 0);
	cr_assert_eq(try_get(BRIEFLY_MS), KINF_AGAIN, "only after done");
	cr_assert_eq(done("foo"), 0);
	get("foo");
	cr_assert_eq(done("foo"), 0);
	cr_assert_eq(try_get(0), KINF_AGAIN, "once more, not twice");
}

Test(queue, order_decides_who_comes_first)
{
	struct last_in_first order = {.n = 0};
	queue_in_order(&order);

	cr_assert_eq(add("a"), 0);
	cr_assert_eq(add("b"), 0);
	cr_assert_eq(add("c"), 0);
	get("c");
	get("b");
	get("a");
}

Test(queue, order_without_room_loses_no_key)
{
	struct last_in_first order = {.full = true};
	queue_in_order(&order);

	cr_assert_eq(add("a"), -ENOMEM);
	cr_assert_eq(add_after("b", MS), 0);
	kinf_clock_step(stepped, MS);
	cr_assert_eq(try_get(0), -ENOMEM);
	order.full = false;
	get("b");
	cr_assert_eq(add("b"), 0);
	order.full = true;
	cr_assert_eq(done("b"), -ENOMEM);
	order.full = false;
	cr_assert_eq(done("b"), 0);
	get("b");
}

Test(queue, keys_in_line_come_before_the_error_of_a_delayed_one)
{
	struct last_in_first order = {.full = false};
	queue_in_order(&order);

	cr_assert_eq(add("a"), 0);
	cr_assert_eq(add_after("b", MS), 0);
	order.full = true;
	kinf_clock_step(stepped, MS);
	get("a");
	cr_assert_eq(try_get(0), -ENOMEM);
	cr_assert_str_eq(kinf_error(NULL),
		"push() of the queue's order refused a key: Cannot allocate memory");
	order.full = false;
	get("b");
}

/* ---- errors ------------------------------------------------------------- */

static int refuse(void *arg, const void *key, size_t size, int64_t *ret_ns)
{
	(void)arg;
	(void)key;
	(void)size;
	(void)ret_ns;
	return -EIO;
}

Test(queue, errors_have_a_sentence)
{
	struct kinf_limiter_operations operations = {.size = sizeof(operations)};
	const struct kinf_queue_order order = {.size = sizeof(order)};
	struct kinf_queue_options options = {.size = sizeof(options), .order = &order};
	struct kinf_queue *none = NULL;

	cr_assert_eq(kinf_limiter_new(&operations, NULL, &options.limiter), -EINVAL);
	cr_assert_str_eq(kinf_error(NULL), "a limiter without when()");
	cr_assert_eq(kinf_limiter_bucket(-1, 5, NULL, &options.limiter), -EINVAL);
	cr_assert_str_eq(kinf_error(NULL),
		"a bucket of 5 tokens filled with -1 a second: both have to be more than 0");
	cr_assert_eq(kinf_queue_new(&options, &none), -EINVAL);
	cr_assert_str_eq(kinf_error(NULL), "a kinf_queue_order without push or pop");
	operations.when = refuse;
	cr_assert_eq(kinf_limiter_new(&operations, NULL, &options.limiter), 0);
	queue_open((struct kinf_queue_options){.limiter = options.limiter});
	cr_assert_eq(kinf_queue_add_rate_limited(queue, "a", 1), -EIO);
	cr_assert_str_eq(kinf_error(NULL), "when() of the limiter: Input/output error");
}

/* ---- the end ------------------------------------------------------------ */

Test(queue, TestQueueDrainageUsingShutDownWithDrain)
{
	struct drain drain;

	cr_assert_eq(add("foo"), 0);
	cr_assert_eq(add("bar"), 0);
	get("foo");
	get("bar");
	drain_begin(&drain);
	cr_assert_eq(done("foo"), 0);
	pause_ms(BRIEFLY_MS);
	cr_assert_not(drain.ended, "bar is still worked on");
	cr_assert_eq(done("bar"), 0);
	drain_join(&drain);
}

Test(queue, TestNoQueueDrainageUsingShutDown)
{
	cr_assert_eq(add("foo"), 0);
	get("foo");
	kinf_queue_shut_down(queue); /* returns at all */
	cr_assert_eq(try_get(-1), KINF_END);
	cr_assert_eq(done("foo"), 0);
}

Test(queue, TestForceQueueShutdownUsingShutDown)
{
	struct drain drain;

	cr_assert_eq(add("foo"), 0);
	get("foo");
	drain_begin(&drain);
	pause_ms(BRIEFLY_MS);
	cr_assert_not(drain.ended);
	kinf_queue_shut_down(queue);
	drain_join(&drain);
}

Test(queue, TestQueueDrainageUsingShutDownWithDrainWithDirtyItem)
{
	struct drain drain;

	cr_assert_eq(add("foo"), 0);
	get("foo");
	cr_assert_eq(add("foo"), 0);
	drain_begin(&drain);
	cr_assert_eq(done("foo"), 0);
	get("foo");
	cr_assert_eq(done("foo"), 0);
	drain_join(&drain);
	cr_assert_eq(try_get(-1), KINF_END);
}

Test(queue, a_drain_ends_with_the_last_work_also_when_its_key_is_to_come_again)
{
	struct drain drain;

	cr_assert_eq(add("foo"), 0);
	get("foo");
	cr_assert_eq(add("foo"), 0);
	drain_begin(&drain);
	cr_assert_eq(done("foo"), 0);
	drain_join(&drain);
	get("foo");
	cr_assert_eq(done("foo"), 0);
	cr_assert_eq(try_get(-1), KINF_END);
}

/* The queue forgets a key it gave away. */
Test(queue, TestGarbageCollection)
{
	char key[16];

	for (int i = 0; i < 1000; i++) { /* the sanitizer reports the leaks */
		(void)snprintf(key, sizeof(key), "key-%d", i);
		cr_assert_eq(add(key), 0);
		get(key);
		cr_assert_eq(done(key), 0);
		cr_assert_eq(done(key), KINF_NOT_FOUND);
	}
	struct kinf_queue_counts m = metrics();
	cr_assert_eq(m.depth + m.processing + m.delayed, 0);
}

/* ---- keys, options ------------------------------------------------------ */

Test(queue, keys_are_bytes)
{
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
	/* with the lent bytes themselves */
	cr_assert_eq(kinf_queue_done(queue, key, size), 0);
}

Test(queue, structures_of_another_version_are_refused)
{
	struct kinf_queue_options options = {.size = 1};
	struct kinf_queue_counts m = {.size = 1};
	struct kinf_queue *none = NULL;

	cr_assert_eq(kinf_queue_new(&options, &none), KINF_UNSUPPORTED);
	struct kinf_queue_order order = {.size = 1};
	options = (struct kinf_queue_options){.size = sizeof(options), .order = &order};
	cr_assert_eq(kinf_queue_new(&options, &none), KINF_UNSUPPORTED);
	cr_assert_null(none);
	cr_assert_eq(kinf_queue_metrics(queue, &m), KINF_UNSUPPORTED);
}
