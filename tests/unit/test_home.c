/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/home.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "tests/unit/scratch.h"

static struct home *open_home(bool create)
{
	struct home_options options = {.create = create,
		.runtime_dir = create ? scratch() : NULL};
	struct home *home = NULL;
	int r = home_open(scratch_path("a/b/store"), &options, &home);

	cr_assert_eq(r, 0, "%s", err_text(r));
	return home;
}

static unsigned mode_of(const char *path)
{
	struct stat st;

	cr_assert_eq(stat(path, &st), 0, "%s", path);
	return st.st_mode & 07777;
}

/* Removes the runtime directory, which holds the store's path and an empty pins/. */
static void remove_named_runtime(const char *runtime)
{
	char file[300], pins[300];

	(void)snprintf(file, sizeof(file), "%s/store", runtime);
	cr_assert_eq(unlink(file), 0);
	(void)snprintf(pins, sizeof(pins), "%s/pins", runtime);
	cr_assert_eq(rmdir(pins), 0);
	cr_assert_eq(rmdir(runtime), 0);
}

Test(home, reader_finds_what_a_daemon_made)
{
	struct home *daemon = open_home(true);
	struct home *reader = open_home(false);

	cr_assert_eq(strlen(home_id(daemon)), 16);
	cr_assert_str_eq(home_id(reader), home_id(daemon));
	cr_assert_str_eq(home_path(reader), scratch_path("a/b/store"));
	cr_assert_str_eq(home_runtime(reader), home_runtime(daemon));
	cr_assert(strstr(home_runtime(reader), home_id(daemon)));
	cr_assert_geq(home_runtime_fd(reader), 0);
	cr_assert_geq(home_journal_fd(reader), 0);
	cr_assert_geq(home_index_fd(reader), 0);
	cr_assert_geq(home_cursors_fd(reader), 0);
	cr_assert_eq(home_check_all_pins(reader), 0);
	cr_assert_eq(home_file_mode(reader), 0600);
	cr_assert_eq(mode_of(home_path(reader)), 0700);
	cr_assert_eq(mode_of(home_runtime(reader)), 0700);
	home_close(&reader);
	cr_assert_null(reader);
	home_close(&daemon);
}

/* A store that many make at once. */
struct rush {
	pthread_barrier_t barrier;
	const char *store, *runtime;
};

static void *rush_in(void *arg)
{
	struct rush *rush = arg;
	struct home_options options = {.create = true, .runtime_dir = rush->runtime};
	struct home *home = NULL;

	(void)pthread_barrier_wait(&rush->barrier); /* which of them is told is no matter */
	int r = home_open(rush->store, &options, &home);
	cr_assert_eq(r, 0, "%s", err_text(r));
	home_close(&home);
	return NULL;
}

Test(home, both_daemons_may_make_it_at_once)
{
	for (int round = 0; round < 50; round++) {
		char name[32];
		pthread_t threads[8];
		struct rush rush = {.runtime = scratch()};

		(void)snprintf(name, sizeof(name), "store-%d", round);
		rush.store = scratch_path(name);
		cr_assert_eq(pthread_barrier_init(&rush.barrier, NULL, 8), 0);
		for (size_t i = 0; i < 8; i++)
			cr_assert_eq(pthread_create(&threads[i], NULL, rush_in, &rush), 0);
		for (size_t i = 0; i < 8; i++)
			cr_assert_eq(pthread_join(threads[i], NULL), 0);
		cr_assert_eq(pthread_barrier_destroy(&rush.barrier), 0);
	}
}

static void *retire_again_and_again(void *arg)
{
	struct rush *rush = arg;
	struct home_options options = {.create = true, .runtime_dir = rush->runtime};

	for (int i = 0; i < 300; i++) {
		struct home *home = NULL;

		int r = home_open(rush->store, &options, &home);
		cr_assert_eq(r, 0, "%s", err_text(r));
		home_retire(home);
		home_close(&home);
	}
	return NULL;
}

