/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ring/ring.h"

#include "store/ring/ring_layout.h"
#include "tests/unit/ring_rig.h"

/* A ring on the heap, where AddressSanitizer sees its ends. */
static struct ring_header *memory;

static void make_memory(void)
{
	memory = aligned_alloc(128, ring_bytes(CAPACITY));
	memset((void *)memory, 0, ring_bytes(CAPACITY));
}

static void drop_memory(void)
{
	free(memory);
}

static struct ring *writer(void)
{
	struct ring *ring = NULL;

	cr_assert_eq(ring_init(memory, ring_bytes(CAPACITY), uuid, &ring), 0);
	return ring;
}

static struct ring_reader *reader(void)
{
	struct ring_reader *r = NULL;

	cr_assert_eq(ring_attach_memory(memory, ring_bytes(CAPACITY), &r), 0);
	return r;
}

TestSuite(ring, .init = make_memory, .fini = drop_memory);

Test(ring, entries_come_out_as_they_were_put)
{
	CLEANUP(ring_close) struct ring *ring = writer();
	CLEANUP(ring_detach) struct ring_reader *r = reader();
	struct ring_entry list = {.seq = 9, .feed = 3, .type = 5, .flags = 2};
	struct ring_entry entry;

	cr_assert_eq(ring_next(r, &entry), AGAIN);
	put(ring, 8, "a/b");
	ring_put(ring, &list);
	cr_assert_eq(ring_next(r, &entry), AGAIN, "nothing is visible before ring_publish");
	ring_publish(ring, 9);

	cr_assert_eq(ring_next(r, &entry), FOUND);
	cr_assert_eq(entry.seq, 8);
	cr_assert(bytes_equal(entry.key, BYTES_LIT("a/b")));
	cr_assert_eq(ring_next(r, &entry), FOUND);
	cr_assert_eq(entry.type, 5);
	cr_assert_eq(entry.seq, 9);
	cr_assert_eq(entry.feed, 3);
	cr_assert_eq(entry.flags, 2);
	cr_assert_eq(entry.key.size, 0);
	cr_assert_eq(ring_next(r, &entry), AGAIN);
	cr_assert_eq(memcmp(ring_uuid(r), uuid, 16), 0);
}

static size_t key_size(uint64_t seq)
{
	return seq * 37 % 470 + 4;
}

static const char *entry_text(const struct ring_entry *entry)
{
	static char text[512];

	snprintf(text, sizeof(text), "%.*s", BYTES_ARG(entry->key));
	return text;
}

Test(ring, wraps_many_times_without_losing_an_entry)
{
	CLEANUP(ring_close) struct ring *ring = writer();
	CLEANUP(ring_detach) struct ring_reader *r = reader();
	struct ring_entry entry;
	uint64_t last = 0;

	/* Sizes never divide the ring, so pads of all lengths occur. */
	for (uint64_t seq = 1; seq < 5000; seq++) {
		char key[480];
		snprintf(key, sizeof(key), "%0*llu", (int)key_size(seq), (unsigned long long)seq);
		put(ring, seq, key);
		if (seq % 3)
			ring_publish(ring, seq);
		for (int n; (n = ring_next(r, &entry)) != AGAIN;) {
			cr_assert_eq(n, FOUND);
			cr_assert_eq(entry.seq, ++last);
			cr_assert_eq(entry.key.size, key_size(entry.seq));
			cr_assert_eq(strtoull(entry_text(&entry), NULL, 10), entry.seq);
		}
		if (seq % 3)
			cr_assert_eq(last, seq);
	}
}

Test(ring, lapped_reader_is_told_and_goes_on_at_the_tail)
{
	CLEANUP(ring_close) struct ring *ring = writer();
	CLEANUP(ring_detach) struct ring_reader *r = reader();
	struct ring_entry entry;
	struct ring_status status;

	for (uint64_t seq = 1; seq <= 500; seq++)
		publish(ring, seq);
	cr_assert_eq(ring_next(r, &entry), LAPPED);
	cr_assert_eq(ring_to_tail(r), 500);
	cr_assert_eq(ring_next(r, &entry), AGAIN);
	publish(ring, 501);
	expect(r, 501);
	ring_status(r, &status);
	cr_assert_eq(status.laps, 1);
	cr_assert_eq(status.corrupt, 0);
}

Test(ring, reader_within_the_capacity_is_not_lapped)
{
	CLEANUP(ring_close) struct ring *ring = writer();
	CLEANUP(ring_detach) struct ring_reader *r = reader();

	for (uint64_t seq = 1; seq <= CAPACITY / 64; seq++)
		publish(ring, seq); /* 32 + 11..12 bytes of key: 64 each */
	for (uint64_t seq = 1; seq <= CAPACITY / 64; seq++)
		expect(r, seq);
}

Test(ring, batch_larger_than_the_ring_laps_readers)
{
	CLEANUP(ring_close) struct ring *ring = writer();
	CLEANUP(ring_detach) struct ring_reader *r = reader();
	struct ring_entry entry;

	for (uint64_t seq = 1; seq <= 1000; seq++)
		put(ring, seq, "some/key");
	ring_publish(ring, 1000);
	cr_assert_eq(ring_next(r, &entry), LAPPED);
	cr_assert_eq(ring_to_tail(r), 1000);
	publish(ring, 1001);
	expect(r, 1001);
}

Test(ring, large_key_goes_by_reference)
{
	CLEANUP(ring_close) struct ring *ring = writer();
	CLEANUP(ring_detach) struct ring_reader *r = reader();
	char key[CAPACITY / 8];
	struct ring_entry entry = {.seq = 5, .type = 2, .key = BYTES(key, sizeof(key))};

	memset(key, 'x', sizeof(key));
	ring_put(ring, &entry);
	ring_publish(ring, 5);
	cr_assert_eq(ring_next(r, &entry), FOUND);
	cr_assert_eq(entry.seq, 5);
	cr_assert_eq(entry.key.size, 0);
}

