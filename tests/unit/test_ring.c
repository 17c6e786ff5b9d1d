/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ring/ring.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "store/ring/ring_layout.h"

#define CAPACITY 4096

static const uint8_t uuid[16] = "a journal's uuid";

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

static void put(struct ring *ring, uint64_t seq, const char *key)
{
	struct ring_entry entry = {.seq = seq, .feed = 7, .type = 1, .key = bytes_str(key)};

	ring_put(ring, &entry);
}

static void publish(struct ring *ring, uint64_t seq)
{
	char key[32];

	snprintf(key, sizeof(key), "ns/object-%llu", (unsigned long long)seq);
	put(ring, seq, key);
	ring_publish(ring, seq);
}

static void expect(struct ring_reader *r, uint64_t seq)
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
	uint64_t last = 0;
	CLEANUP(ring_close) struct ring *ring = writer();
	CLEANUP(ring_detach) struct ring_reader *r = reader();
	struct ring_entry entry;

	/* Sizes that never divide the ring, so that pads of all lengths occur. */
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
	uint64_t last;

	for (uint64_t seq = 1; seq <= 500; seq++)
		publish(ring, seq);
	cr_assert_eq(ring_next(r, &entry), LAPPED);
	cr_assert_eq(ring_to_tail(r, &last), 0);
	cr_assert_eq(last, 500);
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
	uint64_t last;

	for (uint64_t seq = 1; seq <= 1000; seq++)
		put(ring, seq, "some/key");
	ring_publish(ring, 1000);
	cr_assert_eq(ring_next(r, &entry), LAPPED);
	cr_assert_eq(ring_to_tail(r, &last), 0);
	cr_assert_eq(last, 1000);
	publish(ring, 1001);
	expect(r, 1001);
}

Test(ring, discarded_batch_is_never_seen)
{
	CLEANUP(ring_close) struct ring *ring = writer();
	CLEANUP(ring_detach) struct ring_reader *r = reader();
	struct ring_entry entry;

	put(ring, 1, "never");
	ring_discard(ring);
	publish(ring, 2);
	expect(r, 2);
	cr_assert_eq(ring_next(r, &entry), AGAIN);
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
	struct ring *ring = writer();
	struct ring_entry entry;
	struct ring_status status;
	uint64_t last;

	r = reader();
	publish(ring, 1);
	expect(r, 1);
	/* Killed between a journal commit and its publish: no close. */
	CLEANUP(ring_close) struct ring *next = writer();
	cr_assert_eq(ring_next(r, &entry), LAPPED);
	cr_assert_eq(ring_to_tail(r, &last), 0);
	cr_assert_eq(last, 1, "what the old writer last told is still there");
	publish(next, 3);
	expect(r, 3);
	ring_status(r, &status);
	cr_assert_eq(status.epoch, 2);
	cr_assert_eq(status.corrupt, 0);
	ring_close(&ring);
}

Test(ring, kill_between_claim_and_tail_leaves_nothing_half_written)
{
	CLEANUP(ring_detach) struct ring_reader *r = NULL;
	struct ring *ring = writer();
	struct ring_entry entry;
	struct ring_status status;
	uint64_t last;

	r = reader();
	for (uint64_t seq = 1; seq <= 60; seq++)
		publish(ring, seq);
	/* As a writer leaves it that dies in its memcpy: claimed, some bytes over, tail not moved. */
	uint64_t tail = atomic_load(&memory->tail);
	atomic_store(&memory->claim, tail + 640);
	memset((uint8_t *)memory + RING_HEADER_SIZE + tail % CAPACITY, 0xee, 100);

	int got = 0, n;
	while ((n = ring_next(r, &entry)) == FOUND)
		got++;
	cr_assert(n == LAPPED && got == 0, "the oldest entries may be overwritten");
	cr_assert_eq(ring_to_tail(r, &last), 0);
	cr_assert_eq(ring_next(r, &entry), AGAIN, "what is claimed is not visible");

	CLEANUP(ring_close) struct ring *next = writer();
	cr_assert_eq(ring_next(r, &entry), LAPPED);
	cr_assert_eq(ring_to_tail(r, &last), 0);
	for (uint64_t seq = 61; seq <= 100; seq++) {
		publish(next, seq);
		expect(r, seq);
	}
	ring_status(r, &status);
	cr_assert_eq(status.corrupt, 0);
	ring_close(&ring);
}