/* One daemon ends, and removes the runtime directory, while the other one starts, and makes it. */
Test(home, runtime_directory_that_goes_while_it_is_made_is_made_again)
{
	struct rush rush = {.store = scratch_path("store"), .runtime = scratch()};
	pthread_t threads[2];

	for (size_t i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, retire_again_and_again, &rush), 0);
	for (size_t i = 0; i < 2; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
}

Test(home, id_stays)
{
	struct home *home = open_home(true);
	char id[17];

	memcpy(id, home_id(home), sizeof(id));
	home_close(&home);
	home = open_home(true);
	cr_assert_str_eq(home_id(home), id);
	home_close(&home);
}

Test(home, missing_store_says_how_one_comes_to_be)
{
	struct home_options options = {0};
	struct home *home = NULL;

	cr_assert_eq(home_open(scratch_path("none"), &options, &home), ERR_NO_STORE);
	cr_assert(strstr(err_text(ERR_NO_STORE), "kinf run"));
	cr_assert_eq(home_open(scratch(), &options, &home), ERR_NO_STORE, "a folder that is no store");
	cr_assert_eq(home_open("/dev/null", &options, &home), ERR_NO_STORE);
	cr_assert(strstr(err_text(ERR_NO_STORE), "is no directory"));
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	cr_assert_not_null(file);
	(void)fputs(text, file);
	(void)fclose(file);
}

Test(home, foreign_and_damaged_ids_are_told_apart)
{
	struct home_options options = {0};
	struct home *home = open_home(true);

	home_close(&home);
	write_file(scratch_path("a/b/store/id"), "kinf-store 2 0123456789abcdef\n");
	cr_assert_eq(home_open(scratch_path("a/b/store"), &options, &home), ERR_FORMAT);
	write_file(scratch_path("a/b/store/id"), "kinf-store 1 0123\n");
	cr_assert_eq(home_open(scratch_path("a/b/store"), &options, &home), ERR_CORRUPT);
	write_file(scratch_path("a/b/store/id"), "");
	cr_assert_eq(home_open(scratch_path("a/b/store"), &options, &home), ERR_CORRUPT);
}

/* The daemons took the first line of the path for the directory, found that it was not there, and ended, again and again. */
Test(home, paths_with_a_line_break_are_refused)
{
	struct home_options options = {.create = true, .runtime_dir = scratch()};
	char runtime[300];
	struct home *home = NULL;

	cr_assert_eq(home_open(scratch_path("line\nbreak"), &options, &home), ERR_CONFIG);
	cr_assert_not_null(strstr(err_text(ERR_CONFIG), "line break"));
	(void)snprintf(runtime, sizeof(runtime), "%s/line\nbreak", scratch());
	options.runtime_dir = runtime;
	cr_assert_eq(home_open(scratch_path("store"), &options, &home), ERR_CONFIG);
}

Test(home, lost_runtime_folder_is_made_again)
{
	struct home *home = open_home(true);
	char runtime[256];

	(void)snprintf(runtime, sizeof(runtime), "%s", home_runtime(home));
	home_close(&home);
	remove_named_runtime(runtime);
	home = open_home(false);
	cr_assert_str_eq(home_runtime(home), "");
	cr_assert_eq(home_runtime_fd(home), -1);
	home_close(&home);
	struct home_options options = {.create = true};
	cr_assert_eq(home_open(scratch_path("a/b/store"), &options, &home), 0);
	cr_assert_str_eq(home_runtime(home), runtime);
	cr_assert_geq(home_runtime_fd(home), 0);
	home_close(&home);
}

