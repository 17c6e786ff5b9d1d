/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/syscall.h>
#include <time.h>

#include "common/proc.h"
#include "common/stats.h"
#include "tests/unit/unit.h"

#define PAGE "stats.test"

static char directory[64];
static int directory_fd = -1;

static void make_directory(void)
{
	(void)snprintf(directory, sizeof(directory), "/tmp/kinf-stats-XXXXXX");
	cr_assert(mkdtemp(directory));
	directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(directory_fd, 0);
}

static void remove_directory(void)
{
	(void)unlinkat(directory_fd, PAGE, 0);
	(void)close(directory_fd);
	cr_assert_eq(rmdir(directory), 0);
}

TestSuite(stats, .init = make_directory, .fini = remove_directory);

static struct stats *create(void)
{
	struct stats *s = NULL;

	cr_assert_eq(stats_create(directory_fd, PAGE, &s), 0);
	return s;
}

static struct stats *reader(void)
{
	struct stats *s = NULL;

	cr_assert_eq(stats_open(directory_fd, PAGE, &s), 0);
	return s;
}

/* Changes SIZE bytes at OFFSET of the page's file. */
static void damage(off_t offset, const void *bytes, size_t size)
{
	AUTO_FD int fd = openat(directory_fd, PAGE, O_WRONLY | O_CLOEXEC);
	cr_assert_eq(pwrite(fd, bytes, size, offset), (ssize_t)size);
}

Test(stats, reader_sees_the_writers_counters)
{
	CLEANUP(stats_close) struct stats *w = create();
	CLEANUP(stats_close) struct stats *r = reader();

	stats_add(w, STAT_RECORDS, 3);
	stats_add(w, STAT_RECORDS, 4);
	cr_assert_eq(stats_get(r, STAT_RECORDS), 7);
	cr_assert_eq(stats_get(r, STAT_EVENTS), 0);
	cr_assert_str_eq(stats_name(STAT_RECORDS), "journal.records");
}

Test(stats, no_page_counts_nothing_and_hurts_nobody)
{
	struct stats_feed feed = {.feed = 1};
	struct stats_process p;
	CLEANUP(stats_close) struct stats *none = NULL;
	size_t size;

	stats_add(NULL, STAT_RECORDS, 3);
	stats_heartbeat(NULL);
	stats_set_state(NULL, "x");
	stats_set_error(NULL, "x");
	cr_assert_eq(stats_get(NULL, STAT_RECORDS), 0);
	cr_assert_null(stats_check_text(NULL, &size));
	cr_assert_eq(stats_feed_set(NULL, &feed), -1);
	cr_assert_eq(stats_feed_get(NULL, 1, &feed), NOT_FOUND);
	cr_assert_eq(stats_feed_remove(NULL, 1), NOT_FOUND);
	cr_assert_eq(stats_process(NULL, &p), -ENOENT);
}

Test(stats, process_tells_what_it_does)
{
	CLEANUP(stats_close) struct stats *w = create();
	CLEANUP(stats_close) struct stats *r = reader();
	struct stats_process p;
	uint64_t before = proc_realtime_ns(), heartbeat = proc_monotonic_ns();

	cr_assert_eq(stats_process(r, &p), 0);
	cr_assert_str_eq(p.state, "starting");
	stats_set_state(w, "waiting for disk space");
	stats_set_error(w, "no space");
	stats_heartbeat(w);
	cr_assert_eq(stats_process(r, &p), 0);
	cr_assert_eq(p.pid, getpid());
	cr_assert(p.alive);
	cr_assert_str_eq(p.state, "waiting for disk space");
	cr_assert_str_eq(p.error, "no space");
	cr_assert_str_eq(p.check, "");
	cr_assert_leq(p.start_ns, before);
	cr_assert_geq(p.heartbeat_ns, heartbeat);
	cr_assert(p.responding);
	stats_set_error(w, NULL);
	cr_assert_eq(stats_process(r, &p), 0);
	cr_assert_str_eq(p.error, "");
}

/* The clocks as the tests set them: the kernel's, moved. */
static time_t moved_s[2]; /* CLOCK_REALTIME, CLOCK_MONOTONIC */

