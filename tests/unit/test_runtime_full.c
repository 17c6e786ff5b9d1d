/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a runtime directory on a disk that becomes full and does not keep what was
 * allocated. On tmpfs reading a hole needs a block also, so nothing is read through a map while
 * the disk is full. */
#include <poll.h>

#include "common/err.h"
#include "common/stats.h"
#include "store/ring/ring.h"
#include "store/ring/ring_layout.h"
#include "store/ring/taken.h"
#include "tests/unit/full_disk_rig.h"

#define CAPACITY (64 * KIB)

static const uint8_t uuid[16] = "a journal's uuid";

static void child_loses(int directory, const char *name, off_t from)
{
	int fd = openat(directory, name, O_RDWR | O_CLOEXEC);

	CHILD_REQUIRES(fd >= 0);
	child_takes_blocks(fd, from);
	CHILD_REQUIRES(close(fd) == 0);
}

static int child_directory(const char *path)
{
	child_mounts(path);
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHILD_REQUIRES(directory >= 0);
	return directory;
}

static void status_page(const char *path)
{
	struct stats *stats = NULL, *reader = NULL, *other = NULL;
	struct stats_process process;
	int directory = child_directory(path);

	CHILD_REQUIRES(stats_create(directory, "page", &stats) == 0 &&
		       stats_open(directory, "page", &reader) == 0);
	stats_set_state(stats, "running");
	CHILD_REQUIRES(
		stats_process(reader, &process) == 0 && strcmp(process.state, "running") == 0);
	child_loses(directory, "page", 0);
	int filler = child_fills(path);
	stats_set_state(stats, "waiting");
	stats_add(stats, STAT_JOURNAL_COMMITS, 3);
	stats_heartbeat(stats);
	CHILD_REQUIRES(stats_is_lost(stats) && stats_get(stats, STAT_JOURNAL_COMMITS) == 3);
	CHILD_REQUIRES(stats_create(directory, "page", &other) == -ENOSPC);
	CHILD_REQUIRES(ftruncate(filler, 0) == 0);
	(void)poll(NULL, 0, 1100); /* it tries again after a second */
	stats_heartbeat(stats);
	CHILD_REQUIRES(!stats_is_lost(stats));
	CHILD_REQUIRES(
		stats_process(reader, &process) == 0 && strcmp(process.state, "waiting") == 0);
	CHILD_REQUIRES(stats_get(reader, STAT_JOURNAL_COMMITS) == 3);
	stats_close(&reader);
	stats_close(&stats);
}

static void taken_word(const char *path)
{
	struct taken *taken = NULL;
	struct taken_reader *reader = NULL;
	int directory = child_directory(path);

	CHILD_REQUIRES(taken_create(directory, 0600, 7, true, &taken) == 0 &&
		       taken_attach(directory, &reader) == 0);
	taken_look(reader);
	child_loses(directory, TAKEN_FILE, 0);
	int filler = child_fills(path);
	taken_publish(taken, 9);
	taken_attend(taken);
	CHILD_REQUIRES(ftruncate(filler, 0) == 0);
	taken_attend(taken);
	CHILD_REQUIRES(taken_seq(reader) == 9 && taken_wait(reader, 1) == 0);
	taken_detach(&reader);
	taken_close(&taken);
}

static void put(struct ring *ring, uint64_t seq)
{
	ring_put(ring,
		&(struct ring_entry){.seq = seq, .feed = 7, .type = 1, .key = BYTES_LIT("a")});
	ring_publish(ring, seq);
}

static void ring(const char *path)
{
	struct ring *ring = NULL, *other = NULL;
	struct ring_reader *reader = NULL;
	struct ring_entry entry;
	uint64_t last;
	int directory = child_directory(path);

	CHILD_REQUIRES(ring_create(directory, "ring", CAPACITY, uuid, 0600, &ring) == 0);
	CHILD_REQUIRES(ring_attach(directory, "ring", &reader) == 0);
	put(ring, 1);
	CHILD_REQUIRES(ring_next(reader, &entry) == FOUND && entry.seq == 1);
	child_loses(directory, "ring", RING_HEADER_SIZE); /* a hole has no header to copy */
	int filler = child_fills(path);
	for (uint64_t seq = 2; seq < 5000; seq++) /* all pages of it */
		put(ring, seq);
	ring_heartbeat(ring);
	CHILD_REQUIRES(ring_create(directory, "other", CAPACITY, uuid, 0600, &other) == -ENOSPC);
	CHILD_REQUIRES(ftruncate(filler, 0) == 0);
	ring_heartbeat(ring);
	CHILD_REQUIRES(ring_next(reader, &entry) == LAPPED && ring_to_tail(reader, &last) == 0 &&
		       last == 4999);
	put(ring, 5000);
	CHILD_REQUIRES(ring_next(reader, &entry) == FOUND && entry.seq == 5000);
	ring_detach(&reader);
	ring_close(&ring);
}

static void require_child(void body(const char *path))
{
	int status = in_child(body);

	cr_assert(WIFEXITED(status), "signal %d", WTERMSIG(status));
	cr_assert_eq(WEXITSTATUS(status), 0, "line %d, modulo 128", WEXITSTATUS(status));
}

Test(runtime_full, status_page_is_written_when_there_is_room)
{
	require_child(status_page);
}

Test(runtime_full, taken_word_is_written_and_wakes_when_there_is_room)
{
	require_child(taken_word);
}

Test(runtime_full, readers_of_the_ring_go_to_the_log_when_there_is_room)
{
	require_child(ring);
}