Test(home, reader_that_comes_before_the_runtime_directory_finds_it_later)
{
	struct home *daemon = open_home(true);
	char recorded[600], away[600];

	(void)snprintf(recorded, sizeof(recorded), "%s/runtime", home_path(daemon));
	(void)snprintf(away, sizeof(away), "%s/away", home_path(daemon));
	cr_assert_eq(rename(recorded, away), 0);
	struct home *reader = open_home(false);
	cr_assert_lt(home_runtime_fd(reader), 0);
	cr_assert_eq(home_reopen(reader), 0);
	cr_assert_lt(home_runtime_fd(reader), 0);
	cr_assert_eq(rename(away, recorded), 0);
	cr_assert_eq(home_reopen(reader), 0);
	cr_assert_geq(home_runtime_fd(reader), 0);
	cr_assert_str_eq(home_runtime(reader), home_runtime(daemon));
	home_close(&reader);
	home_close(&daemon);
}

static ino_t inode_of(int fd)
{
	struct stat st;

	cr_assert_eq(fstat(fd, &st), 0);
	return st.st_ino;
}

Test(home, reader_finds_a_store_that_was_removed_and_made_again)
{
	struct home *daemon = open_home(true), *reader = open_home(false);
	int fds[] = {home_fd(reader), home_journal_fd(reader), home_index_fd(reader),
		home_cursors_fd(reader), home_runtime_fd(reader)};

	char before[17];

	memcpy(before, home_id(reader), sizeof(before));
	home_close(&daemon);
	scratch_remove(scratch_path("a/b/store"));
	cr_assert_eq(home_reopen(reader), ERR_NO_STORE);
	cr_assert_str_eq(home_id(reader), before, "none is there: as it was");
	daemon = open_home(true);
	cr_assert_str_neq(home_id(reader), home_id(daemon));
	cr_assert_eq(home_reopen(reader), 0);
	cr_assert_str_eq(home_id(reader), home_id(daemon));
	cr_assert_str_eq(home_runtime(reader), home_runtime(daemon));
	cr_assert_eq(home_fd(reader), fds[0], "others know the descriptors");
	cr_assert_eq(home_runtime_fd(reader), fds[4]);
	cr_assert_eq(inode_of(fds[0]), inode_of(home_fd(daemon)));
	cr_assert_eq(inode_of(fds[1]), inode_of(home_journal_fd(daemon)));
	cr_assert_eq(inode_of(fds[2]), inode_of(home_index_fd(daemon)));
	cr_assert_eq(inode_of(fds[3]), inode_of(home_cursors_fd(daemon)));
	cr_assert_eq(inode_of(fds[4]), inode_of(home_runtime_fd(daemon)));
	home_close(&reader);
	home_close(&daemon);
}

/* Moved aside to be examined later: nothing in such a directory says that it is not the one in use. */
Test(home, reader_leaves_a_directory_that_was_moved_aside)
{
	struct home *daemon = open_home(true), *reader = open_home(false);

	cr_assert_eq(rename(scratch_path("a/b/store/index"), scratch_path("a/b/index")), 0);
	cr_assert_eq(home_reopen(reader), 0, "there is no other yet");
	cr_assert_eq(home_check(daemon), ERR_MOVED);
	home_close(&daemon);
	daemon = open_home(true);
	cr_assert_eq(home_reopen(reader), 0);
	cr_assert_eq(inode_of(home_index_fd(reader)), inode_of(home_index_fd(daemon)));
	home_close(&daemon);
	cr_assert_eq(rename(scratch_path("a/b/store"), scratch_path("a/b/old")), 0);
	cr_assert_eq(home_reopen(reader), ERR_NO_STORE);
	daemon = open_home(true);
	cr_assert_eq(home_reopen(reader), 0);
	cr_assert_str_eq(home_id(reader), home_id(daemon));
	cr_assert_eq(inode_of(home_index_fd(reader)), inode_of(home_index_fd(daemon)));
	home_close(&reader);
	home_close(&daemon);
}

static void remove_runtime(const struct home *home)
{
	scratch_remove(home_runtime(home));
}

