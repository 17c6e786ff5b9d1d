/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <time.h>

#include "common/failpoint.h"
#include "common/proc.h"
#include "store/read/cursor_claim.h"
#include "tests/unit/unit.h"

static struct home *home;
static const uint8_t uuid[16] = {0x01, 0x23, 0xff, [15] = 0xa0};
static const struct follow_position positions[] = {{1, 7}, {4000000000u, UINT64_MAX - 1}};

static void setup(void)
{
	struct home_options options = {.create = true, .runtime_dir = scratch()};

	OK(home_open(scratch_path("store"), &options, &home));
}

static void teardown(void)
{
	home_close(&home);
}

/* Puts TEXT where the cursor NAME would be. */
static void put_file(const char *name, const char *text)
{
	int fd = openat(home_cursors_fd(home), name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	cr_assert_eq(close(fd), 0);
}

static int load(const char *name)
{
	struct cursor_file cursor;
	int r = cursor_load(home, name, false, &cursor);

	if (r == FOUND)
		cursor_release(&cursor);
	return r;
}

static int count(void *arg, const char *name, const struct cursor_file *cursor)
{
	(void)cursor;
	(void)snprintf((char *)arg + strlen(arg), 40, "%s ", name);
	return 0;
}

TestSuite(cursor_file, .init = setup, .fini = teardown);

Test(cursor_file, a_failed_save_says_which_step_failed)
{
	cr_assert_eq(mkdirat(home_cursors_fd(home), "taken", 0700), 0);
	int r = cursor_save(home, "taken", uuid, positions, 2);

	cr_assert_eq(r, -EISDIR);
	cr_assert(strstr(err_text(r), "writing cursor 'taken' in '"), "%s", err_text(r));
	cr_assert(strstr(err_text(r), "renaming '.taken."), "%s", err_text(r));
}

Test(cursor_file, what_was_saved_is_loaded)
{
	struct cursor_file cursor;
	uint64_t before = proc_realtime_ns();

	cr_assert_eq(cursor_save(home, "c-1", uuid, positions, 2), 0);
	cr_assert_eq(cursor_load(home, "c-1", false, &cursor), FOUND);
	cr_assert_eq(memcmp(cursor.uuid, uuid, 16), 0);
	cr_assert_eq(cursor.n, 2);
	cr_assert_eq(cursor.positions[0].feed, 1);
	cr_assert_eq(cursor.positions[0].seq, 7);
	cr_assert_eq(cursor.positions[1].feed, 4000000000u);
	cr_assert_eq(cursor.positions[1].seq, UINT64_MAX - 1);
	cr_assert(cursor.written_ns >= before && cursor.written_ns <= proc_realtime_ns());
	cursor_release(&cursor);
	cr_assert_eq(cursor_save(home, "c-1", uuid, NULL, 0), 0);
	cr_assert_eq(cursor_load(home, "c-1", false, &cursor), FOUND);
	cr_assert_eq(cursor.n, 0);
	cursor_release(&cursor);
}

/* A follower must not end because a user removed the directory. */
Test(cursor_file, a_folder_that_was_taken_away_is_made_or_found_again)
{
	const char *folder = scratch_path("store/cursors");
	char path[512];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s", folder);
	cr_assert_eq(rmdir(path), 0);
	cr_assert_eq(load("a"), NOT_FOUND);
	OK(cursor_save(home, "a", uuid, positions, 2));
	cr_assert_eq(load("a"), FOUND);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 07777, 0700);
	scratch_remove(path);
	cr_assert_eq(mkdir(path, 0700), 0); /* by the processor */
	cr_assert_eq(cursor_save(home, "a", uuid, positions, 2), 0);
	cr_assert_eq(load("a"), FOUND);
	scratch_remove(scratch_path("store"));
	cr_assert_eq(cursor_save(home, "a", uuid, positions, 2), ERR_NO_STORE);
}

Test(cursor_file, those_after_the_end_of_a_journal_that_went_back_lapse)
{
	static const uint8_t other[16] = {7};
	const struct follow_position before[] = {{1, 9}, {2, 10}}, after[] = {{1, 9}, {2, 11}};
	struct cursor_file cursor;

	cr_assert_eq(cursor_save(home, "before", uuid, before, 2), 0);
	cr_assert_eq(cursor_save(home, "after", uuid, after, 2), 0);
	cr_assert_eq(cursor_save(home, "other", other, after, 2), 0);
	cr_assert_eq(cursor_lapse_later(home, uuid, 11), 1);
	cr_assert_eq(cursor_load(home, "after", false, &cursor), FOUND);
	cr_assert(memcmp(cursor.uuid, uuid, sizeof(uuid)) != 0 && cursor.n == 2);
	cursor_release(&cursor);
	cr_assert_eq(cursor_load(home, "before", false, &cursor), FOUND);
	cr_assert_eq(memcmp(cursor.uuid, uuid, sizeof(uuid)), 0);
	cursor_release(&cursor);
	cr_assert_eq(cursor_load(home, "other", false, &cursor), FOUND);
	cr_assert_eq(memcmp(cursor.uuid, other, sizeof(uuid)), 0);
	cursor_release(&cursor);
	cr_assert_eq(cursor_lapse_later(home, uuid, 11), 0);
}

