/* SPDX-License-Identifier: Apache-2.0 */
/* Files replaced by a copy while other processes read them: their space comes back, and from
 * readers only if there are too many. */
#include <inttypes.h>
#include <sys/resource.h>
#include <time.h>

#include "common/proc.h"
#include "store/env/replaced.h"
#include "tests/unit/pins_rig.h"

#define GRACE (REPLACED_GRACE_NS + 1)
#define LONG  (REPLACED_KEPT_NS + 1)

static struct replaced_files replaced;

static void setup_replaced(void)
{
	setup();
	setup_writer();
}

static void teardown_replaced(void)
{
	replaced_files_close(&replaced);
	teardown();
}

TestSuite(replaced, .init = setup_replaced, .fini = teardown_replaced, .timeout = 60);

/* Another file takes the place of the writer's, as after a copy. Returns a descriptor of the old
 * one. */
static int replace(void)
{
	static const char *const names[] = {"e/data.mdb", "e/lock.mdb", "e/pins"};
	int folder = open(scratch_path("e"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int old = open(scratch_path("e/data.mdb"), O_RDONLY | O_CLOEXEC);

	env_close(&env);
	replaced_files_add(&replaced, folder, "hints");
	(void)close(folder);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		cr_assert_eq(unlink(scratch_path(names[i])), 0);
	setup_writer();
	return old;
}

static bool tend(uint64_t after, struct replaced_loss *ret_loss)
{
	return replaced_files_maintain(&replaced, &places, proc_monotonic_ns() + after, ret_loss);
}

static uint64_t blocks(int fd)
{
	struct stat st;

	cr_assert_eq(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks;
}

Test(replaced, space_of_a_file_that_nobody_pins_comes_back_whoever_has_it_open)
{
	struct child child = start();
	struct replaced_loss loss;

	cr_assert_eq(ask(&child, 'o'), 'y');
	cr_assert_eq(ask(&child, 'e'), 'y');
	int old = replace();
	cr_assert_not(tend(0, &loss));
	cr_assert_eq(replaced.n, 1, "a running reader has a moment to go on to the copy");
	cr_assert_gt(blocks(old), 0);
	cr_assert_not(tend(GRACE, &loss));
	cr_assert_eq(replaced.n, 0);
	cr_assert_eq(blocks(old), 0);
	cr_assert_eq(ask(&child, 'x'), 'y', "it is told to open the copy");
	cr_assert_eq(ask(&child, 'o'), 'y');
	cr_assert_eq(ask(&child, 'c'), 'y');
	(void)close(old);
	end(&child, SIGTERM);
}

Test(replaced, sizes_of_a_state_that_is_held_are_known_when_no_more_snapshots_are_given)
{
	struct child child = start();
	struct replaced_loss loss;

	cr_assert_eq(ask(&child, 'o'), 'y');
	(void)close(replace());
	cr_assert_not(tend(GRACE, &loss));
	cr_assert_eq(replaced.n, 1);
	cr_assert_eq(ask(&child, 'z'), 'y');
	end(&child, SIGTERM);
}

Test(replaced, file_with_another_name_is_left_as_it_is)
{
	struct replaced_loss loss;

	cr_assert_eq(link(scratch_path("e/data.mdb"), scratch_path("kept")), 0);
	AUTO_FD int old = replace();
	uint64_t before = blocks(old);
	cr_assert_not(tend(GRACE, &loss));
	cr_assert_eq(replaced.n, 0);
	cr_assert_eq(blocks(old), before);
}

Test(replaced, snapshot_of_one_frozen_reader_stays)
{
	struct child child = start();
	struct replaced_loss loss;

	cr_assert_eq(ask(&child, 'o'), 'y');
	int old = replace();
	cr_assert_not(tend(100 * LONG, &loss));
	cr_assert_eq(replaced.n, 1);
	cr_assert_eq(ask(&child, 'c'), 'y');
	cr_assert_eq(ask(&child, 'e'), 'y');
	cr_assert_not(tend(GRACE, &loss));
	cr_assert_eq(replaced.n, 0);
	cr_assert_eq(blocks(old), 0);
	cr_assert_eq(ask(&child, 'x'), 'y');
	(void)close(old);
	end(&child, SIGTERM);
}

Test(replaced, of_too_many_files_the_oldest_is_given_up_after_a_minute)
{
	struct child children[REPLACED_FILES_KEPT + 1];
	struct replaced_loss loss;
	int old[REPLACED_FILES_KEPT + 1];

	for (size_t i = 0; i <= REPLACED_FILES_KEPT; i++) {
		children[i] = start();
		cr_assert_eq(ask(&children[i], 'o'), 'y');
		cr_assert_not(tend(LONG, &loss));
		old[i] = replace();
	}
	cr_assert_not(tend(GRACE, &loss), "not within the minute");
	cr_assert_eq(replaced.n, REPLACED_FILES_KEPT + 1);
	cr_assert(tend(LONG, &loss));
	cr_assert_eq(replaced.n, REPLACED_FILES_KEPT);
	cr_assert_eq(loss.snapshots, 1);
	cr_assert_eq(loss.uid, geteuid());
	cr_assert_eq(loss.pid, children[0].pid);
	cr_assert_gt(loss.bytes, 0);
	cr_assert_eq(blocks(old[0]), 0);
	cr_assert_eq(ask(&children[0], 'g'), 'y');
	cr_assert_eq(ask(&children[0], 'x'), 'y');
	for (size_t i = 1; i <= REPLACED_FILES_KEPT; i++)
		cr_assert_eq(ask(&children[i], 'c'), 'y');
	cr_assert_not(tend(LONG, &loss), "four may be kept");
	for (size_t i = 0; i <= REPLACED_FILES_KEPT; i++) {
		(void)close(old[i]);
		end(&children[i], SIGTERM);
	}
}

Test(replaced, reader_of_another_user_does_not_lose_its_snapshot_to_one_who_has_many)
{
	struct child children[REPLACED_FILES_KEPT + 2];
	struct replaced_loss loss;

	if (geteuid() != 0) {
		cr_assert_neq(access("/", W_OK), 0, "another uid takes root");
		return;
	}
	cr_assert_eq(chmod(scratch(), 0755), 0);
	cr_assert_eq(chmod(scratch_path("e"), 0755), 0);
	cr_assert_eq(chmod(places.path[0], 01777), 0);
	for (size_t i = 0; i < REPLACED_FILES_KEPT + 2; i++) {
		cr_assert_eq(chmod(scratch_path("e/data.mdb"), 0644), 0);
		cr_assert_eq(chmod(scratch_path("e/pins"), 0644), 0);
		children[i] = start();
		if (i == 0)
			cr_assert_eq(ask(&children[i], 'u'), 'y');
		cr_assert_eq(ask(&children[i], 'o'), 'y');
		(void)close(replace());
	}
	cr_assert(tend(LONG, &loss));
	cr_assert_eq(loss.pid, children[1].pid);
	cr_assert(tend(LONG, &loss));
	cr_assert_eq(loss.pid, children[2].pid);
	cr_assert_not(tend(LONG, &loss));
	cr_assert_eq(ask(&children[0], 'c'), 'y');
	for (size_t i = 0; i < REPLACED_FILES_KEPT + 2; i++)
		end(&children[i], SIGTERM);
}

Test(replaced, reader_in_the_middle_of_reading_notices_it_and_does_not_die)
{
	struct child children[24];
	const size_t n = sizeof(children) / sizeof(children[0]);
	struct replaced_loss loss;
	char answer = '-', command = 'g';

	for (size_t i = 0; i < n; i++) {
		children[i] = start();
		cr_assert_eq(ask(&children[i], 'o'), 'y');
		cr_assert_eq(write(children[i].to, &command, 1), 1);
		(void)close(replace());
		pause_ms((int)i % 5);
		cr_assert_eq(tend(LONG, &loss), i >= REPLACED_FILES_KEPT);
		if (i < REPLACED_FILES_KEPT)
			continue;
		struct child *given_up = &children[i - REPLACED_FILES_KEPT];
		cr_assert_eq(loss.pid, given_up->pid);
		(void)!read(given_up->from, &answer, 1);
		cr_assert_eq(answer, 'y', "%c", answer);
		cr_assert_eq(ask(given_up, 'x'), 'y');
		end(given_up, SIGTERM);
	}
	for (size_t i = n - REPLACED_FILES_KEPT; i < n; i++)
		end(&children[i], SIGKILL);
}

/* As a hostile member of the store's group makes them. Returns how many there are. */
static size_t make_pin_files(uint64_t inode, size_t n, int *ret_files)
{
	static uint8_t bytes[PIN_CHUNKS_MAX * PIN_CHUNK_BYTES];
	struct pin_head head = {.magic = PIN_FILE_MAGIC, .slots = sizeof(bytes) / PIN_SLOT_BYTES};
	char path[sizeof(places.path[0]) + PIN_NAME_LENGTH + 2];

	memcpy(bytes, &head, sizeof(head));
	memset(bytes + PIN_SLOT_BYTES, 1, 8);
	for (size_t i = 0; i < n; i++) {
		struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

		(void)snprintf(path, sizeof(path), "%s/%016" PRIx64 "-%016zx", places.path[0],
			inode, i + 1);
		ret_files[i] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
		if (ret_files[i] < 0)
			return i;
		cr_assert_eq(fcntl(ret_files[i], F_OFD_SETLK, &lock), 0);
		cr_assert_eq(write(ret_files[i], bytes, sizeof(bytes)), (ssize_t)sizeof(bytes));
	}
	return n;
}

static double cpu_seconds(void)
{
	struct timespec used;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

Test(replaced, looks_seldom_while_looking_takes_long)
{
	static int files[800];
	struct replaced_loss loss;
	struct stat st;
	AUTO_FD int old = replace();

	cr_assert_eq(fstat(old, &st), 0);
	size_t n = make_pin_files(st.st_ino, sizeof(files) / sizeof(files[0]), files);
	double begun = cpu_seconds();
	cr_assert_not(tend(LONG, &loss));
	double once = cpu_seconds() - begun;
	cr_assert_eq(replaced.files[0].snapshots, n);
	for (unsigned i = 1; i <= 100; i++)
		cr_assert_not(tend(LONG + i * 100000000ull, &loss));
	double all = cpu_seconds() - begun;
	if (once > 0.015)
		cr_assert_lt(all, 10 * 0.15 + 2 * once, "%.3f s in 10 s, once %.3f s", all, once);
	for (size_t i = 0; i < n; i++)
		(void)close(files[i]);
	replaced.due_ns = 0;
	cr_assert_not(tend(LONG, &loss));
	cr_assert_eq(replaced.n, 0);
}

/* Files of living processes without pins, too many to read all: an unread one may pin it. */
Test(replaced, stays_while_there_are_more_pin_files_than_are_read)
{
	enum { MANY = 4500 };
	static int files[MANY];
	struct rlimit limit;
	struct replaced_loss loss;
	struct stat st;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_max < MANY + 100)
		return;
	limit.rlim_cur = MANY + 100;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_assert_eq(stat(scratch_path("e/data.mdb"), &st), 0);
	for (size_t i = 0; i < MANY; i++) {
		struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
		char path[sizeof(places.path[0]) + PIN_NAME_LENGTH + 2];

		(void)snprintf(path, sizeof(path), "%s/%016" PRIx64 "-%016zx", places.path[0],
			(uint64_t)st.st_ino, i + 1);
		files[i] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
		cr_assert_eq(fcntl(files[i], F_OFD_SETLK, &lock), 0);
	}
	int old = replace();
	cr_assert_not(tend(LONG, &loss));
	cr_assert_eq(replaced.n, 1, "who pins it is not known");
	cr_assert_gt(blocks(old), 0);
	for (size_t i = 0; i < MANY; i++)
		(void)close(files[i]);
	replaced.due_ns = 0;
	cr_assert_not(tend(LONG, &loss));
	cr_assert_eq(replaced.n, 0);
	cr_assert_eq(blocks(old), 0);
	(void)close(old);
}
