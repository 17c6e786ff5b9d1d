/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ring/ring.h"

#include <pthread.h>

#include "tests/unit/unit.h"

#define CAPACITY 4096
#define LAST     100000

static void *publish_many(void *arg)
{
	for (uint64_t seq = 1; seq <= LAST; seq++) {
		ring_put(arg, &(struct ring_entry){
				      .seq = seq, .feed = 7, .type = 1, .key = BYTES_LIT("a/b")});
		ring_publish(arg, seq);
	}
	return NULL;
}

/* kinf verify takes them for damage when they do not go together. */
Test(ring_status, claim_and_tail_are_of_one_instant)
{
	static const uint8_t uuid[16] = "a journal's uuid";
	size_t size = ring_bytes(CAPACITY);
	AUTO_FREE void *memory = aligned_alloc(128, size);
	struct ring_status status = {.last_seq = 0};
	CLEANUP(ring_detach) struct ring_reader *reader = NULL;
	CLEANUP(ring_close) struct ring *ring = NULL;
	pthread_t thread;

	cr_assert_not_null(memory);
	memset(memory, 0, size);
	cr_assert_eq(ring_init(memory, size, uuid, &ring), 0);
	cr_assert_eq(ring_attach_memory(memory, size, &reader), 0);
	cr_assert_eq(pthread_create(&thread, NULL, publish_many, ring), 0);
	while (status.last_seq < LAST) {
		ring_status(reader, &status);
		cr_assert_leq(status.tail, status.claim);
		cr_assert_leq(status.claim - status.tail, CAPACITY);
	}
	(void)pthread_join(thread, NULL);
}
