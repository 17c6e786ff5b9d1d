/* SPDX-License-Identifier: Apache-2.0 */
/* Work queues: keys for later, limits of rates. Tests beginning with Test are client-go's of the
 * same name. */
#include <pthread.h>

#include "tests/unit/queue_rig.h"

Test(queue, TestSimpleQueue)
{
	cr_assert_eq(add_after("foo", 50 * MS), 0);
	cr_assert_eq(kinf_queue_len(queue), 0);
	kinf_clock_step(stepped, 60 * MS);
	cr_assert_eq(kinf_queue_len(queue), 1);
	get("foo");
	cr_assert_eq(done("foo"), 0);
	kinf_clock_step(stepped, 10 * 1000 * MS);
	cr_assert_eq(kinf_queue_len(queue), 0, "once");
	cr_assert_eq(try_get(BRIEFLY_MS), KINF_AGAIN);
}

Test(queue, TestDeduping)
{
	/* the later one counts for nothing */
	cr_assert_eq(add_after("foo", 50 * MS), 0);
	cr_assert_eq(add_after("foo", 70 * MS), 0);
	cr_assert_eq(kinf_queue_len(queue), 0);
	kinf_clock_step(stepped, 60 * MS);
	get("foo");
	cr_assert_eq(done("foo"), 0);
	kinf_clock_step(stepped, 20 * MS);
	cr_assert_eq(kinf_queue_len(queue), 0);

	/* the earlier one wins */
	cr_assert_eq(add_after("foo", 50 * MS), 0);
	cr_assert_eq(add_after("foo", 30 * MS), 0);
	kinf_clock_step(stepped, 40 * MS);
	get("foo");
	cr_assert_eq(done("foo"), 0);
	kinf_clock_step(stepped, 20 * MS);
	cr_assert_eq(kinf_queue_len(queue), 0);
}

Test(queue, TestAddTwoFireEarly)
{
	cr_assert_eq(add_after("foo", 1000 * MS), 0);
	cr_assert_eq(add_after("bar", 50 * MS), 0);
	cr_assert_eq(kinf_queue_len(queue), 0);
	kinf_clock_step(stepped, 60 * MS);
	get("bar");
	cr_assert_eq(try_get(0), KINF_AGAIN);
	cr_assert_eq(add_after("bar", 0), 0);
	cr_assert_eq(done("bar"), 0);
	get("bar");
	kinf_clock_step(stepped, 1000 * MS);
	get("foo");
}

Test(queue, TestCopyShifting)
{
	cr_assert_eq(add_after("foo", 1000 * MS), 0);
	cr_assert_eq(add_after("bar", 500 * MS), 0);
	cr_assert_eq(add_after("baz", 700 * MS), 0);
	cr_assert_eq(kinf_queue_len(queue), 0);
	kinf_clock_step(stepped, 2000 * MS);
	cr_assert_eq(kinf_queue_len(queue), 3);
	get("bar");
	get("baz");
	get("foo");
}

Test(queue, key_added_now_still_comes_again_at_its_time)
{
	cr_assert_eq(add_after("a", 10 * MS), 0);
	cr_assert_eq(add("a"), 0);
	get("a");
	cr_assert_eq(done("a"), 0);
	kinf_clock_step(stepped, 10 * MS);
	get("a");
}

Test(queue, shutdown_drops_what_was_for_later)
{
	cr_assert_eq(add_after("due", 10 * MS), 0);
	cr_assert_eq(add_after("later", 20 * MS), 0);
	kinf_clock_step(stepped, 10 * MS);
	kinf_queue_shut_down(queue);
	cr_assert_eq(metrics().delayed, 0);
	cr_assert_eq(add_after("after", 0), KINF_END);
	get("due");
	cr_assert_eq(try_get(-1), KINF_END);
}

/* The machine's clock, and a thread already waiting. */
struct waiter {
	pthread_t thread;
	int timeout_ms, result;
	char key[16];
};

static void *run_waiter(void *arg)
{
	struct waiter *waiter = arg;
	const char *key;
	size_t size;

	waiter->result = kinf_queue_get(queue, waiter->timeout_ms, &key, &size);
	if (waiter->result == KINF_FOUND)
		(void)snprintf(waiter->key, sizeof(waiter->key), "%s", key);
	return NULL;
}

