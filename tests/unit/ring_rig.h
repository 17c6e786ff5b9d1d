/* SPDX-License-Identifier: Apache-2.0 */
/* Ring entries, made and expected by their seq. */
#ifndef UNIT_RING_RIG_H
#define UNIT_RING_RIG_H

#include "store/ring/ring.h"
#include "tests/unit/unit.h"

#define CAPACITY 4096

static const uint8_t uuid[16] = "a journal's uuid";

static inline void put(struct ring *ring, uint64_t seq, const char *key)
{
	struct ring_entry entry = {.seq = seq, .feed = 7, .type = 1, .key = bytes_str(key)};

	ring_put(ring, &entry);
}

static inline void publish(struct ring *ring, uint64_t seq)
{
	char key[32];

	snprintf(key, sizeof(key), "ns/object-%llu", (unsigned long long)seq);
	put(ring, seq, key);
	ring_publish(ring, seq);
}

static inline void expect(struct ring_reader *r, uint64_t seq)
{
	struct ring_entry entry;
	char key[32];

	cr_assert_eq(ring_next(r, &entry), FOUND, "seq %llu", (unsigned long long)seq);
	snprintf(key, sizeof(key), "ns/object-%llu", (unsigned long long)seq);
	cr_assert_eq(entry.seq, seq);
	cr_assert_eq(entry.feed, 7);
	cr_assert_eq(entry.type, 1);
	cr_assert(bytes_equal(entry.key, bytes_str(key)));
}

#endif