/* The runtime directory disappears: its login session ends, or a user removes it. */
Test(home, daemon_that_starts_again_makes_the_runtime_directory)
{
	struct home *daemon = open_home(true), *reader = open_home(false);
	int known = home_runtime_fd(reader);

	remove_runtime(daemon);
	cr_assert_eq(home_check(daemon), ERR_MOVED);
	home_close(&daemon);
	daemon = open_home(true);
	cr_assert_eq(mode_of(home_runtime(daemon)), 0700);
	cr_assert_eq(home_reopen(reader), 0);
	cr_assert_eq(home_runtime_fd(reader), known, "other threads know the descriptor");
	cr_assert_eq(inode_of(known), inode_of(home_runtime_fd(daemon)));
	home_close(&reader);
	home_close(&daemon);
}

Test(home, reader_finds_a_runtime_directory_that_is_elsewhere_now)
{
	struct home *daemon = open_home(true), *reader = open_home(false);
	char other[600];

	home_close(&daemon);
	(void)snprintf(other, sizeof(other), "%s", scratch_path("other"));
	cr_assert_eq(mkdir(other, 0700), 0);
	struct home_options options = {.create = true, .runtime_dir = other};
	cr_assert_eq(home_open(scratch_path("a/b/store"), &options, &daemon), 0);
	cr_assert_eq(home_reopen(reader), 0);
	cr_assert_str_eq(home_runtime(reader), home_runtime(daemon));
	cr_assert_eq(inode_of(home_runtime_fd(reader)), inode_of(home_runtime_fd(daemon)));
	home_close(&reader);
	home_close(&daemon);
}

/* In a directory to which all users may write, another user can make it before the daemon does. */
Test(home, runtime_directory_that_came_back_is_checked_as_well)
{
	struct home *daemon = open_home(true), *reader = open_home(false);
	ino_t before = inode_of(home_runtime_fd(reader));

	cr_assert_eq(home_take_role(daemon, HOME_REFLECTOR), 0);
	remove_runtime(daemon);
	cr_assert_eq(mkdir(scratch_path("mine"), 0700), 0);
	cr_assert_eq(symlink(scratch_path("mine"), home_runtime(daemon)), 0);
	cr_assert_lt(home_reopen(reader), 0);
	cr_assert_eq(home_check(daemon), ERR_MOVED);
	cr_assert_eq(inode_of(home_runtime_fd(reader)), before, "a link");
	cr_assert_eq(unlink(home_runtime(daemon)), 0);
	cr_assert_eq(mkdir(home_runtime(daemon), 0700), 0);
	cr_assert_eq(chmod(home_runtime(daemon), 0777), 0);
	cr_assert_lt(home_reopen(reader), 0);
	cr_assert_eq(home_check(daemon), ERR_MOVED);
	cr_assert_eq(inode_of(home_runtime_fd(reader)), before, "others may write it");
	home_close(&reader);
	home_close(&daemon);
}

Test(home, a_link_that_is_turned_to_another_store_is_followed)
{
	struct home_options options = {.create = true, .runtime_dir = scratch()};
	struct home *other = NULL, *daemon = NULL;

	cr_assert_eq(home_open(scratch_path("one"), &options, &other), 0);
	home_close(&other);
	cr_assert_eq(home_open(scratch_path("two"), &options, &other), 0);
	cr_assert_eq(mkdir(scratch_path("a"), 0700) | mkdir(scratch_path("a/b"), 0700), 0);
	cr_assert_eq(symlink("../../one", scratch_path("a/b/store")), 0);
	daemon = open_home(true);
	struct home *reader = open_home(false);
	cr_assert_eq(home_take_role(daemon, HOME_REFLECTOR), 0);
	cr_assert_eq(home_check(daemon), 0);
	cr_assert_str_neq(home_id(reader), home_id(other));
	cr_assert_eq(unlink(scratch_path("a/b/store")), 0);
	cr_assert_eq(symlink("../../two", scratch_path("a/b/store")), 0);
	cr_assert_eq(home_check(daemon), ERR_MOVED);
	cr_assert_eq(home_reopen(reader), 0);
	cr_assert_str_eq(home_id(reader), home_id(other));
	home_close(&reader);
	home_close(&daemon);
	home_close(&other);
}