Test(ring, kill_inside_a_start_is_mended_by_the_next)
{
	CLEANUP(ring_detach) struct ring_reader *r = NULL;
	struct ring *ring = writer();
	struct ring_entry entry;
	uint64_t last;

	r = reader();
	publish(ring, 1);
	atomic_fetch_add(&memory->epoch, 1); /* and died here */
	cr_assert_eq(ring_next(r, &entry), LAPPED);
	cr_assert_eq(ring_to_tail(r, &last), 0);
	CLEANUP(ring_close) struct ring *next = writer();
	cr_assert_eq(ring_next(r, &entry), LAPPED);
	cr_assert_eq(ring_to_tail(r, &last), 0);
	publish(next, 2);
	expect(r, 2);
	ring_close(&ring);
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
	struct ring_reader *r = NULL;

	ring_close(&ring);
	for (size_t at = 0; at < offsetof(struct ring_header, pad0); at++) {
		((uint8_t *)memory)[at] ^= 0x10;
		cr_assert_lt(ring_attach_memory(memory, ring_bytes(CAPACITY), &r), 0, "byte %zu", at);
		((uint8_t *)memory)[at] ^= 0x10;
	}
	memory->capacity *= 2;
	CLEANUP(ring_close) struct ring *next = writer();
	r = reader();
	publish(next, 1);
	expect(r, 1);
	ring_detach(&r);
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

/* ---- files ---- */

static int make_directory(char *path)
{
	memcpy(path, "/tmp/test-ring-XXXXXX", sizeof("/tmp/test-ring-XXXXXX"));
	cr_assert(mkdtemp(path));
	int fd = open(path, O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	return fd;
}

static void drop_directory(int fd, const char *path)
{
	(void)unlinkat(fd, "x.ring", 0);
	close(fd);
	cr_assert_eq(rmdir(path), 0, "a temporary file was left");
}

static struct ring *create(int fd, const uint8_t *of)
{
	struct ring *ring = NULL;

	cr_assert_eq(ring_create(fd, "x.ring", CAPACITY, of, 0640, &ring), 0);
	return ring;
}

static struct ring_reader *attach(int fd)
{
	struct ring_reader *r = NULL;

	cr_assert_eq(ring_attach(fd, "x.ring", &r), 0);
	return r;
}

Test(ring_file, is_allocated_in_full_with_the_mode_that_was_asked)
{
	char path[32];
	int fd = make_directory(path);
	struct ring *ring = create(fd, uuid);
	struct stat st;

	cr_assert_eq(fstatat(fd, "x.ring", &st, 0), 0);
	cr_assert_eq(st.st_mode & 07777, 0640);
	cr_assert_eq((size_t)st.st_size, ring_bytes(CAPACITY));
	cr_assert_geq((size_t)st.st_blocks * 512, ring_bytes(CAPACITY));
	ring_close(&ring);
	drop_directory(fd, path);
}

Test(ring_file, restart_keeps_the_file_and_another_journal_replaces_it)
{
	char path[32];
	int fd = make_directory(path);
	struct ring *ring = create(fd, uuid);
	struct ring_reader *r = attach(fd);
	struct ring_entry entry;
	uint64_t last;

	publish(ring, 1);
	expect(r, 1);
	struct ring *second = create(fd, uuid);
	cr_assert_eq(ring_next(r, &entry), LAPPED);
	cr_assert_eq(ring_to_tail(r, &last), 0);
	publish(second, 2);
	expect(r, 2);

	static const uint8_t other[16] = "another journal";
	struct ring *third = create(fd, other);
	cr_assert_eq(ring_next(r, &entry), GONE);
	ring_detach(&r);
	r = attach(fd);
	cr_assert_eq(memcmp(ring_uuid(r), other, 16), 0);
	publish(third, 1);
	expect(r, 1);
	ring_detach(&r);
	ring_close(&ring);
	ring_close(&second);
	ring_close(&third);
	drop_directory(fd, path);
}

static void *publish_soon(void *ring)
{
	(void)poll(NULL, 0, 50);
	publish(ring, 1);
	return NULL;
}

Test(ring_file, negative_timeout_sleeps_until_something_is_published, .timeout = 20)
{
	char path[32];
	int fd = make_directory(path);
	struct ring *ring = create(fd, uuid);
	struct ring_reader *r = attach(fd);
	struct ring_entry entry;
	pthread_t thread;
	unsigned woken = 0;

	cr_assert_eq(pthread_create(&thread, NULL, publish_soon, ring), 0);
	while (ring_next(r, &entry) == AGAIN && ++woken)
		cr_assert_eq(ring_wait(r, -1), 0);
	cr_assert_leq(woken, 3, "it was awake %u times for one publish", woken);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_eq(unlinkat(fd, "x.ring", 0), 0);
	cr_assert_eq(ring_next(r, &entry), AGAIN);
	cr_assert_eq(ring_wait(r, -1), GONE);
	ring_detach(&r);
	ring_close(&ring);
	drop_directory(fd, path);
}

Test(ring_file, removed_or_replaced_file_is_noticed_while_waiting)
{
	char path[32];
	int fd = make_directory(path);
	struct ring *ring = create(fd, uuid);
	struct ring_reader *r = attach(fd);
	struct ring_entry entry;

	cr_assert_eq(ring_next(r, &entry), AGAIN);
	cr_assert_eq(ring_wait(r, 1), AGAIN);
	cr_assert_eq(unlinkat(fd, "x.ring", 0), 0);
	cr_assert_eq(ring_wait(r, 1), GONE);
	ring_detach(&r);
	cr_assert_eq(ring_attach(fd, "x.ring", &r), -ENOENT);
	ring_close(&ring);
	drop_directory(fd, path);
}

Test(ring_file, garbage_under_the_name_is_refused_and_replaced)
{
	char path[32];
	int fd = make_directory(path);
	int file = openat(fd, "x.ring", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct ring_reader *r = NULL;
	char page[RING_HEADER_SIZE];

	memset(page, 0x5a, sizeof(page));
	cr_assert_eq(write(file, page, 100), 100);
	cr_assert_eq(ring_attach(fd, "x.ring", &r), ERR_CORRUPT);
	cr_assert_eq(write(file, page, sizeof(page)), (ssize_t)sizeof(page));
	close(file);
	cr_assert_eq(ring_attach(fd, "x.ring", &r), ERR_FORMAT);
	struct ring *ring = create(fd, uuid);
	r = attach(fd);
	publish(ring, 1);
	expect(r, 1);
	ring_detach(&r);
	ring_close(&ring);
	drop_directory(fd, path);
}

static void *publish_later(void *ring)
{
	struct timespec pause = {0, 20 * 1000000};

	nanosleep(&pause, NULL);
	publish(ring, 1);
	return NULL;
}

Test(ring_file, sleeping_reader_of_a_read_only_mapping_is_woken, .timeout = 20)
{
	char path[32];
	int fd = make_directory(path);
	struct ring *ring = create(fd, uuid);
	struct ring_reader *r = attach(fd); /* O_RDONLY, PROT_READ */
	struct ring_entry entry;
	pthread_t thread;

	cr_assert_eq(ring_next(r, &entry), AGAIN);
	uint64_t start = proc_monotonic_ns();
	cr_assert_eq(pthread_create(&thread, NULL, publish_later, ring), 0);
	while (ring_next(r, &entry) == AGAIN)
		cr_assert_eq(ring_wait(r, 10000), 0);
	cr_assert_lt(proc_monotonic_ns() - start, UINT64_C(5000000000));
	cr_assert_eq(entry.seq, 1);
	pthread_join(thread, NULL);
	ring_detach(&r);
	ring_close(&ring);
	drop_directory(fd, path);
}

Test(ring_file, announcement_wakes_and_gives_nothing, .timeout = 20)
{
	char path[32];
	int fd = make_directory(path);
	struct ring *ring = create(fd, uuid);
	struct ring_reader *r = attach(fd);
	struct ring_entry entry;

	cr_assert_eq(ring_next(r, &entry), AGAIN);
	ring_announce(ring);
	cr_assert_eq(ring_wait(r, 10000), 0);
	cr_assert_eq(ring_next(r, &entry), AGAIN);
	cr_assert_eq(ring_wait(r, 1), AGAIN, "it counts once");
	ring_announce(ring);
	publish(ring, 1);
	cr_assert_eq(ring_wait(r, 10000), 0);
	expect(r, 1);
	ring_detach(&r);
	ring_close(&ring);
	drop_directory(fd, path);
}

Test(ring_file, reader_that_is_woken_last_hears_no_announcement, .timeout = 20)
{
	char path[32];
	int fd = make_directory(path);
	struct ring *ring = create(fd, uuid);
	struct ring_reader *first = attach(fd), *last = attach(fd);
	struct ring_entry entry;

	ring_wake_last(last);
	cr_assert_eq(ring_next(first, &entry), AGAIN);
	cr_assert_eq(ring_next(last, &entry), AGAIN);
	ring_announce(ring);
	cr_assert_eq(ring_wait(first, 10000), 0);
	cr_assert_eq(ring_wait(last, 1), AGAIN);
	ring_put(ring, &(struct ring_entry){.seq = 1, .feed = 1, .type = 1});
	ring_show(ring, 1);
	cr_assert_eq(ring_wait(first, 10000), 0);
	cr_assert_eq(ring_wait(last, 1), AGAIN, "it is not its turn");
	ring_wake_rest(ring);
	cr_assert_eq(ring_wait(last, 10000), 0);
	cr_assert_eq(ring_next(first, &entry), FOUND);
	cr_assert_eq(ring_next(last, &entry), FOUND);
	cr_assert_eq(entry.seq, 1);
	cr_assert_eq(ring_next(last, &entry), AGAIN);
	ring_close(&ring);
	cr_assert_eq(ring_wait(last, 10000), 0, "the end wakes it");
	cr_assert_eq(ring_next(last, &entry), GONE);
	ring_detach(&first);
	ring_detach(&last);
	drop_directory(fd, path);
}

Test(ring_file, publish_between_look_and_sleep_is_not_slept_through, .timeout = 20)
{
	char path[32];
	int fd = make_directory(path);
	struct ring *ring = create(fd, uuid);
	struct ring_reader *r = attach(fd);
	struct ring_entry entry;

	cr_assert_eq(ring_next(r, &entry), AGAIN);
	publish(ring, 1);
	cr_assert_eq(ring_wait(r, 10000), 0);
	expect(r, 1);
	ring_detach(&r);
	ring_close(&ring);
	drop_directory(fd, path);
}