Test(cursor_file, names_are_checked_before_any_file_is_touched)
{
	static const char *const bad[] = {"", ".", "..", ".x", "a/b", "../x", "a b", "\xc3\xa4",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		cr_expect_eq(cursor_save(home, bad[i], uuid, positions, 2), -EINVAL, "%s", bad[i]);
		cr_expect_eq(load(bad[i]), -EINVAL, "%s", bad[i]);
		cr_expect_eq(cursor_remove(home, bad[i]), -EINVAL, "%s", bad[i]);
	}
	cr_assert_eq(cursor_save(home, "A.z_0-9", uuid, positions, 2), 0);
}

Test(cursor_file, removed_ones_are_not_found)
{
	cr_assert_eq(load("gone"), NOT_FOUND);
	cr_assert_eq(cursor_remove(home, "gone"), NOT_FOUND);
	cr_assert_eq(cursor_save(home, "gone", uuid, positions, 1), 0);
	cr_assert_eq(cursor_remove(home, "gone"), FOUND);
	cr_assert_eq(load("gone"), NOT_FOUND);
}

/* Otherwise a group member could block the name for all others. */
Test(cursor_file, a_directory_with_the_name_of_a_cursor_is_removed)
{
	int cursors = home_cursors_fd(home);

	cr_assert_eq(mkdirat(cursors, "taken", 0700), 0);
	cr_assert_eq(mkdirat(cursors, "taken/more", 0700), 0);
	cr_assert_eq(cursor_remove(home, "taken"), -ENOTEMPTY);
	cr_assert(
		strstr(err_text(-ENOTEMPTY), "cursors/taken' is a directory with something in it"),
		"%s", err_text(-ENOTEMPTY));
	cr_assert_eq(unlinkat(cursors, "taken/more", AT_REMOVEDIR), 0);
	cr_assert_eq(cursor_remove(home, "taken"), FOUND);
	cr_assert_eq(cursor_save(home, "taken", uuid, positions, 1), 0);
}

/* Every prefix of a good file, and every harmful bit flip. */
Test(cursor_file, damaged_files_are_refused)
{
	static const char good[] = "kinf-cursor 1\njournal 0123ff000000000000000000000000a0\n"
				   "written 5\nfeed 1 7\nend\n";
	char text[sizeof(good)];

	put_file("c", good);
	cr_assert_eq(load("c"), FOUND);
	for (size_t size = 0; size < sizeof(good) - 2; size++) {
		(void)snprintf(text, sizeof(text), "%.*s", (int)size, good);
		put_file("c", text);
		int r = load("c");
		cr_expect(r == ERR_CORRUPT || r == ERR_FORMAT, "%zu: %d", size, r);
	}
	static const char *const bad[] = {"kinf-cursor 2\nend\n", "kinf-cursor 1\nfeed x 7\nend\n",
		"kinf-cursor 1\nfeed 1 7 8\nend\n", "kinf-cursor 1\njournal 01\nend\n",
		"kinf-cursor 1\njournal zz23ff000000000000000000000000a0\nend\n",
		"kinf-cursor 1\nwhat 1\nend\n", "\n\n",
		"\x7f"
		"ELF"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		put_file("c", bad[i]);
		int r = load("c");
		cr_expect(r == ERR_CORRUPT || r == ERR_FORMAT, "%s: %d", bad[i], r);
	}
}

Test(cursor_file, whatever_lies_in_the_folder_hides_no_cursor, .timeout = 10)
{
	int fd = home_cursors_fd(home);
	char names[200] = "";

	put_file(".two.123", "left behind by a killed follower");
	put_file("damaged", "nothing");
	/* Before and after the good ones in any order of the folder. */
	for (unsigned i = 0; i < 4; i++) {
		char name[40];

		(void)snprintf(name, sizeof(name), "folder-%u", i);
		cr_assert_eq(mkdirat(fd, name, 0700), 0);
		(void)snprintf(name, sizeof(name), "fifo-%u", i);
		cr_assert_eq(mkfifoat(fd, name, 0600), 0);
		(void)snprintf(name, sizeof(name), "link-%u", i);
		cr_assert_eq(symlinkat("one", fd, name), 0);
		(void)snprintf(name, sizeof(name), "backup-%u~", i);
		put_file(name, "kinf-cursor 1\n");
	}
	cr_assert_eq(cursor_save(home, "one", uuid, positions, 1), 0);
	cr_assert_eq(cursor_each(home, count, NULL, names), 0);
	cr_assert_str_eq(names, "one ");
}