/* Under another inode than the one it replaces, which is still open. */
static void make_guarded(int runtime_fd)
{
	cr_assert_eq(mkfifoat(runtime_fd, "guarded.new", 0600), 0);
	cr_assert_eq(renameat(runtime_fd, "guarded.new", runtime_fd, "guarded"), 0);
}

/* Returns what home_check() of a daemon that holds a role says after DO_HARM. */
static int check_after(void (*do_harm)(void))
{
	struct home *daemon = open_home(true);

	cr_assert_eq(home_take_role(daemon, HOME_REFLECTOR), 0);
	make_guarded(home_runtime_fd(daemon));
	home_guard_file(daemon, "guarded");
	cr_assert_eq(home_check(daemon), 0);
	do_harm();
	int r = home_check(daemon);
	cr_assert(!r || strstr(err_text(r), home_path(daemon)), "%s", err_text(r));
	home_close(&daemon);
	return r;
}

static void remove_store(void)
{
	scratch_remove(scratch_path("a/b/store"));
}

static void move_store(void)
{
	cr_assert_eq(rename(scratch_path("a/b/store"), scratch_path("a/b/old")), 0);
}

static void replace_store(void)
{
	move_store();
	scratch_copy(scratch_path("a/b/old"), scratch_path("a/b/store"));
}

static void remove_id(void)
{
	cr_assert_eq(unlink(scratch_path("a/b/store/id")), 0);
}

static void replace_id(void)
{
	write_file(scratch_path("a/b/store/id.new"), "kinf-store 1 0123456789abcdef\n");
	cr_assert_eq(rename(scratch_path("a/b/store/id.new"), scratch_path("a/b/store/id")), 0);
}

static void remove_lock(void)
{
	cr_assert_eq(unlink(scratch_path("a/b/store/reflector.lock")), 0);
}

static void remove_journal(void)
{
	cr_assert_eq(rmdir(scratch_path("a/b/store/journal")), 0);
}

static void replace_index(void)
{
	cr_assert_eq(rmdir(scratch_path("a/b/store/index")), 0);
	cr_assert_eq(mkdir(scratch_path("a/b/store/index"), 0700), 0);
}

static void remove_cursors(void)
{
	cr_assert_eq(rmdir(scratch_path("a/b/store/cursors")), 0);
}

static void remove_record(void)
{
	cr_assert_eq(unlink(scratch_path("a/b/store/runtime")), 0);
}

static void in_runtime(void (*fn)(int runtime_fd))
{
	struct home *other = open_home(false);

	fn(home_runtime_fd(other));
	home_close(&other);
}

static void remove_runtime_lock_at(int runtime_fd)
{
	cr_assert_eq(unlinkat(runtime_fd, "reflector.lock", 0), 0);
}

static void remove_runtime_lock(void)
{
	in_runtime(remove_runtime_lock_at);
}

static void remove_guarded_at(int runtime_fd)
{
	cr_assert_eq(unlinkat(runtime_fd, "guarded", 0), 0);
}

static void remove_guarded(void)
{
	in_runtime(remove_guarded_at);
}

static void replace_guarded(void)
{
	in_runtime(make_guarded);
}

static void remove_whole_runtime(void)
{
	struct home *other = open_home(false);

	remove_runtime(other);
	home_close(&other);
}

static void remove_others_lock(void)
{
	struct home *other = open_home(true);

	cr_assert_eq(home_take_role(other, HOME_PROCESSOR), 0);
	cr_assert_eq(unlink(scratch_path("a/b/store/processor.lock")), 0);
	home_close(&other);
}

