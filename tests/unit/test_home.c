/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/home.h"

#include <pthread.h>

#include "tests/unit/home_rig.h"

/* Removes the runtime directory with the store's path and an empty pins/. */
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
	CLEANUP(home_close) struct home *daemon = open_home(true);
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
}

/* A store made by many processes at once. */
struct rush {
	pthread_barrier_t barrier;
	const char *store, *runtime;
};

static void *rush_in(void *arg)
{
	struct rush *rush = arg;
	struct home_options options = {.create = true, .runtime_dir = rush->runtime};
	CLEANUP(home_close) struct home *home = NULL;

	(void)pthread_barrier_wait(&rush->barrier); /* any of them may be told */
	OK(home_open(rush->store, &options, &home));
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

static void *remove_again_and_again(void *arg)
{
	struct rush *rush = arg;
	struct home_options options = {.create = true, .runtime_dir = rush->runtime};

	for (int i = 0; i < 300; i++) {
		struct home *home = NULL;

		OK(home_open(rush->store, &options, &home));
		home_remove_runtime(home);
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
		cr_assert_eq(pthread_create(&threads[i], NULL, remove_again_and_again, &rush), 0);
	for (size_t i = 0; i < 2; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
}

Test(home, missing_store_says_how_one_comes_to_be)
{
	struct home_options options = {0};
	struct home *home = NULL;

	cr_assert_eq(home_open(scratch_path("none"), &options, &home), ERR_NO_STORE);
	cr_assert(strstr(err_text(ERR_NO_STORE), "kinf run"));
	cr_assert_eq(
		home_open(scratch(), &options, &home), ERR_NO_STORE, "a folder that is no store");
	cr_assert_eq(home_open("/dev/null", &options, &home), ERR_NO_STORE);
	cr_assert(strstr(err_text(ERR_NO_STORE), "is no directory"));
}

Test(home, foreign_and_damaged_ids_are_told_apart)
{
	struct home_options options = {0};
	struct home *home = open_home(true);

	home_close(&home);
	scratch_write(scratch_path("a/b/store/id"), "kinf-store 2 0123456789abcdef\n");
	cr_assert_eq(home_open(scratch_path("a/b/store"), &options, &home), ERR_FORMAT);
	scratch_write(scratch_path("a/b/store/id"), "kinf-store 1 0123\n");
	cr_assert_eq(home_open(scratch_path("a/b/store"), &options, &home), ERR_CORRUPT);
	scratch_write(scratch_path("a/b/store/id"), "");
	cr_assert_eq(home_open(scratch_path("a/b/store"), &options, &home), ERR_CORRUPT);
}

/* The daemons took the first line of the path for the directory, did not find it, and ended, again
 * and again. */
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
	CLEANUP(home_close) struct home *home = open_home(true);
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
}

Test(home, reader_that_comes_before_the_runtime_directory_finds_it_later)
{
	CLEANUP(home_close) struct home *daemon = open_home(true);
	char recorded[600], away[600];

	(void)snprintf(recorded, sizeof(recorded), "%s/runtime", home_path(daemon));
	(void)snprintf(away, sizeof(away), "%s/away", home_path(daemon));
	cr_assert_eq(rename(recorded, away), 0);
	CLEANUP(home_close) struct home *reader = open_home(false);
	cr_assert_lt(home_runtime_fd(reader), 0);
	cr_assert_eq(home_reopen(reader), 0);
	cr_assert_lt(home_runtime_fd(reader), 0);
	cr_assert_eq(rename(away, recorded), 0);
	cr_assert_eq(home_reopen(reader), 0);
	cr_assert_geq(home_runtime_fd(reader), 0);
	cr_assert_str_eq(home_runtime(reader), home_runtime(daemon));
}

static ino_t inode_of(int fd)
{
	struct stat st;

	cr_assert_eq(fstat(fd, &st), 0);
	return st.st_ino;
}

Test(home, reader_finds_a_store_that_was_removed_and_made_again)
{
	CLEANUP(home_close) struct home *daemon = open_home(true), *reader = open_home(false);
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
}

/* Moved aside to be examined later: nothing in such a directory tells it from the used one. */
Test(home, reader_leaves_a_directory_that_was_moved_aside)
{
	CLEANUP(home_close) struct home *daemon = open_home(true), *reader = open_home(false);

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
}

Test(home, reader_finds_a_runtime_directory_that_is_elsewhere_now)
{
	CLEANUP(home_close) struct home *daemon = open_home(true), *reader = open_home(false);
	char other[600];

	home_close(&daemon);
	(void)snprintf(other, sizeof(other), "%s", scratch_path("other"));
	cr_assert_eq(mkdir(other, 0700), 0);
	struct home_options options = {.create = true, .runtime_dir = other};
	cr_assert_eq(home_open(scratch_path("a/b/store"), &options, &daemon), 0);
	cr_assert_eq(home_reopen(reader), 0);
	cr_assert_str_eq(home_runtime(reader), home_runtime(daemon));
	cr_assert_eq(inode_of(home_runtime_fd(reader)), inode_of(home_runtime_fd(daemon)));
}

/* Another user can create it before the daemon if all users may write to its parent. */
Test(home, runtime_directory_that_came_back_is_checked_as_well)
{
	CLEANUP(home_close) struct home *daemon = open_home(true), *reader = open_home(false);

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
}

Test(home, a_link_that_is_turned_to_another_store_is_followed)
{
	struct home_options options = {.create = true, .runtime_dir = scratch()};
	CLEANUP(home_close) struct home *other = NULL, *daemon = NULL;

	cr_assert_eq(home_open(scratch_path("one"), &options, &other), 0);
	home_close(&other);
	cr_assert_eq(home_open(scratch_path("two"), &options, &other), 0);
	cr_assert_eq(mkdir(scratch_path("a"), 0700) | mkdir(scratch_path("a/b"), 0700), 0);
	cr_assert_eq(symlink("../../one", scratch_path("a/b/store")), 0);
	daemon = open_home(true);
	CLEANUP(home_close) struct home *reader = open_home(false);
	cr_assert_eq(home_take_role(daemon, HOME_REFLECTOR), 0);
	cr_assert_eq(home_check(daemon), 0);
	cr_assert_str_neq(home_id(reader), home_id(other));
	cr_assert_eq(unlink(scratch_path("a/b/store")), 0);
	cr_assert_eq(symlink("../../two", scratch_path("a/b/store")), 0);
	cr_assert_eq(home_check(daemon), ERR_MOVED);
	cr_assert_eq(home_reopen(reader), 0);
	cr_assert_str_eq(home_id(reader), home_id(other));
}

Test(home, start_makes_directories_that_are_missing)
{
	CLEANUP(home_close) struct home *daemon = open_home(true);

	home_close(&daemon);
	cr_assert_eq(rmdir(scratch_path("a/b/store/index")), 0);
	cr_assert_eq(rmdir(scratch_path("a/b/store/cursors")), 0);
	daemon = open_home(true);
	cr_assert_eq(mode_of(scratch_path("a/b/store/index")), 0700);
	cr_assert_eq(mode_of(scratch_path("a/b/store/cursors")), 0700);
	cr_assert_eq(
		mkdirat(home_index_fd(daemon), "gen-1", 0700), 0, "and the descriptor is its own");
}

Test(home, runtime_folder_of_another_is_not_used)
{
	struct home *home = open_home(true);
	struct home_options options = {0};
	char runtime[256];

	(void)snprintf(runtime, sizeof(runtime), "%s", home_runtime(home));
	cr_assert_eq(home_take_role(home, HOME_PROCESSOR), 0);
	cr_assert_eq(chmod(runtime, 0777), 0);
	struct home *reader = NULL;
	cr_assert_eq(home_open(scratch_path("a/b/store"), &options, &reader), -EPERM);
	cr_assert(strstr(err_text(-EPERM), "--runtime-dir"));
	home_close(&home);
	char lock[300];
	(void)snprintf(lock, sizeof(lock), "%s/processor.lock", runtime);
	cr_assert_eq(unlink(lock), 0);
	/* Without a daemon the runtime directory is not needed: the store may be a copy with
	 * another's in it. */
	cr_assert_eq(home_open(scratch_path("a/b/store"), &options, &reader), 0);
	cr_assert_lt(home_runtime_fd(reader), 0);
	home_close(&reader);
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
	CLEANUP(home_close) struct home *home = NULL;

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
}