Test(cursor_file, the_group_can_read_it_whatever_the_umask_is)
{
	struct stat st;

	(void)umask(077);
	cr_assert_eq(cursor_save(home, "one", uuid, positions, 1), 0);
	cr_assert_eq(fstatat(home_cursors_fd(home), "one", &st, 0), 0);
	cr_assert_eq(st.st_mode & 0777, 0640);
}

static void age_file(const char *name, int64_t seconds)
{
	struct timespec then = {.tv_sec = (int64_t)(proc_realtime_ns() / 1000000000) - seconds};

	cr_assert_eq(utimensat(home_cursors_fd(home), name, (struct timespec[]){then, then}, 0), 0);
}

static unsigned clean(uint64_t expiry_ns)
{
	const struct cursor_keeping keeping = {
		.uuid = uuid, .expiry_ns = expiry_ns, .steady_ns = proc_realtime_ns()};
	unsigned removed;

	OK(cursor_clean(home, &keeping, &removed));
	return removed;
}

static uint64_t least_of(const uint8_t journal[16], uint64_t expiry_ns, uint64_t steady_ns)
{
	const struct cursor_keeping keeping = {
		.uuid = journal, .expiry_ns = expiry_ns, .steady_ns = steady_ns};
	uint64_t least;

	OK(cursor_find_least(home, &keeping, &least));
	return least;
}

Test(cursor_file, what_nobody_comes_back_for_is_swept)
{
	static const struct {
		const char *name;
		int64_t age;
	} files[] = {{"new", 0}, {"expired", 150}, {"forgotten", 250}, {"future", -1000},
		{".new.1", 250}, {".killed.1", 4000}};
	uint64_t expiry = UINT64_C(100) * 1000000000;

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		put_file(files[i].name, "whatever");
		age_file(files[i].name, files[i].age);
	}
	cr_assert_eq(mkdirat(home_cursors_fd(home), "folder", 0700), 0);
	age_file("folder", 4000);
	cr_assert_eq(clean(expiry), 2);
	cr_assert_eq(faccessat(home_cursors_fd(home), "forgotten", F_OK, 0), -1);
	cr_assert_eq(faccessat(home_cursors_fd(home), ".killed.1", F_OK, 0), -1);
	cr_assert_eq(clean(expiry), 0);
}

#define DAY_NS (UINT64_C(24 * 3600) * 1000000000)

Test(cursor_file, the_least_position_of_a_journal_is_found)
{
	static const uint8_t other[16] = {9};
	uint64_t now = proc_realtime_ns();

	cr_assert_eq(least_of(uuid, DAY_NS, now), UINT64_MAX);
	cr_assert_eq(cursor_save(home, "a", uuid, positions, 2), 0);
	cr_assert_eq(cursor_save(home, "b", uuid, positions + 1, 1), 0);
	put_file("bad", "kinf-cursor 1\nrubbish\n");
	cr_assert_eq(least_of(uuid, DAY_NS, now), 7);
	cr_assert_eq(least_of(other, DAY_NS, now), UINT64_MAX);
	cr_assert_eq(cursor_save(home, "a", uuid, &(struct follow_position){1, 9}, 1), 0);
	cr_assert_eq(least_of(uuid, DAY_NS, now), 9);
	cr_assert_eq(cursor_remove(home, "a"), FOUND);
	cr_assert_eq(least_of(uuid, DAY_NS, now), UINT64_MAX - 1);
}

Test(cursor_file, a_cursor_expires_by_both_clocks)
{
	uint64_t now = proc_realtime_ns(), hour = DAY_NS / 24;

	cr_assert_eq(cursor_save(home, "a", uuid, positions, 2), 0);
	(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	cr_assert_eq(least_of(uuid, 1, now + 2 * hour), UINT64_MAX);
	cr_assert_eq(least_of(uuid, hour, now + 2 * hour), 7, "the wall clock was set");
	cr_assert_eq(least_of(uuid, hour, now - 2 * hour), 7, "or the other one begins late");
}

static int count_all(void *arg, const char *name, const struct cursor_file *cursor)
{
	(void)name;
	(void)cursor;
	++*(unsigned *)arg;
	return 0;
}

Test(cursor_file, large_files_of_a_user_count_by_their_size)
{
	static char large[200 << 10];
	unsigned walked = 0;

	memset(large, 0, sizeof(large));
	(void)snprintf(large, sizeof(large), "kinf-cursor 1\nend\n");
	memset(large + strlen(large), '\n', sizeof(large) - 1 - strlen(large));
	for (int i = 0; i < 30; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "c-%d", i);
		put_file(name, large);
	}
	cr_assert_eq(cursor_each(home, count_all, NULL, &walked), 0);
	cr_assert_eq(walked, 20);
}