Test(home, check_names_what_was_removed_or_replaced_under_a_daemon)
{
	const struct {
		void (*do_harm)(void);
		const char *named;
	} harms[] = {{remove_store, "b/store' was removed"}, {move_store, "b/store' was removed"},
		{replace_store, "b/store' was removed"}, {remove_id, "'id'"},
		{replace_id, "'id'"}, {remove_lock, "'reflector.lock'"}, {remove_journal, "'journal'"},
		{replace_index, "'index'"}, {remove_cursors, "'cursors'"}, {remove_record, "'runtime'"},
		{remove_whole_runtime, "/kinf-"}, {remove_runtime_lock, "'reflector.lock'"},
		{remove_guarded, "'guarded'"}, {replace_guarded, "'guarded'"}};

	for (size_t i = 0; i < sizeof(harms) / sizeof(*harms); i++) {
		cr_assert_eq(check_after(harms[i].do_harm), ERR_MOVED, "harm %zu", i);
		cr_assert(strstr(err_text(ERR_MOVED), harms[i].named), "%s", err_text(ERR_MOVED));
		scratch_remove(scratch_path("a"));
	}
	cr_assert_eq(check_after(remove_others_lock), 0, "the other daemon will notice");
}

Test(home, file_that_is_made_again_is_guarded_again)
{
	struct home *daemon = open_home(true);

	make_guarded(home_runtime_fd(daemon));
	home_guard_file(daemon, "guarded");
	replace_guarded();
	cr_assert_eq(home_check(daemon), ERR_MOVED);
	home_guard_file(daemon, "guarded");
	cr_assert_eq(home_check(daemon), 0);
	home_close(&daemon);
}

Test(home, start_makes_directories_that_are_missing)
{
	struct home *daemon = open_home(true);

	home_close(&daemon);
	cr_assert_eq(rmdir(scratch_path("a/b/store/index")), 0);
	remove_cursors();
	daemon = open_home(true);
	cr_assert_eq(mode_of(scratch_path("a/b/store/index")), 0700);
	cr_assert_eq(mode_of(scratch_path("a/b/store/cursors")), 0700);
	cr_assert_eq(mkdirat(home_index_fd(daemon), "gen-1", 0700), 0, "and the descriptor is its own");
	home_close(&daemon);
}

Test(home, runtime_folder_of_another_is_not_used)
{
	struct home *home = open_home(true);
	struct home_options options = {0};
	char runtime[256];

	(void)snprintf(runtime, sizeof(runtime), "%s", home_runtime(home));
	home_close(&home);
	cr_assert_eq(chmod(runtime, 0777), 0);
	cr_assert_eq(home_open(scratch_path("a/b/store"), &options, &home), -EPERM);
	cr_assert(strstr(err_text(-EPERM), "--runtime-dir"));
	options.create = true;
	cr_assert_eq(home_open(scratch_path("a/b/store"), &options, &home), -EPERM);
	remove_named_runtime(runtime);
	cr_assert_eq(mkdir(scratch_path("elsewhere"), 0700), 0);
	cr_assert_eq(symlink(scratch_path("elsewhere"), runtime), 0);
	cr_assert_lt(home_open(scratch_path("a/b/store"), &options, &home), 0);
}

Test(home, group_may_read_and_leave_cursors)
{
	struct home_options options = {.create = true, .group = "root"};
	struct home *home = NULL;

	if (geteuid() != 0)
		options.group = "nogroup-of-ours"; /* giving away needs root: only the refusal */
	int r = home_open(scratch_path("shared"), &options, &home);
	if (geteuid() != 0) {
		cr_assert_eq(r, ERR_CONFIG);
		return;
	}
	cr_assert_eq(r, 0, "%s", err_text(r));
	cr_assert_eq(mode_of(scratch_path("shared")), 02750);
	cr_assert_eq(mode_of(scratch_path("shared/journal")), 02750);
	cr_assert_eq(mode_of(scratch_path("shared/cursors")), 03770);
	cr_assert_eq(home_file_mode(home), 0640);
	home_close(&home);
	options.create = false;
	cr_assert_eq(home_open(scratch_path("shared"), &options, &home), 0);
	cr_assert_eq(home_file_mode(home), 0640);
	home_close(&home);
}

