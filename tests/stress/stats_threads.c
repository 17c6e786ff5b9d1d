/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread writes a status page and others read it, for ThreadSanitizer (blind to races between
 * processes). The readers check that counters never go back, and a feed's row is read whole or not
 * at all. The program prints "ok" and exits with 0, or exits with 1.
 */
#include "common/err.h"
#include "common/stats.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define PAGE    "/tmp/kinf-stats-threads"
#define ROUNDS  50000
#define READERS 2

struct shared {
	struct stats *stats;
	bool done;
	unsigned wrong, found;
};

static void *read_page(void *arg)
{
	struct shared *shared = arg;
	struct stats_process process;
	struct stats_feed feed;
	uint64_t last = 0;
	unsigned wrong = 0, found = 0;

	while (!__atomic_load_n(&shared->done, __ATOMIC_ACQUIRE)) {
		uint64_t now = stats_get(shared->stats, STAT_EVENTS);
		wrong += now < last;
		last = now;
		wrong += stats_process(shared->stats, &process) < 0 || !process.alive;
		if (stats_feed_get(shared->stats, 7, &feed) != FOUND)
			continue;
		found++;
		wrong += feed.events != feed.bytes;
		for (size_t i = 1; i < STATS_TEXT - 1; i++)
			wrong += feed.error[i] != feed.error[0];
	}
	(void)__atomic_add_fetch(&shared->wrong, wrong, __ATOMIC_RELAXED);
	(void)__atomic_add_fetch(&shared->found, found, __ATOMIC_RELAXED);
	return NULL;
}

static void write_page(struct stats *stats)
{
	struct stats_feed feed = {.feed = 7};

	for (uint64_t i = 0; i < ROUNDS; i++) {
		feed.events = feed.bytes = i;
		memset(feed.error, 'a' + (int)(i % 26), STATS_TEXT - 1);
		(void)stats_feed_set(stats, &feed); /* its slot is there from the first time on */
		stats_add(stats, STAT_EVENTS, 1);
		stats_set_state(stats, i & 1 ? "odd" : "even");
		stats_heartbeat(stats);
		if (i % 1000 == 999)
			(void)stats_feed_remove(stats, 7);
	}
}

int main(void)
{
	struct shared shared = {0};
	pthread_t readers[READERS];

	int r = stats_create(AT_FDCWD, PAGE, &shared.stats);
	(void)unlink(PAGE); /* the map stays */
	for (int i = 0; r == 0 && i < READERS; i++)
		r = -pthread_create(&readers[i], NULL, read_page, &shared);
	if (r < 0) {
		(void)fprintf(stderr, "stats_threads: %s\n", err_text(r));
		return 1;
	}
	write_page(shared.stats);
	__atomic_store_n(&shared.done, true, __ATOMIC_RELEASE);
	for (int i = 0; i < READERS; i++)
		(void)pthread_join(readers[i], NULL);
	stats_close(&shared.stats);
	if (shared.wrong || !shared.found) {
		(void)fprintf(
			stderr, "stats_threads: %u wrong of %u\n", shared.wrong, shared.found);
		return 1;
	}
	(void)printf("ok\n");
	return 0;
}