Test(ring, restarted_writer_laps_a_reader_that_had_read_everything)
{
	CLEANUP(ring_detach) struct ring_reader *r = NULL;
	CLEANUP(ring_close) struct ring *ring = writer();
	struct ring_entry entry;
	struct ring_status status;

	r = reader();
	publish(ring, 1);
	expect(r, 1);
	/* Killed between a journal commit and its publish: no close. */
	CLEANUP(ring_close) struct ring *next = writer();
	cr_assert_eq(ring_next(r, &entry), LAPPED);
	cr_assert_eq(ring_to_tail(r), 1, "what the old writer last told is still there");
	publish(next, 3);
	expect(r, 3);
	ring_status(r, &status);
	cr_assert_eq(status.epoch, 2);
	cr_assert_eq(status.corrupt, 0);
}

Test(ring, kill_between_claim_and_tail_leaves_nothing_half_written)
{
	CLEANUP(ring_detach) struct ring_reader *r = NULL;
	CLEANUP(ring_close) struct ring *ring = writer();
	struct ring_entry entry;
	struct ring_status status;

	r = reader();
	for (uint64_t seq = 1; seq <= 60; seq++)
		publish(ring, seq);
	/* As left by a writer that died in its memcpy: claimed, some bytes over, tail not moved. */
	uint64_t tail = atomic_load(&memory->tail);
	atomic_store(&memory->claim, tail + 640);
	memset((uint8_t *)memory + RING_HEADER_SIZE + tail % CAPACITY, 0xee, 100);

	int got = 0, n;
	while ((n = ring_next(r, &entry)) == FOUND)
		got++;
	cr_assert(n == LAPPED && got == 0, "the oldest entries may be overwritten");
	(void)ring_to_tail(r);
	cr_assert_eq(ring_next(r, &entry), AGAIN, "what is claimed is not visible");

	CLEANUP(ring_close) struct ring *next = writer();
	cr_assert_eq(ring_next(r, &entry), LAPPED);
	(void)ring_to_tail(r);
	for (uint64_t seq = 61; seq <= 100; seq++) {
		publish(next, seq);
		expect(r, seq);
	}
	ring_status(r, &status);
	cr_assert_eq(status.corrupt, 0);
}

Test(ring, kill_inside_a_start_is_mended_by_the_next)
{
	CLEANUP(ring_detach) struct ring_reader *r = NULL;
	CLEANUP(ring_close) struct ring *ring = writer();
	struct ring_entry entry;

	r = reader();
	publish(ring, 1);
	atomic_fetch_add(&memory->epoch, 1); /* and died here */
	cr_assert_eq(ring_next(r, &entry), LAPPED);
	(void)ring_to_tail(r);
	CLEANUP(ring_close) struct ring *next = writer();
	cr_assert_eq(ring_next(r, &entry), LAPPED);
	(void)ring_to_tail(r);
	publish(next, 2);
	expect(r, 2);
}

Test(ring, every_flipped_bit_of_a_record_is_refused)
{
	CLEANUP(ring_close) struct ring *ring = writer();
	size_t record = sizeof(struct ring_record) + strlen("ns/object-1");
	uint8_t *bytes = (uint8_t *)memory + RING_HEADER_SIZE;
	CLEANUP(ring_detach) struct ring_reader *first = reader();

	publish(ring, 1);
	for (size_t bit = 0; bit < record * 8; bit++) {
		CLEANUP(ring_detach) struct ring_reader *r = NULL;
		struct ring_entry entry;
		struct ring_status status;
		uint64_t tail = atomic_load(&memory->tail);

		atomic_store(&memory->tail, 0);
		r = reader();
		atomic_store(&memory->tail, tail);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		cr_assert_eq(ring_next(r, &entry), LAPPED, "bit %zu", bit);
		ring_status(r, &status);
		cr_assert_eq(status.corrupt, 1);
		cr_assert_eq(status.laps, 0);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	expect(first, 1);
}

Test(ring, damaged_header_is_refused_and_made_anew)
{
	struct ring *ring = writer();
	CLEANUP(ring_detach) struct ring_reader *r = NULL;

	ring_close(&ring);
	for (size_t at = 0; at < offsetof(struct ring_header, pad0); at++) {
		((uint8_t *)memory)[at] ^= 0x10;
		cr_assert_lt(
			ring_attach_memory(memory, ring_bytes(CAPACITY), &r), 0, "byte %zu", at);
		((uint8_t *)memory)[at] ^= 0x10;
	}
	memory->capacity *= 2;
	CLEANUP(ring_close) struct ring *next = writer();
	r = reader();
	publish(next, 1);
	expect(r, 1);
}

Test(ring, ring_of_another_boot_is_not_attached)
{
	CLEANUP(ring_close) struct ring *ring = writer();
	struct ring_reader *r = NULL;

	setenv("KINF_BOOT_ID", "00000000000000000000000000000001", 1);
	cr_assert_eq(ring_attach_memory(memory, ring_bytes(CAPACITY), &r), -ENOENT);
	unsetenv("KINF_BOOT_ID");
}

Test(ring, closed_ring_is_read_to_its_end_and_then_gone)
{
	struct ring *ring = writer();
	CLEANUP(ring_detach) struct ring_reader *r = reader();
	struct ring_reader *late = NULL;
	struct ring_entry entry;

	publish(ring, 1);
	ring_close(&ring);
	expect(r, 1);
	cr_assert_eq(ring_next(r, &entry), GONE);
	cr_assert_eq(ring_attach_memory(memory, ring_bytes(CAPACITY), &late), -ENOENT);
}
