/* SPDX-License-Identifier: Apache-2.0 */
/* Files of rings: how they are made and replaced, and how readers sleep on them. */
#include <poll.h>
#include <pthread.h>

#include "store/ring/ring_layout.h"
#include "tests/unit/ring_rig.h"

static int fd; /* of the directory with x.ring */
static struct ring *ring;
static struct ring_reader *r;

static struct ring *create(const uint8_t *of)
{
	struct ring *made = NULL;

	cr_assert_eq(ring_create(fd, "x.ring", CAPACITY, of, 0640, &made), 0);
	return made;
}

static struct ring_reader *attach(void)
{
	struct ring_reader *reader = NULL;

	cr_assert_eq(ring_attach(fd, "x.ring", &reader), 0);
	return reader;
}

static void open_directory(void)
{
	cr_assert_eq(mkdir(scratch_path("ring"), 0700), 0);
	fd = open(scratch_path("ring"), O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
}

static void set_up(void)
{
	open_directory();
	ring = create(uuid);
	r = attach();
}

static void tear_down(void)
{
	ring_detach(&r);
	ring_close(&ring);
	(void)unlinkat(fd, "x.ring", 0);
	(void)close(fd);
	cr_assert_eq(rmdir(scratch_path("ring")), 0, "a temporary file was left");
}

TestSuite(ring_file, .init = set_up, .fini = tear_down, .timeout = 20);
TestSuite(no_ring_file, .init = open_directory, .fini = tear_down);

Test(ring_file, is_allocated_in_full_with_the_mode_that_was_asked)
{
	struct stat st;

	cr_assert_eq(fstatat(fd, "x.ring", &st, 0), 0);
	cr_assert_eq(st.st_mode & 07777, 0640);
	cr_assert_eq((size_t)st.st_size, ring_bytes(CAPACITY));
	cr_assert_geq((size_t)st.st_blocks * 512, ring_bytes(CAPACITY));
}

Test(ring_file, restart_keeps_the_file_and_another_journal_replaces_it)
{
	struct ring_entry entry;

	publish(ring, 1);
	expect(r, 1);
	CLEANUP(ring_close) struct ring *second = create(uuid);
	cr_assert_eq(ring_next(r, &entry), LAPPED);
	(void)ring_to_tail(r);
	publish(second, 2);
	expect(r, 2);

	static const uint8_t other[16] = "another journal";
	CLEANUP(ring_close) struct ring *third = create(other);
	cr_assert_eq(ring_next(r, &entry), GONE);
	ring_detach(&r);
	r = attach();
	cr_assert_eq(memcmp(ring_uuid(r), other, 16), 0);
	publish(third, 1);
	expect(r, 1);
}

static void *publish_soon(void *arg)
{
	(void)arg;
	(void)poll(NULL, 0, 50);
	publish(ring, 1);
	return NULL;
}

Test(ring_file, negative_timeout_sleeps_until_something_is_published)
{
	struct ring_entry entry;
	pthread_t thread;
	unsigned woken = 0;

	cr_assert_eq(pthread_create(&thread, NULL, publish_soon, NULL), 0);
	while (ring_next(r, &entry) == AGAIN && ++woken)
		cr_assert_eq(ring_wait(r, -1), 0);
	cr_assert_leq(woken, 3, "it was awake %u times for one publish", woken);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_eq(unlinkat(fd, "x.ring", 0), 0);
	cr_assert_eq(ring_next(r, &entry), AGAIN);
	cr_assert_eq(ring_wait(r, -1), GONE);
}

Test(ring_file, removed_or_replaced_file_is_noticed_while_waiting)
{
	struct ring_entry entry;

	cr_assert_eq(ring_next(r, &entry), AGAIN);
	cr_assert_eq(ring_wait(r, 1), AGAIN);
	cr_assert_eq(unlinkat(fd, "x.ring", 0), 0);
	cr_assert_eq(ring_wait(r, 1), GONE);
	ring_detach(&r);
	cr_assert_eq(ring_attach(fd, "x.ring", &r), -ENOENT);
}

Test(no_ring_file, garbage_under_the_name_is_refused_and_replaced)
{
	int file = openat(fd, "x.ring", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	char page[RING_HEADER_SIZE];

	memset(page, 0x5a, sizeof(page));
	cr_assert_eq(write(file, page, 100), 100);
	cr_assert_eq(ring_attach(fd, "x.ring", &r), ERR_CORRUPT);
	cr_assert_eq(write(file, page, sizeof(page)), (ssize_t)sizeof(page));
	close(file);
	cr_assert_eq(ring_attach(fd, "x.ring", &r), ERR_FORMAT);
	ring = create(uuid);
	r = attach();
	publish(ring, 1);
	expect(r, 1);
}

Test(ring_file, announcement_wakes_and_gives_nothing)
{
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
}

Test(ring_file, reader_that_is_woken_last_hears_no_announcement)
{
	CLEANUP(ring_detach) struct ring_reader *last = attach();
	struct ring_entry entry;

	ring_wake_last(last);
	cr_assert_eq(ring_next(r, &entry), AGAIN);
	cr_assert_eq(ring_next(last, &entry), AGAIN);
	ring_announce(ring);
	cr_assert_eq(ring_wait(r, 10000), 0);
	cr_assert_eq(ring_wait(last, 1), AGAIN);
	ring_put(ring, &(struct ring_entry){.seq = 1, .feed = 1, .type = 1});
	ring_show(ring, 1);
	cr_assert_eq(ring_wait(r, 10000), 0);
	cr_assert_eq(ring_wait(last, 1), AGAIN, "it is not its turn");
	ring_wake_rest(ring);
	cr_assert_eq(ring_wait(last, 10000), 0);
	cr_assert_eq(ring_next(r, &entry), FOUND);
	cr_assert_eq(ring_next(last, &entry), FOUND);
	cr_assert_eq(entry.seq, 1);
	cr_assert_eq(ring_next(last, &entry), AGAIN);
	ring_close(&ring);
	cr_assert_eq(ring_wait(last, 10000), 0, "the end wakes it");
	cr_assert_eq(ring_next(last, &entry), GONE);
}

Test(ring_file, publish_between_look_and_sleep_is_not_slept_through)
{
	struct ring_entry entry;

	cr_assert_eq(ring_next(r, &entry), AGAIN);
	publish(ring, 1);
	cr_assert_eq(ring_wait(r, 10000), 0);
	expect(r, 1);
}

Test(ring_file, the_newest_seq_outlives_its_writers)
{
	static const uint8_t other[16] = {9};

	cr_expect_eq(ring_newest(fd, "x.ring", uuid), 0);
	publish(ring, 42);
	cr_expect_eq(ring_newest(fd, "x.ring", uuid), 42);
	ring_close(&ring);
	cr_expect_eq(ring_newest(fd, "x.ring", uuid), 42, "closed in order");
	ring = create(uuid);
	cr_expect_eq(ring_newest(fd, "x.ring", uuid), 42, "nothing was published since");
	cr_expect_eq(ring_newest(fd, "x.ring", other), 0);
	cr_expect_eq(ring_newest(fd, "y.ring", uuid), 0);
}