Test(home, a_copy_does_not_run_in_the_runtime_folder_of_a_store_that_does)
{
	struct home_options options = {.create = true, .runtime_dir = scratch()};
	struct home *original = open_home(true), *copy = NULL;

	cr_assert_eq(home_take_role(original, HOME_REFLECTOR), 0);
	scratch_copy(scratch_path("a/b/store"), scratch_path("copy"));
	cr_assert_eq(home_open(scratch_path("copy"), &options, &copy), 0);
	cr_assert_str_eq(home_runtime(copy), home_runtime(original));
	cr_assert_eq(home_take_role(copy, HOME_REFLECTOR), ERR_LOCKED);
	cr_assert(strstr(err_text(ERR_LOCKED), "file 'id' in the copy"), "%s", err_text(ERR_LOCKED));
	cr_assert_eq(home_role_holder(copy, HOME_REFLECTOR), 0, "nor has it the role in the store");
	home_close(&copy);
	cr_assert_eq(unlink(scratch_path("copy/id")), 0);
	cr_assert_eq(home_open(scratch_path("copy"), &options, &copy), 0);
	cr_assert_str_neq(home_runtime(copy), home_runtime(original));
	cr_assert_eq(home_take_role(copy, HOME_REFLECTOR), 0);
	home_close(&copy);
	home_close(&original);
}

Test(home, runtime_directory_made_again_is_locked_again)
{
	struct home_options options = {.create = true, .runtime_dir = scratch()};
	struct home *original = open_home(true), *copy = NULL;

	scratch_copy(scratch_path("a/b/store"), scratch_path("copy"));
	remove_runtime(original);
	home_close(&original);
	original = open_home(true);
	cr_assert_eq(home_take_role(original, HOME_PROCESSOR), 0);
	cr_assert_eq(home_open(scratch_path("copy"), &options, &copy), 0);
	cr_assert_eq(home_take_role(copy, HOME_PROCESSOR), ERR_LOCKED);
	home_close(&original);
	cr_assert_eq(home_take_role(copy, HOME_PROCESSOR), 0, "and its end frees it");
	home_close(&copy);
}

Test(home, no_role_runs_twice)
{
	struct home *home = open_home(true);

	cr_assert_eq(home_role_holder(home, HOME_REFLECTOR), 0);
	cr_assert_eq(home_take_role(home, HOME_REFLECTOR), 0);
	cr_assert_eq(home_role_holder(home, HOME_REFLECTOR), getpid());
	cr_assert_eq(home_role_holder(home, HOME_PROCESSOR), 0);
	pid_t child = fork();
	if (child == 0) {
		struct home *mine = open_home(true);
		bool good = home_take_role(mine, HOME_REFLECTOR) == ERR_LOCKED;
		good = good && strstr(err_text(ERR_LOCKED), "process") &&
			home_role_holder(mine, HOME_REFLECTOR) == getppid() &&
			home_take_role(mine, HOME_PROCESSOR) == 0;
		_exit(good ? 0 : 1);
	}
	int status;
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	cr_assert_eq(home_role_holder(home, HOME_PROCESSOR), 0, "it died with its role");
	home_close(&home);
	home = open_home(false);
	cr_assert_eq(home_role_holder(home, HOME_REFLECTOR), 0);
	home_close(&home);
}

