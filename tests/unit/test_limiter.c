/* SPDX-License-Identifier: Apache-2.0 */
/* Rate limiters; as test_queue.c. */
#include <stdint.h>

#include "reader/kinf.h"
#include "tests/unit/unit.h"

#define MS INT64_C(1000000)

static int64_t when(struct kinf_limiter *limiter, const char *key)
{
	int64_t ns = -1;

	cr_assert_eq(kinf_limiter_when(limiter, key, strlen(key), &ns), 0);
	return ns;
}

static uint64_t requeues(struct kinf_limiter *limiter, const char *key)
{
	return kinf_limiter_num_requeues(limiter, key, strlen(key));
}

Test(limiter, TestItemExponentialFailureRateLimiter)
{
	CLEANUP(kinf_limiter_free) struct kinf_limiter *limiter = NULL;

	cr_assert_eq(kinf_limiter_item_exponential_failure(MS, 1000 * MS, &limiter), 0);
	for (int i = 0; i < 5; i++)
		cr_assert_eq(when(limiter, "one"), MS << i);
	cr_assert_eq(requeues(limiter, "one"), 5);
	cr_assert_eq(when(limiter, "two"), MS);
	cr_assert_eq(when(limiter, "two"), 2 * MS);
	cr_assert_eq(requeues(limiter, "two"), 2);
	kinf_limiter_forget(limiter, "one", 3);
	cr_assert_eq(requeues(limiter, "one"), 0);
	cr_assert_eq(when(limiter, "one"), MS);
	cr_assert_eq(requeues(limiter, "two"), 2);
}

Test(limiter, TestItemExponentialFailureRateLimiterOverFlow)
{
	CLEANUP(kinf_limiter_free) struct kinf_limiter *limiter = NULL;
	CLEANUP(kinf_limiter_free) struct kinf_limiter *wide = NULL;

	cr_assert_eq(kinf_limiter_item_exponential_failure(MS, 1000000 * MS, &limiter), 0);
	for (int i = 0; i < 5; i++)
		(void)when(limiter, "one");
	cr_assert_eq(when(limiter, "one"), 32 * MS);
	for (int i = 0; i < 5000; i++)
		(void)when(limiter, "two");
	cr_assert_eq(when(limiter, "two"), 1000000 * MS);
	cr_assert_eq(kinf_limiter_item_exponential_failure(60000 * MS, INT64_MAX, &wide), 0);
	int64_t last = 0;
	for (int i = 0; i < 2000; i++) {
		int64_t now = when(wide, "one");

		cr_assert_geq(now, last);
		last = now;
	}
	cr_assert_eq(last, INT64_MAX);
}

Test(limiter, TestItemFastSlowRateLimiter)
{
	CLEANUP(kinf_limiter_free) struct kinf_limiter *limiter = NULL;

	cr_assert_eq(kinf_limiter_item_fast_slow(5 * MS, 10000 * MS, 3, &limiter), 0);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(when(limiter, "one"), 5 * MS);
	cr_assert_eq(when(limiter, "one"), 10000 * MS);
	cr_assert_eq(when(limiter, "one"), 10000 * MS);
	cr_assert_eq(requeues(limiter, "one"), 5);
	cr_assert_eq(when(limiter, "two"), 5 * MS);
	kinf_limiter_forget(limiter, "one", 3);
	cr_assert_eq(requeues(limiter, "one"), 0);
	cr_assert_eq(when(limiter, "one"), 5 * MS);
}

Test(limiter, TestMaxOfRateLimiter)
{
	CLEANUP(kinf_limiter_free) struct kinf_limiter *limiter = NULL;
	struct kinf_limiter *both[2];

	cr_assert_eq(kinf_limiter_item_fast_slow(5 * MS, 3000 * MS, 3, &both[0]), 0);
	cr_assert_eq(kinf_limiter_item_exponential_failure(MS, 1000000 * MS, &both[1]), 0);
	cr_assert_eq(kinf_limiter_max_of(both, 2, &limiter), 0);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(when(limiter, "one"), 5 * MS);
	for (int i = 0; i < 9; i++)
		cr_assert_eq(when(limiter, "one"), 3000 * MS);
	cr_assert_eq(when(limiter, "one"), 4096 * MS, "now the doubled one is longer");
	cr_assert_eq(requeues(limiter, "one"), 13);
	cr_assert_eq(when(limiter, "two"), 5 * MS);
	kinf_limiter_forget(limiter, "one", 3);
	cr_assert_eq(requeues(limiter, "one"), 0);
	cr_assert_eq(when(limiter, "one"), 5 * MS);
}

