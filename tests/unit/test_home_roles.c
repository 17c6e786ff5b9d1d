/* SPDX-License-Identifier: Apache-2.0 */
/* Roles of daemons, and the locks of other processes. */
#include <grp.h>
#include <sys/file.h>

#include "tests/unit/home_rig.h"

Test(home_roles, a_copy_does_not_run_in_the_runtime_folder_of_a_store_that_does)
{
	struct home_options options = {.create = true, .runtime_dir = scratch()};
	CLEANUP(home_close) struct home *original = open_home(true), *copy = NULL;

	cr_assert_eq(home_take_role(original, HOME_REFLECTOR), 0);
	scratch_copy(scratch_path("a/b/store"), scratch_path("copy"));
	cr_assert_eq(home_open(scratch_path("copy"), &options, &copy), 0);
	cr_assert_str_eq(home_runtime(copy), home_runtime(original));
	cr_assert_eq(home_take_role(copy, HOME_REFLECTOR), ERR_LOCKED);
	cr_assert(
		strstr(err_text(ERR_LOCKED), "file 'id' in the copy"), "%s", err_text(ERR_LOCKED));
	cr_assert_eq(home_role_holder(copy, HOME_REFLECTOR), 0, "nor has it the role in the store");
	home_close(&copy);
	cr_assert_eq(unlink(scratch_path("copy/id")), 0);
	cr_assert_eq(home_open(scratch_path("copy"), &options, &copy), 0);
	cr_assert_str_neq(home_runtime(copy), home_runtime(original));
	cr_assert_eq(home_take_role(copy, HOME_REFLECTOR), 0);
}

/* Its reader would take the rings and sockets there for those of the copy. */
Test(home_roles, a_reader_of_a_copy_uses_no_directory_that_names_the_original)
{
	struct home_options daemon = {.create = true, .runtime_dir = scratch()}, none = {0};
	struct home *original = open_home(true), *copy = NULL;

	cr_assert_eq(home_take_role(original, HOME_PROCESSOR), 0);
	scratch_copy(scratch_path("a/b/store"), scratch_path("copy"));
	cr_assert_eq(home_open(scratch_path("copy"), &none, &copy), 0);
	cr_expect_lt(home_runtime_fd(copy), 0);
	/* The original is killed, and a daemon of the copy takes the directory. */
	home_close(&original);
	cr_assert_eq(home_reopen(copy), 0);
	cr_expect_lt(home_runtime_fd(copy), 0);
	cr_assert_eq(home_open(scratch_path("copy"), &daemon, &original), 0);
	cr_assert_eq(home_take_role(original, HOME_PROCESSOR), 0);
	cr_assert_eq(home_reopen(copy), 0);
	cr_expect_geq(home_runtime_fd(copy), 0);
	home_close(&copy);
	home_close(&original);
	cr_assert_eq(home_open(scratch_path("copy"), &none, &copy), 0);
	cr_expect_geq(home_runtime_fd(copy), 0, "it is the copy's now");
	home_close(&copy);
}

Test(home_roles, a_daemon_of_a_copy_that_is_refused_leaves_the_directory_as_it_is)
{
	struct home_options daemon = {.create = true, .runtime_dir = scratch()}, none = {0};
	struct home *original = open_home(true), *copy = NULL, *reader = NULL;

	cr_assert_eq(home_take_role(original, HOME_PROCESSOR), 0);
	scratch_copy(scratch_path("a/b/store"), scratch_path("copy"));
	cr_assert_eq(home_open(scratch_path("copy"), &daemon, &copy), 0);
	cr_assert_eq(home_take_role(copy, HOME_PROCESSOR), ERR_LOCKED);
	home_close(&copy);
	home_close(&original);
	reader = open_home(false);
	cr_expect_geq(home_runtime_fd(reader), 0);
	home_close(&reader);
	cr_assert_eq(home_open(scratch_path("copy"), &none, &reader), 0);
	cr_expect_lt(home_runtime_fd(reader), 0);
	home_close(&reader);
}

Test(home_roles, runtime_directory_made_again_is_locked_again)
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

Test(home_roles, no_role_runs_twice)
{
	CLEANUP(home_close) struct home *home = open_home(true);

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
}

/* ---- locks of others ---------------------------------------------------- */

static int open_for_reading(const char *path)
{
	int fd = open(scratch_path(path), O_RDONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0);
	return fd;
}

/* A member of the group may open the store's directory, and so lock it. Both daemons waited for
 * ever. */
Test(home_roles, a_lock_on_the_directory_stops_no_daemon, .timeout = 20)
{
	CLEANUP(home_close) struct home *home = open_home(true);

	home_close(&home);
	AUTO_FD int fd = open_for_reading("a/b/store");
	cr_assert_eq(flock(fd, LOCK_SH), 0);
	home = open_home(true);
	cr_assert_eq(home_take_role(home, HOME_REFLECTOR), 0);
}

static void read_lock(int fd)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	cr_assert_eq(fcntl(fd, F_OFD_SETLK, &lock), 0);
}

/* A member's read lock, waiting for the end of the daemon, kept its successor out. */
Test(home_roles, a_read_lock_of_a_member_keeps_no_daemon_out_and_shows_none)
{
	struct home *home = open_home(true), *reader;

	cr_assert_eq(home_take_role(home, HOME_REFLECTOR), 0);
	AUTO_FD int fd = open_for_reading("a/b/store/reflector.lock");
	home_close(&home);
	read_lock(fd);
	home = open_home(true);
	reader = open_home(false);
	cr_assert_eq(home_role_holder(reader, HOME_REFLECTOR), 0, "a read lock is no daemon");
	OK(home_take_role(home, HOME_REFLECTOR));
	cr_assert_eq(home_role_holder(reader, HOME_REFLECTOR), getpid());
	home_close(&reader);
	home_close(&home);
	cr_assert_eq(mode_of(scratch_path("a/b/store/reflector.owner")), 0600);
	cr_assert_eq(mode_of(scratch_path("a/b/store/making.lock")), 0600);
}

Test(home_roles, only_the_owner_can_open_the_locks_that_keep_daemons_out)
{
	char memory[1024], group_name[64];
	struct group entry, *found;

	cr_assert_eq(getgrgid_r(getegid(), &entry, memory, sizeof(memory), &found), 0);
	(void)snprintf(group_name, sizeof(group_name), "%s", entry.gr_name);
	struct home_options options = {
		.create = true, .runtime_dir = scratch(), .group = group_name};
	CLEANUP(home_close) struct home *home = NULL;
	cr_assert_eq(home_open(scratch_path("shared"), &options, &home), 0);
	cr_assert_eq(home_take_role(home, HOME_PROCESSOR), 0);
	cr_assert_eq(mode_of(scratch_path("shared/processor.owner")), 0600);
	cr_assert_eq(mode_of(scratch_path("shared/making.lock")), 0600);
	cr_assert_eq(mode_of(scratch_path("shared/processor.lock")), 0640);
}
