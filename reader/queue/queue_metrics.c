/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue's metrics, kept with the queue's own steps and added up when somebody asks: there is no
 * ticker that could go on after a shutdown, and ages are exact.
 */
#include "reader/queue/queue_parts.h"

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

void queue_observe(struct kinf_histogram *histogram, uint64_t ns)
{
	uint64_t bound = 10; /* 1e-8 s */

	histogram->count++;
	histogram->sum += seconds(ns);
	for (unsigned i = 0; i < KINF_HISTOGRAM_BUCKETS; i++, bound *= 10)
		if (ns <= bound) {
			histogram->buckets[i]++;
			return;
		}
}

void queue_counts_read(const struct queue_counts *counts, const struct queue_item *work,
	uint64_t now, struct kinf_queue_metrics *ret_metrics)
{
	*ret_metrics = (struct kinf_queue_metrics){
		.size = sizeof(*ret_metrics),
		.depth = counts->depth,
		.adds = counts->adds,
		.retries = counts->retries,
		.processing = counts->processing,
		.queue_duration = counts->queue_duration,
		.work_duration = counts->work_duration,
	};
	for (; work; work = work->work_next) {
		double age = seconds(now - work->began_at);

		ret_metrics->unfinished_work_seconds += age;
		if (age > ret_metrics->longest_running_processor_seconds)
			ret_metrics->longest_running_processor_seconds = age;
	}
}
