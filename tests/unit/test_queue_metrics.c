/* SPDX-License-Identifier: Apache-2.0 */
/* Work queues: what they count. Tests beginning with Test are client-go's of the same name. */
#include "tests/unit/queue_rig.h"

static void assert_near(double value, double wanted)
{
	cr_assert(value > wanted - 1e-12 && value < wanted + 1e-12, "%g, not %g", value, wanted);
}

Test(queue, TestMetrics)
{
	struct kinf_queue_counts m = metrics();

	cr_assert_eq(m.depth + m.adds + m.retries + m.queue_duration.count, 0);
	cr_assert_eq(add("foo"), 0);
	m = metrics();
	cr_assert_eq(m.depth, 1);
	cr_assert_eq(m.adds, 1);

	kinf_clock_step(stepped, 50000);
	get("foo");
	m = metrics();
	cr_assert_eq(m.depth, 0);
	cr_assert_eq(m.queue_duration.count, 1);
	assert_near(m.queue_duration.sum, 5e-5);
	cr_assert_eq(m.queue_duration.buckets[4], 1, "up to 1e-4 s");

	/* Added while it is worked on: counted in the depth, though not in line. */
	cr_assert_eq(add("foo"), 0);
	m = metrics();
	cr_assert_eq(m.depth, 1);
	cr_assert_eq(m.adds, 2);
	cr_assert_eq(kinf_queue_len(queue), 0);
	cr_assert_eq(add("foo"), 0);
	cr_assert_eq(metrics().adds, 2, "that one was there");

	kinf_clock_step(stepped, 25000);
	cr_assert_eq(done("foo"), 0);
	m = metrics();
	cr_assert_eq(m.work_duration.count, 1);
	assert_near(m.work_duration.sum, 2.5e-5);
	cr_assert_eq(m.depth, 1);

	/* Counts from the first add on, even before the work's end. */
	kinf_clock_step(stepped, 10000);
	get("foo");
	m = metrics();
	cr_assert_eq(m.queue_duration.count, 2);
	assert_near(m.queue_duration.sum, 5e-5 + 3.5e-5);

	/* The key in work ages by itself. */
	kinf_clock_step(stepped, 1000 * MS);
	cr_assert_eq(add("bar"), 0);
	get("bar");
	kinf_clock_step(stepped, 500 * MS);
	m = metrics();
	cr_assert_eq(m.processing, 2);
	assert_near(m.unfinished_work_seconds, 2.0);
	assert_near(m.longest_running_processor_seconds, 1.5);
	cr_assert_eq(done("foo"), 0);
	m = metrics();
	assert_near(m.unfinished_work_seconds, 0.5);
	assert_near(m.longest_running_processor_seconds, 0.5);
	assert_near(m.work_duration.sum, 2.5e-5 + 1.5);
}

/* There is no ticker: only calls change a queue after its shutdown. */
Test(queue, TestMetricShutdown)
{
	cr_assert_eq(add_after("later", 100 * MS), 0);
	kinf_queue_shut_down(queue);
	struct kinf_queue_counts before = metrics();
	kinf_clock_step(stepped, 1000 * MS);
	cr_assert_eq(add("ignored"), KINF_END);
	struct kinf_queue_counts after = metrics();
	cr_assert_eq(memcmp(&before, &after, sizeof(before)), 0);
}

Test(queue, retries_count_what_is_added_for_later)
{
	cr_assert_eq(add_after("a", 0), 0);
	cr_assert_eq(add_after("b", MS), 0);
	cr_assert_eq(kinf_queue_add_rate_limited(queue, "c", 1), 0);
	cr_assert_eq(add("d"), 0);
	cr_assert_eq(metrics().retries, 3);
}

Test(queue, what_takes_very_long_is_in_no_bucket)
{
	cr_assert_eq(add("a"), 0);
	get("a");
	kinf_clock_step(stepped, (uint64_t)(11000 * MS));
	cr_assert_eq(done("a"), 0);
	struct kinf_histogram h = metrics().work_duration;
	for (int i = 0; i < KINF_HISTOGRAM_BUCKETS; i++)
		cr_assert_eq(h.buckets[i], 0);
	cr_assert_eq(h.count, 1);
	cr_assert_eq(metrics().queue_duration.buckets[0], 1);
}