Test(limiter, TestWithMaxWaitRateLimiter)
{
	CLEANUP(kinf_limiter_free) struct kinf_limiter *limiter = NULL;
	struct kinf_limiter *inner = NULL;

	cr_assert_eq(kinf_limiter_item_exponential_failure(MS, INT64_MAX, &inner), 0);
	cr_assert_eq(kinf_limiter_with_max_wait(inner, 1000 * MS, &limiter), 0);
	for (int i = 0; i < 10; i++)
		cr_assert_eq(when(limiter, "one"), MS << i);
	for (int i = 0; i < 100; i++)
		cr_assert_eq(when(limiter, "one"), 1000 * MS);
	cr_assert_eq(requeues(limiter, "one"), 110);
	kinf_limiter_forget(limiter, "one", 3);
	cr_assert_eq(when(limiter, "one"), MS);
}

Test(limiter, bucket_gives_its_burst_then_its_rate)
{
	CLEANUP(kinf_clock_free) struct kinf_clock *clock = NULL;
	CLEANUP(kinf_limiter_free) struct kinf_limiter *limiter = NULL;

	cr_assert_eq(kinf_clock_new(&clock), 0);
	cr_assert_eq(kinf_limiter_bucket(10, 3, clock, &limiter), 0);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(when(limiter, "a"), 0);
	for (int i = 1; i < 4; i++)
		cr_assert_eq(when(limiter, "b"), i * 100 * MS, "each takes a token yet to come");
	kinf_limiter_forget(limiter, "b", 1);
	cr_assert_eq(requeues(limiter, "b"), 0);
	kinf_clock_step(clock, (uint64_t)(400 * MS));
	cr_assert_eq(when(limiter, "c"), 0);
	cr_assert_eq(when(limiter, "c"), 100 * MS);
	kinf_clock_step(clock, (uint64_t)(3600 * 1000 * MS));
	for (int i = 0; i < 3; i++)
		cr_assert_eq(when(limiter, "d"), 0, "no more than the burst is saved");
	cr_assert_eq(when(limiter, "d"), 100 * MS);
}

Test(limiter, default_of_controllers_is_the_longer_of_both)
{
	CLEANUP(kinf_clock_free) struct kinf_clock *clock = NULL;
	CLEANUP(kinf_limiter_free) struct kinf_limiter *limiter = NULL;
	char key[2] = {0};

	cr_assert_eq(kinf_clock_new(&clock), 0);
	cr_assert_eq(kinf_limiter_default_controller(clock, &limiter), 0);
	for (int i = 0; i < 100; i++) {
		key[0] = (char)(i + 1);
		cr_assert_eq(when(limiter, key), 5 * MS, "each key's own");
	}
	cr_assert_eq(when(limiter, "one"), 100 * MS, "the bucket is empty");
	kinf_clock_step(clock, (uint64_t)(100000 * MS));
	for (int i = 1; i < 18; i++)
		(void)when(limiter, "one");
	cr_assert_eq(when(limiter, "one"), 1000000 * MS, "5 ms doubled 18 times is over 1000 s");
}

Test(limiter, none_asks_one_that_is_missing)
{
	CLEANUP(kinf_limiter_free) struct kinf_limiter *own = NULL;
	struct kinf_limiter *limiter = NULL;

	cr_assert_eq(kinf_limiter_default_item_based(&own), 0);
	struct kinf_limiter *two[] = {own, NULL};
	cr_assert_eq(kinf_limiter_max_of(two, 2, &limiter), -EINVAL);
	cr_assert_str_eq(kinf_error(NULL), "a limiter that asks others, one of which is NULL");
	cr_assert_eq(kinf_limiter_with_max_wait(NULL, MS, &limiter), -EINVAL);
	cr_assert_null(limiter);
	cr_assert_eq(when(own, "a"), MS, "it is the caller's as before");
}

Test(limiter, default_of_items_begins_with_a_millisecond)
{
	CLEANUP(kinf_limiter_free) struct kinf_limiter *limiter = NULL;

	cr_assert_eq(kinf_limiter_default_item_based(&limiter), 0);
	for (int i = 0; i < 20; i++)
		cr_assert_eq(when(limiter, "one"), MS << i);
	cr_assert_eq(when(limiter, "one"), 1000000 * MS);
}

static int always_a_second(void *arg, const void *key, size_t size, int64_t *ret_ns)
{
	(void)arg;
	(void)key;
	(void)size;
	*ret_ns = 1000 * MS;
	return 0;
}

Test(limiter, one_of_the_callers_stands_where_ours_can)
{
	const struct kinf_limiter_operations operations = {
		.size = sizeof(operations), .when = always_a_second};
	CLEANUP(kinf_limiter_free) struct kinf_limiter *limiter = NULL;
	struct kinf_limiter *own = NULL;

	cr_assert_eq(kinf_limiter_new(&operations, NULL, &own), 0);
	kinf_limiter_forget(own, "a", 1);
	cr_assert_eq(requeues(own, "a"), 0);
	cr_assert_eq(kinf_limiter_with_max_wait(own, MS, &limiter), 0);
	cr_assert_eq(when(limiter, "a"), MS);
}