int clock_gettime(clockid_t id, struct timespec *ret)
{
	int r = (int)syscall(SYS_clock_gettime, id, ret);

	if (id == CLOCK_REALTIME || id == CLOCK_MONOTONIC)
		ret->tv_sec += moved_s[id];
	return r;
}

Test(stats, a_hung_process_is_noticed_after_the_wall_clock_was_set_back)
{
	CLEANUP(stats_close) struct stats *w = create();
	CLEANUP(stats_close) struct stats *r = reader();
	struct stats_process p;

	stats_heartbeat(w);
	moved_s[CLOCK_MONOTONIC] = STATS_HEARTBEAT_LIMIT_NS / 1000000000;
	moved_s[CLOCK_REALTIME] = -3600;
	cr_assert_eq(stats_process(r, &p), 0);
	cr_assert_not(p.responding);
	stats_heartbeat(w);
	cr_assert_eq(stats_process(r, &p), 0);
	cr_assert(p.responding);
	moved_s[CLOCK_REALTIME] = 3600;
	cr_assert_eq(stats_process(r, &p), 0);
	cr_assert(p.responding);
	moved_s[CLOCK_MONOTONIC]--;
	cr_assert_eq(stats_process(r, &p), 0);
	cr_assert_not(p.responding, "a heartbeat of an earlier boot");
}

Test(stats, long_text_loses_its_middle)
{
	CLEANUP(stats_close) struct stats *w = create();
	struct stats_process p;
	char text[1000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	stats_set_state(w, text);
	cr_assert_eq(stats_process(w, &p), 0);
	cr_assert_eq(strlen(p.state), STATS_TEXT - 1);
	cr_assert_not_null(strstr(p.state, "x ... x"));
	text[STATS_TEXT - 1] = '\0';
	stats_set_state(w, text);
	cr_assert_eq(stats_process(w, &p), 0);
	cr_assert_str_eq(p.state, text, "it just fits");
}

static void check_text(struct stats *w, const char *text, const char *want)
{
	struct stats_process p;

	stats_set_error(w, text);
	cr_assert_eq(stats_process(w, &p), 0);
	cr_assert_str_eq(p.error, want, "%s", p.error);
}

/* A proxy's Latin-1, escapes of a terminal (also the character U+009B), half of one. */
Test(stats, text_is_valid_and_printable_whatever_was_said)
{
	CLEANUP(stats_close) struct stats *w = create();

	check_text(w,
		"g\xc3\xa4"
		"be \xe2\x82\xac",
		"g\xc3\xa4"
		"be \xe2\x82\xac");
	check_text(w, "verf\xfcgbar \xff\xc3", "verf?gbar ??");
	check_text(w,
		"a\x1b[31m\nb\xc2\x9b"
		"31m\x7f",
		"a?[31m b??31m?");
}

Test(stats, a_page_that_is_continued_keeps_all_but_what_is_set)
{
	struct stats *none = NULL;
	struct stats_process p;

	cr_assert_eq(stats_continue(directory_fd, PAGE, &none), -ENOENT);
	CLEANUP(stats_close) struct stats *w = create();
	stats_add(w, STAT_LISTS, 5);
	stats_set_error(w, "the first reason");
	CLEANUP(stats_close) struct stats *next = NULL;
	cr_assert_eq(stats_continue(directory_fd, PAGE, &next), 0);
	CLEANUP(stats_close) struct stats *r = reader();
	cr_assert_eq(stats_process(r, &p), 0);
	cr_assert_str_eq(
		p.error, "the first reason", "a reader finds it until there is another one");
	stats_set_error(next, "the second");
	cr_assert_eq(stats_process(r, &p), 0);
	cr_assert_str_eq(p.error, "the second");
	cr_assert_eq(stats_get(r, STAT_LISTS), 5);
}

/* Writes a page in a child, and the child dies. */
static void write_and_die(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct stats *w = NULL;
		size_t size;
		if (stats_create(directory_fd, PAGE, &w) < 0)
			_exit(1);
		stats_add(w, STAT_LISTS, 5);
		(void)stats_feed_set(w, &(struct stats_feed){.feed = 9});
		char *text = stats_check_text(w, &size);
		(void)snprintf(text, size, "ring.c:1: claim >= tail");
		_exit(0);
	}
	int status;
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
}