static void overwrite(const char *path, const char *text)
{
	int fd = open(scratch_path(path), O_WRONLY | O_TRUNC | O_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	cr_assert_eq(close(fd), 0);
}

/* Daemons ended with "the id file is damaged" at each start. */
Test(home, a_damaged_id_is_written_again)
{
	struct home_options options = {.create = true, .runtime_dir = scratch()};
	struct home *home = open_home(true);
	char id[32];

	(void)snprintf(id, sizeof(id), "%s", home_id(home));
	home_close(&home);
	overwrite("a/b/store/id", "kinf-store 1 0123456789abcde!\n");
	cr_assert_eq(home_open(scratch_path("a/b/store"), &(struct home_options){0}, &home), ERR_CORRUPT);
	home = open_home(true);
	cr_assert_str_eq(home_id(home), id, "as its runtime directory is named");
	home_close(&home);
	cr_assert_eq(unlink(scratch_path("a/b/store/runtime")), 0);
	overwrite("a/b/store/id", "kinf-store 1 \n");
	home = open_home(true);
	cr_assert_eq(strlen(home_id(home)), 16);
	home_close(&home);
	overwrite("a/b/store/id", "kinf-store 2 0123456789abcdef\n");
	cr_assert_eq(home_open(scratch_path("a/b/store"), &options, &home), ERR_FORMAT, "another version's");
}

/* ---- locks of others ---- */

static int open_for_reading(const char *path)
{
	int fd = open(scratch_path(path), O_RDONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0);
	return fd;
}

/* A member of the group may open the store's directory, and so lock it. Both daemons waited for ever. */
Test(home, a_lock_on_the_directory_stops_no_daemon, .timeout = 20)
{
	struct home *home = open_home(true);

	home_close(&home);
	AUTO_FD int fd = open_for_reading("a/b/store");
	cr_assert_eq(flock(fd, LOCK_SH), 0);
	home = open_home(true);
	cr_assert_eq(home_take_role(home, HOME_REFLECTOR), 0);
	home_close(&home);
}

static void read_lock(int fd)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	cr_assert_eq(fcntl(fd, F_OFD_SETLK, &lock), 0);
}

/* A member's read lock, waiting for the end of the daemon, kept its successor out. */
Test(home, a_read_lock_of_a_member_keeps_no_daemon_out_and_shows_none)
{
	struct home *home = open_home(true), *reader;

	cr_assert_eq(home_take_role(home, HOME_REFLECTOR), 0);
	AUTO_FD int fd = open_for_reading("a/b/store/reflector.lock");
	home_close(&home);
	read_lock(fd);
	home = open_home(true);
	reader = open_home(false);
	cr_assert_eq(home_role_holder(reader, HOME_REFLECTOR), 0, "a read lock is no daemon");
	cr_assert_eq(home_take_role(home, HOME_REFLECTOR), 0, "%s", err_text(-1));
	cr_assert_eq(home_role_holder(reader, HOME_REFLECTOR), getpid());
	home_close(&reader);
	home_close(&home);
	cr_assert_eq(mode_of(scratch_path("a/b/store/reflector.owner")), 0600);
	cr_assert_eq(mode_of(scratch_path("a/b/store/making.lock")), 0600);
}

Test(home, only_the_owner_can_open_the_locks_that_keep_daemons_out)
{
	char memory[1024], group_name[64];
	struct group entry, *found;

	cr_assert_eq(getgrgid_r(getegid(), &entry, memory, sizeof(memory), &found), 0);
	(void)snprintf(group_name, sizeof(group_name), "%s", entry.gr_name);
	struct home_options options = {.create = true, .runtime_dir = scratch(), .group = group_name};
	struct home *home;
	cr_assert_eq(home_open(scratch_path("shared"), &options, &home), 0);
	cr_assert_eq(home_take_role(home, HOME_PROCESSOR), 0);
	cr_assert_eq(mode_of(scratch_path("shared/processor.owner")), 0600);
	cr_assert_eq(mode_of(scratch_path("shared/making.lock")), 0600);
	cr_assert_eq(mode_of(scratch_path("shared/processor.lock")), 0640);
	home_close(&home);
}
