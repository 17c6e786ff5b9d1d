/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One writer and several readers of a tiny ring as threads of one process: ThreadSanitizer sees
 * both sides. The writer is far faster than the readers and is "restarted" now and then, so laps
 * and epochs happen all the time. Every key carries a checksum independent of the ring's code, to
 * find a torn entry passed off as whole.
 *
 * It prints "ok ..." and exits with 0, or prints the fault and exits with 1. usage: ring_threads
 * [SECONDS]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/err.h"
#include "store/ring/ring.h"

enum { CAPACITY = 4096, READERS = 3, RESTART_EVERY = 20000, RESTARTS_MAX = 4096 };

static const uint8_t uuid[16] = "stress";
static _Atomic bool stop;
static void *memory;
static struct ring *killed[RESTARTS_MAX]; /* freed at the end, when no thread reads any more */
static size_t n_killed;

struct count {
	uint64_t read, laps, corrupt, bad;
};

/* FNV-1a over the seq and the key. */
static uint32_t checksum(uint64_t seq, const uint8_t *data, size_t size)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < 8; i++)
		hash = (hash ^ (uint8_t)(seq >> 8 * i)) * 16777619u;
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ data[i]) * 16777619u;
	return hash;
}

static void put(struct ring *ring, uint64_t seq)
{
	uint8_t key[256];
	size_t size = seq * 31 % 200 + 8;

	for (size_t i = 4; i < size; i++)
		key[i] = (uint8_t)(seq * 7 + i);
	le32_put(key, checksum(seq, key + 4, size - 4));
	ring_put(ring,
		&(struct ring_entry){
			.seq = seq, .feed = (uint32_t)seq, .type = 2, .key = BYTES(key, size)});
}

static void *write_all(void *arg)
{
	struct ring *ring = arg;
	uint64_t seq = 0;

	while (!atomic_load(&stop)) {
		if (seq % 3 == 0)
			ring_announce(ring);
		for (uint64_t n = seq % 5; n > 0; n--)
			put(ring, ++seq);
		put(ring, ++seq);
		ring_publish(ring, seq);
		if (seq % 64 == 0)
			sched_yield(); /* let readers come near, else they only ever lap */
		if (seq % RESTART_EVERY < 5 && n_killed < RESTARTS_MAX) {
			/* The old writer was killed: it never closes. */
			struct ring *next = NULL;
			if (ring_init(memory, ring_bytes(CAPACITY), uuid, &next) < 0)
				abort();
			ring_publish(next, seq);
			killed[n_killed++] = ring;
			ring = next;
		}
	}
	ring_close(&ring);
	return NULL;
}

static void *read_all(void *arg)
{
	struct count *count = arg;
	struct ring_reader *reader = NULL;
	struct ring_entry entry;
	uint64_t last = 0;

	if (ring_attach_memory(memory, ring_bytes(CAPACITY), &reader) < 0)
		return NULL;
	while (!atomic_load(&stop)) {
		int r = ring_next(reader, &entry);
		if (r == AGAIN) {
			(void)ring_wait(reader, 10); /* any result: look again */
		} else if (r == LAPPED) {
			(void)ring_to_tail(reader);
			last = 0;
		} else if (r == FOUND) {
			const uint8_t *key = entry.key.data;
			count->read++;
			count->bad +=
				entry.key.size < 8 || entry.feed != (uint32_t)entry.seq ||
				le32_get(key) != checksum(entry.seq, key + 4, entry.key.size - 4) ||
				(last && entry.seq != last + 1);
			last = entry.seq;
		}
	}
	struct ring_status status;
	ring_status(reader, &status);
	count->laps = status.laps;
	count->corrupt = status.corrupt;
	ring_detach(&reader);
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 2;
	struct count counts[READERS] = {0}, sum = {0};
	pthread_t threads[READERS + 1];
	struct ring *ring = NULL;

	memory = aligned_alloc(128, ring_bytes(CAPACITY));
	if (!memory)
		return 1;
	memset(memory, 0, ring_bytes(CAPACITY));
	if (ring_init(memory, ring_bytes(CAPACITY), uuid, &ring) < 0)
		return 1;
	for (int i = 0; i < READERS; i++)
		if (pthread_create(&threads[i], NULL, read_all, &counts[i]))
			return 1;
	if (pthread_create(&threads[READERS], NULL, write_all, ring))
		return 1;
	struct timespec pause = {
		(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
	nanosleep(&pause, NULL);
	atomic_store(&stop, true);
	for (int i = 0; i <= READERS; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < n_killed; i++)
		ring_close(&killed[i]);
	free(memory);
	for (int i = 0; i < READERS; i++) {
		sum.read += counts[i].read;
		sum.laps += counts[i].laps;
		sum.corrupt += counts[i].corrupt;
		sum.bad += counts[i].bad;
	}
	bool ok = sum.read && sum.laps && !sum.bad && !sum.corrupt;
	printf("%s read=%llu laps=%llu restarts=%zu corrupt=%llu torn_or_lost=%llu\n",
		ok ? "ok" : "FAILED", (unsigned long long)sum.read, (unsigned long long)sum.laps,
		n_killed, (unsigned long long)sum.corrupt, (unsigned long long)sum.bad);
	return ok ? 0 : 1;
}