Test(stats, dead_process_is_seen_dead_with_its_last_words)
{
	struct stats_process p;

	write_and_die();
	CLEANUP(stats_close) struct stats *r = reader();
	cr_assert_eq(stats_process(r, &p), 0);
	cr_assert_not(p.alive);
	cr_assert_str_eq(p.check, "ring.c:1: claim >= tail");
	cr_assert_eq(stats_get(r, STAT_LISTS), 5);
}

Test(stats, recycled_pid_is_not_taken_for_alive)
{
	CLEANUP(stats_close) struct stats *w = create();
	CLEANUP(stats_close) struct stats *r = reader();
	struct stats_process p;

	cr_assert_eq(stats_process(r, &p), 0);
	cr_assert(p.alive);
	damage(24, "\1\0\0\0\0\0\0\0", 8); /* the start time of another process */
	cr_assert_eq(stats_process(r, &p), 0);
	cr_assert_not(p.alive);
}

Test(stats, restarted_writer_takes_the_page_over_under_its_readers)
{
	struct stats_process p;
	struct stats_feed feed;

	write_and_die();
	CLEANUP(stats_close) struct stats *r = reader();
	cr_assert_eq(stats_feed_get(r, 9, &feed), FOUND);
	CLEANUP(stats_close) struct stats *w = create();
	cr_assert_eq(stats_process(r, &p), 0);
	cr_assert(p.alive);
	cr_assert_str_eq(p.check, "");
	cr_assert_eq(stats_get(r, STAT_LISTS), 0);
	cr_assert_eq(stats_feed_get(r, 9, &feed), NOT_FOUND);
	stats_add(w, STAT_LISTS, 1);
	cr_assert_eq(stats_get(r, STAT_LISTS), 1);
}

Test(stats, feed_rows_keep_their_slot)
{
	CLEANUP(stats_close) struct stats *w = create();
	CLEANUP(stats_close) struct stats *r = reader();
	struct stats_feed one = {.feed = 1,
		.phase = 3,
		.heard_ns = 12,
		.lists = 1,
		.watches = 2,
		.events = 3,
		.bytes = 4,
		.retries = 5,
		.list_done = 6,
		.list_total = 7,
		.error = "refused"};
	struct stats_feed zero = {.feed = 0}, got;

	cr_assert_eq(stats_feed_set(w, &one), 1);
	cr_assert_eq(stats_feed_set(w, &zero), 0);
	cr_assert_eq(stats_feed_set(w, &one), 1);
	cr_assert_eq(stats_feed_get(r, 1, &got), FOUND);
	cr_assert_eq(memcmp(&one, &got, sizeof(got)), 0);
	cr_assert_eq(stats_feed_get(r, 0, &got), FOUND);
	cr_assert_eq(stats_feed_remove(w, 1), FOUND);
	cr_assert_eq(stats_feed_remove(w, 1), NOT_FOUND);
	cr_assert_eq(stats_feed_get(r, 1, &got), NOT_FOUND);
	one.feed = STATS_FEEDS_MAX;
	cr_assert_eq(stats_feed_set(w, &one), 1, "a free slot is used when its own is taken");
	cr_assert_eq(stats_feed_set(w, &one), 1);
	zero.feed = 2 * STATS_FEEDS_MAX;
	cr_assert_eq(stats_feed_set(w, &zero), 2, "a new one when there is none");
	cr_assert_eq(stats_feed_get(r, STATS_FEEDS_MAX, &got), FOUND);
	cr_assert_eq(memcmp(&one, &got, sizeof(got)), 0);
	cr_assert_eq(stats_feed_remove(w, 0), FOUND);
	cr_assert_eq(stats_feed_get(r, 2 * STATS_FEEDS_MAX, &got), FOUND);
	cr_assert_eq(got.feed, 2 * STATS_FEEDS_MAX);
}