Test(queue, those_who_wait_get_what_becomes_due)
{
	struct waiter waiters[3];
	bool seen[3] = {false};

	queue_open((struct kinf_queue_options){.clock = NULL});
	for (int i = 0; i < 3; i++) {
		waiters[i] = (struct waiter){.timeout_ms = WITHIN_MS};
		cr_assert_eq(pthread_create(&waiters[i].thread, NULL, run_waiter, &waiters[i]), 0);
	}
	cr_assert_eq(add_after("2", 60 * MS), 0);
	cr_assert_eq(add_after("1", 40 * MS), 0);
	cr_assert_eq(add_after("0", 20 * MS), 0);
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
	struct waiter waiters[8];

	queue_open((struct kinf_queue_options){.clock = NULL});
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 8; i++) {
			waiters[i] = (struct waiter){.timeout_ms = -1};
			cr_assert_eq(
				pthread_create(&waiters[i].thread, NULL, run_waiter, &waiters[i]),
				0);
		}
		for (int i = 0; i < 8;
			/* some of them for later, but in the first round and each fourth after
			 * it */
			i++) {
			const char key[] = {(char)('a' + i), '\0'};

			cr_assert_eq(add_after(key, i % 3 == 0 ? round % 4 * MS : 0), 0);
		}
		for (int i = 0; i < 8; i++) {
			(void)pthread_join(waiters[i].thread, NULL);
			cr_assert_eq(waiters[i].result, KINF_FOUND);
			cr_assert_eq(done(waiters[i].key), 0);
		}
		cr_assert_eq(kinf_queue_len(queue), 0);
	}
}

Test(queue, step_of_the_clock_wakes_who_waits)
{
	struct waiter waiter = {.timeout_ms = WITHIN_MS};

	cr_assert_eq(add_after("a", 3600 * 1000 * MS), 0);
	cr_assert_eq(pthread_create(&waiter.thread, NULL, run_waiter, &waiter), 0);
	pause_ms(BRIEFLY_MS);
	kinf_clock_step(stepped, (uint64_t)(3600 * 1000 * MS));
	(void)pthread_join(waiter.thread, NULL);
	cr_assert_eq(waiter.result, KINF_FOUND);
	cr_assert_eq(kinf_clock_now(stepped), (uint64_t)(3600 * 1000 * MS));
}

Test(queue, poll_loop_learns_how_long_to_sleep)
{
	cr_assert_eq(kinf_queue_next_ms(queue), -1);
	cr_assert_eq(add_after("a", 10 * MS), 0);
	cr_assert_eq(kinf_queue_next_ms(queue), 11);
	kinf_clock_step(stepped, 10 * MS);
	cr_assert_eq(kinf_queue_next_ms(queue), 0);
	get("a");
	cr_assert_eq(kinf_queue_next_ms(queue), -1);
	kinf_queue_shut_down(queue);
	cr_assert_eq(kinf_queue_next_ms(queue), 0);
}

/* A time between two looks at the clock. */
Test(queue, poll_loop_never_sleeps_through_what_is_due_just_now)
{
	queue_open((struct kinf_queue_options){.clock = NULL});
	for (int i = 0; i < 20000; i++) {
		int64_t ms;

		cr_assert_eq(add_after("a", 500), 0); /* ns */
		while ((ms = kinf_queue_next_ms(queue)) != 0)
			cr_assert(ms == 1, "%lld ms", (long long)ms);
		get("a");
		cr_assert_eq(kinf_queue_done(queue, "a", 1), 0);
	}
}

/* ---- rate limits -------------------------------------------------------- */

Test(queue, TestRateLimitingQueue)
{
	struct kinf_limiter *limiter = NULL;

	cr_assert_eq(kinf_limiter_item_exponential_failure(MS, 1000 * MS, &limiter), 0);
	queue_open((struct kinf_queue_options){.clock = stepped, .limiter = limiter});
	cr_assert_eq(kinf_queue_add_rate_limited(queue, "one", 3), 0);
	cr_assert_eq(kinf_queue_num_requeues(queue, "one", 3), 1);
	cr_assert_eq(kinf_queue_len(queue), 0);
	kinf_clock_step(stepped, MS);
	get("one");
	cr_assert_eq(kinf_queue_add_rate_limited(queue, "one", 3), 0);
	cr_assert_eq(kinf_queue_num_requeues(queue, "one", 3), 2);
	cr_assert_eq(done("one"), 0);
	kinf_clock_step(stepped, MS);
	cr_assert_eq(kinf_queue_len(queue), 0, "now it takes 2 ms");
	kinf_clock_step(stepped, MS);
	get("one");
	cr_assert_eq(kinf_queue_add_rate_limited(queue, "two", 3), 0);
	kinf_clock_step(stepped, MS);
	get("two");
	kinf_queue_forget(queue, "one", 3);
	cr_assert_eq(kinf_queue_num_requeues(queue, "one", 3), 0);
	cr_assert_eq(done("one"), 0, "forgotten, but not done");
	cr_assert_eq(kinf_queue_add_rate_limited(queue, "one", 3), 0);
	kinf_clock_step(stepped, MS);
	get("one");
}
