/* SPDX-License-Identifier: Apache-2.0 */
/* Work queues: keys for later, limits of rates. Tests beginning with Test are client-go's of the
 * same name. */
#include <pthread.h>

#include "tests/unit/queue_rig.h"

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

/* The machine's clock, and a thread already waiting. */
struct waiter {
	struct kinf_queue *queue;
	pthread_t thread;
	int timeout_ms, result;
	char key[16];
};

static void *run_waiter(void *arg)
{
	struct waiter *waiter = arg;
	const char *key;
	size_t size;

	waiter->result = kinf_queue_get(waiter->queue, waiter->timeout_ms, &key, &size);
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
		waiters[i] = (struct waiter){.queue = queue, .timeout_ms = WITHIN_MS};
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

/* A queue wakes one thread at a time, and this one wakes the next. A forgotten thread waits for
 * ever. */
Test(queue, each_of_those_who_wait_gets_one_of_the_keys_that_come_together, .timeout = 120)
{
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(NULL, NULL);
	struct waiter waiters[8];

	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 8; i++) {
			waiters[i] = (struct waiter){.queue = queue, .timeout_ms = -1};
			cr_assert_eq(
				pthread_create(&waiters[i].thread, NULL, run_waiter, &waiters[i]),
				0);
		}
		for (int i = 0; i < 8;
			/* some of them for later, but in the first round and each fourth after
			 * it */
			i++) {
			const char key[] = {(char)('a' + i), '\0'};

			cr_assert_eq(add_after(queue, key, i % 3 == 0 ? round % 4 * MS : 0), 0);
		}
		for (int i = 0; i < 8; i++) {
			(void)pthread_join(waiters[i].thread, NULL);
			cr_assert_eq(waiters[i].result, KINF_FOUND);
			cr_assert_eq(done(queue, waiters[i].key), 0);
		}
		cr_assert_eq(kinf_queue_len(queue), 0);
	}
}

Test(queue, step_of_the_clock_wakes_who_waits)
{
	CLEANUP(kinf_clock_free) struct kinf_clock *clock = new_clock();
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = queue_on(clock, NULL);
	struct waiter waiter = {.queue = queue, .timeout_ms = WITHIN_MS};

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

/* A time between two looks at the clock. */
Test(queue, poll_loop_never_sleeps_through_what_is_due_just_now)
{
	CLEANUP(kinf_queue_free) struct kinf_queue *queue = NULL;

	cr_assert_eq(kinf_queue_new(NULL, &queue), 0);
	for (int i = 0; i < 20000; i++) {
		int64_t ms;

		cr_assert_eq(add_after(queue, "a", 500), 0); /* ns */
		while ((ms = kinf_queue_next_ms(queue)) != 0)
			cr_assert(ms == 1, "%lld ms", (long long)ms);
		get(queue, "a");
		cr_assert_eq(kinf_queue_done(queue, "a", 1), 0);
	}
}

/* ---- rate limits -------------------------------------------------------- */

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