Test(stats, full_table_of_feeds_is_told)
{
	CLEANUP(stats_close) struct stats *w = create();
	struct stats_feed feed = {0};

	for (uint32_t i = 0; i < STATS_FEEDS_MAX; i++) {
		feed.feed = i;
		cr_assert_eq(stats_feed_set(w, &feed), (int)i);
	}
	feed.feed = STATS_FEEDS_MAX;
	cr_assert_eq(stats_feed_set(w, &feed), -1);
	feed.feed = 5;
	cr_assert_eq(stats_feed_set(w, &feed), 5);
}

Test(stats, group_may_read_whatever_the_umask)
{
	struct stat st;

	(void)umask(0077);
	CLEANUP(stats_close) struct stats *w = create();
	cr_assert_eq(fstatat(directory_fd, PAGE, &st, 0), 0);
	cr_assert_eq(st.st_mode & 0777, 0640);
}

Test(stats, foreign_or_short_files_are_refused)
{
	struct stats *r = NULL;

	cr_assert_eq(stats_open(directory_fd, PAGE, &r), -ENOENT);
	struct stats *w = create();
	damage(4, "\0\0\4\0", 4); /* major version 4 */
	cr_assert_eq(stats_open(directory_fd, PAGE, &r), ERR_FORMAT);
	damage(4, "\0\0\1\0", 4);
	damage(0, "GIF8", 4);
	cr_assert_eq(stats_open(directory_fd, PAGE, &r), ERR_FORMAT);
	stats_close(&w);
	AUTO_FD int fd = openat(directory_fd, PAGE, O_WRONLY | O_CLOEXEC);
	cr_assert_eq(ftruncate(fd, 4096), 0);
	cr_assert_eq(stats_open(directory_fd, PAGE, &r), ERR_FORMAT);
	cr_assert_null(r);
}

Test(stats, garbage_in_a_page_stays_in_bounds)
{
	struct stats *w = create();
	struct stats_process p;
	struct stats_feed feed;
	uint8_t junk[4096];

	stats_close(&w);
	memset(junk, 0xff, sizeof(junk));
	damage(16, junk, sizeof(junk)); /* after magic, version and size */
	CLEANUP(stats_close) struct stats *r = reader();
	cr_assert_eq(stats_process(r, &p), 0);
	cr_assert_not(p.alive);
	cr_assert_str_eq(p.state, "", "an odd number that stays odd: half-written");
	cr_assert_eq(strlen(p.check), STATS_TEXT - 1);
	cr_assert_eq(stats_feed_get(r, 0xfffffff0, &feed), NOT_FOUND);
}

Test(stats, rows_are_walked_and_those_of_entries_without_a_feed_told_apart)
{
	CLEANUP(stats_close) struct stats *stats = create();
	struct stats_feed row = {.feed = 0, .retries = 3}, pending = {.feed = STATS_PENDING | 1};
	struct stats_feed found;

	cr_assert_eq(stats_feed_at(stats, 0, &found), END);
	(void)snprintf(pending.error, sizeof(pending.error), "widgets: not there");
	cr_assert_geq(stats_feed_set(stats, &row), 0);
	cr_assert_geq(stats_feed_set(stats, &pending), 0);
	cr_assert_eq(stats_feed_at(stats, 0, &found), FOUND);
	cr_assert(found.feed == 0 && found.retries == 3);
	cr_assert_eq(stats_feed_at(stats, 1, &found), FOUND);
	cr_assert(found.feed & STATS_PENDING);
	cr_assert_str_eq(found.error, "widgets: not there");
	cr_assert_eq(stats_feed_at(stats, 2, &found), END);
	cr_assert_eq(stats_feed_remove(stats, 0), FOUND);
	cr_assert_eq(stats_feed_at(stats, 0, &found), NOT_FOUND);
}

Test(stats, rows_say_which_journal_they_are_of)
{
	CLEANUP(stats_close) struct stats *stats = create();
	uint8_t uuid[16] = {1, 2, 3, [15] = 9}, found[16] = {0};

	cr_assert_not(stats_journal(stats, found));
	stats_set_journal(stats, uuid);
	cr_assert(stats_journal(stats, found));
	cr_assert_arr_eq(found, uuid, sizeof(uuid));
	cr_assert_not(stats_journal(NULL, found));
}