/* Otherwise a group member could slow down 'kinf status' at will. */
Test(cursor_file, a_walk_opens_no_more_files_of_a_user_than_count)
{
	unsigned walked = 0;

	cr_assert_eq(cursor_save(home, "one", uuid, positions, 1), 0);
	for (int i = 0; i < CURSORS_PER_OWNER + 100; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "c-%d", i);
		cr_assert_eq(
			linkat(home_cursors_fd(home), "one", home_cursors_fd(home), name, 0), 0);
	}
	cr_assert_eq(cursor_each(home, count_all, NULL, &walked), 0);
	cr_assert_eq(walked, CURSORS_PER_OWNER);
}

/* A group member left a link at the temporary name of another user's follower. */
Test(cursor_file, a_link_in_the_way_of_a_temporary_file_is_never_followed)
{
	char name[40], victim[512], text[8] = "";

	put_file("victim", "mine");
	(void)snprintf(victim, sizeof(victim), "%s", scratch_path("store/cursors/victim"));
	(void)snprintf(name, sizeof(name), ".c.%d", (int)getpid());
	cr_assert_eq(symlinkat(victim, home_cursors_fd(home), name), 0);
	cr_assert_eq(symlinkat(victim, home_cursors_fd(home), "c"), 0);
	OK(cursor_save(home, "c", uuid, positions, 1));
	cr_assert_eq(load("c"), FOUND);
	AUTO_FD int fd = openat(home_cursors_fd(home), "victim", O_RDONLY | O_CLOEXEC);
	cr_assert_eq(read(fd, text, sizeof(text)), 4);
	cr_assert_str_eq(text, "mine");
}

#ifdef KINF_FAILPOINTS
Test(cursor_file, a_save_that_fails_leaves_the_old_one_and_no_other)
{
	struct cursor_file cursor;

	cr_assert_eq(cursor_save(home, "c", uuid, positions, 1), 0);
	cr_assert_eq(setenv("KINF_FAIL", "cursor.write:1:error", 1), 0);
	cr_assert_eq(failpoint_setup(), 0);
	cr_assert_lt(cursor_save(home, "c", uuid, positions, 2), 0);
	cr_assert_eq(cursor_load(home, "c", false, &cursor), FOUND);
	cr_assert_eq(cursor.n, 1);
	cursor_release(&cursor);
	DIR *directory = opendir(scratch_path("store/cursors"));
	int files = 0;
	cr_assert(directory);
	for (struct dirent *entry; (entry = readdir(directory));)
		files += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	cr_assert_eq(closedir(directory), 0);
	cr_assert_eq(files, 1);
}
#endif

Test(cursor_file, the_claim_of_a_program_that_has_closed_its_output_is_no_place_to_print_to)
{
	struct cursor_claim claim = {0};
	int output = dup(STDOUT_FILENO);

	(void)close(STDOUT_FILENO);
	int r = cursor_claim(home, "c", &claim);
	bool is_free = fcntl(STDOUT_FILENO, F_GETFD) < 0;
	(void)dup2(output, STDOUT_FILENO);
	(void)close(output);
	cr_assert_eq(r, 0, "%s", err_text(r));
	cr_assert(is_free);
	cursor_unclaim(&claim);
}

/* An ended follower leaves no file and does not block the next one. */
Test(cursor_file, the_claim_of_a_follower_ends_with_its_file)
{
	struct cursor_claim claim = {0}, second = {0};
	struct stat st;

	cr_assert_eq(cursor_claim(home, "c", &claim), 0);
	cr_assert_eq(fstatat(home_cursors_fd(home), ".c.lock", &st, 0), 0);
	cr_assert_eq(st.st_mode & 0777, 0600, "another user could lock it");
	cr_assert_eq(cursor_claim(home, "c", &second), ERR_LOCKED);
	cursor_unclaim(&claim);
	cr_assert_lt(fstatat(home_cursors_fd(home), ".c.lock", &st, 0), 0);
	cr_assert_eq(errno, ENOENT);
	cr_assert_eq(cursor_claim(home, "c", &claim), 0);
	/* The file of another follower stays: this one's was removed. */
	cr_assert_eq(unlinkat(home_cursors_fd(home), ".c.lock", 0), 0);
	cr_assert_eq(cursor_claim(home, "c", &second), 0);
	cursor_unclaim(&claim);
	cr_assert_eq(fstatat(home_cursors_fd(home), ".c.lock", &st, 0), 0);
	cr_assert_eq(cursor_claim(home, "c", &claim), ERR_LOCKED);
	cursor_unclaim(&second);
	cr_assert_lt(fstatat(home_cursors_fd(home), ".c.lock", &st, 0), 0);
}
