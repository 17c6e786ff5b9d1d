/* SPDX-License-Identifier: Apache-2.0 */
/* Pins of other users' readers, and files the writer must not trust. */
#include <dirent.h>
#include <grp.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "tests/unit/pins_rig.h"

#define OTHER 65534

TestSuite(pins, .init = setup, .fini = teardown, .timeout = 60);

/* ---- other users -------------------------------------------------------- */

static int files_in(const char *path)
{
	DIR *directory = opendir(path);
	int n = 0;

	for (struct dirent *entry; (entry = readdir(directory));)
		n += entry->d_name[0] != '.';
	(void)closedir(directory);
	return n;
}

/* Makes all files as with a reader group with OTHER in it. Only root can. */
static void share_with_group(void)
{
	cr_assert_eq(chmod(scratch(), 0755), 0);
	cr_assert_eq(chown(places.path[0], 0, OTHER), 0);
	cr_assert_eq(chmod(places.path[0], 03770), 0);
	cr_assert_eq(chown(scratch_path("e"), 0, OTHER), 0);
	cr_assert_eq(chmod(scratch_path("e"), 02750), 0);
}

/* In a child: becomes a member of the group, and runs BODY. */
#define AS_MEMBER(...) \
	do { \
		pid_t pid_ = fork(); \
		if (pid_ == 0) { \
			gid_t group_ = OTHER; \
			if (setgroups(1, &group_) < 0 || setgid(OTHER) < 0 || setuid(OTHER) < 0) \
				_exit(9); \
			__VA_ARGS__; \
			_exit(0); \
		} \
		int status_; \
		cr_assert_eq(waitpid(pid_, &status_, 0), pid_); \
		cr_assert(WIFEXITED(status_) && WEXITSTATUS(status_) == 0, "exit %d", \
			WEXITSTATUS(status_)); \
	} while (0)

Test(pins, member_of_the_group_can_neither_open_the_lock_file_nor_hold_a_dead_readers_place)
{
	struct child child = start();
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	if (geteuid() != 0) {
		cr_assert_neq(access("/", W_OK), 0, "another uid takes root");
		end(&child, SIGTERM);
		return;
	}
	share_with_group();
	setup_writer();
	cr_assert_eq(ask(&child, 'o'), 'y');
	AS_MEMBER({
		if (open(scratch_path("e/lock.mdb"), O_RDONLY) >= 0 ||
			open(scratch_path("e/data.mdb"), O_RDWR) >= 0 ||
			open(scratch_path("e/pins"), O_RDWR) >= 0)
			_exit(1);
		env = NULL;
		if (open(scratch_path("e/data.mdb"), O_RDONLY) < 0)
			_exit(2);
	});
	/* A read lock on the reader's file that outlives the reader. */
	int ready[2];
	char byte;
	cr_assert_eq(pipe(ready), 0);
	pid_t holder = fork();
	if (holder == 0) {
		gid_t group = OTHER;
		char byte_ = 'n';
		if (setgroups(1, &group) < 0 || setgid(OTHER) < 0 || setuid(OTHER) < 0)
			_exit(9);
		DIR *directory = opendir(places.path[0]);
		for (struct dirent *entry; (entry = readdir(directory));) {
			int fd = entry->d_name[0] == '.'
					 ? -1
					 : openat(dirfd(directory), entry->d_name, O_RDONLY);
			/* Waits until the reader dies. */
			if (fd >= 0) {
				byte_ = 'y';
				(void)!write(ready[1], &byte_, 1);
				(void)fcntl(fd, F_OFD_SETLKW, &lock);
				(void)!write(ready[1], &byte_, 1);
			}
		}
		(void)alarm(20);
		(void)pause();
		_exit(0);
	}
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	end(&child, SIGKILL);
	cr_assert_eq(read(ready[0], &byte, 1), 1, "the member has its lock");
	pause_ms(60);
	cr_assert_lt(growth(), GROWTH_MOST);
	cr_assert_eq(files_in(places.path[0]), 0);
	cr_assert_eq(kill(holder, SIGKILL), 0);
	cr_assert_eq(waitpid(holder, NULL, 0), holder);
}

Test(pins, what_a_member_puts_beside_pin_files_is_passed_over)
{
	char prefix[64];
	struct stat st;

	if (geteuid() != 0) {
		cr_assert_neq(access("/", W_OK), 0, "another uid takes root");
		return;
	}
	share_with_group();
	setup_writer();
	cr_assert_eq(stat(scratch_path("e/data.mdb"), &st), 0);
	(void)snprintf(prefix, sizeof(prefix), "%016llx-", (unsigned long long)st.st_ino);
	cr_assert_eq(mkdir(scratch_path("outside"), 0700), 0);
	AS_MEMBER({
		char path[8192];
		static const char *const names[] = {"000000000000000l", "000000000000000f",
			"000000000000000d", "000000000000000z", "000000000000000s"};
		for (int i = 0; i < 5; i++) {
			(void)snprintf(
				path, sizeof(path), "%s/%s%s", places.path[0], prefix, names[i]);
			if (i == 0 && symlink(scratch_path("outside"), path) < 0)
				_exit(1);
			if (i == 1 && mkfifo(path, 0666) < 0)
				_exit(2);
			if (i == 2 && mkdir(path, 0777) < 0)
				_exit(3);
			/* A file with more slots than bytes by its head, and one of a terabyte. */
			int fd = i < 3 ? -1 : open(path, O_RDWR | O_CREAT, 0666);
			struct pin_head head = {.magic = PIN_FILE_MAGIC, .slots = UINT32_MAX};
			if (fd >= 0 && (write(fd, &head, sizeof(head)) != (ssize_t)sizeof(head) ||
					       fchmod(fd, 0666) < 0 ||
					       (i == 4 && ftruncate(fd, (off_t)1 << 40) < 0)))
				_exit(4);
		}
	});
	write_many(100);
	cr_assert_geq(env_clean_pins(env), 2);
	cr_assert_eq(files_in(places.path[0]), 3, "no files");
	cr_assert_lt(growth(), GROWTH_MOST);
	cr_assert_eq(access(scratch_path("outside"), F_OK), 0);
}

Test(pins, root_reads_a_store_whose_owner_shares_it_with_nobody)
{
	struct child child = start();
	char name[512] = "";

	if (geteuid() != 0) {
		cr_assert_neq(access("/", W_OK), 0, "another uid takes root");
		end(&child, SIGTERM);
		return;
	}
	setup_writer();
	cr_assert_eq(chmod(scratch(), 0755), 0);
	cr_assert_eq(chown(places.path[0], OTHER, OTHER), 0); /* 0700 */
	cr_assert_eq(ask(&child, 'o'), 'y');
	DIR *directory = opendir(places.path[0]);
	for (struct dirent *entry; (entry = readdir(directory));)
		if (entry->d_name[0] != '.')
			(void)snprintf(name, sizeof(name), "%s", entry->d_name);
	(void)closedir(directory);
	AS_MEMBER({
		char path[8192];
		(void)snprintf(path, sizeof(path), "%s/%s", places.path[0], name);
		if (open(path, O_RDONLY) < 0)
			_exit(1); /* the writer would pass over the pin */
	});
	end(&child, SIGTERM);
}

Test(pins, reader_whose_place_is_another_directory_is_refused)
{
	setup_writer();
	/* As in a container with a /dev/shm of its own: the same path, another directory. */
	cr_assert_eq(rename(places.path[0], scratch_path("aside")), 0);
	cr_assert_eq(mkdir(places.path[0], 0700), 0);
	struct child child = start();
	cr_assert_eq(ask(&child, 'o'), 'n');
	cr_assert_eq(files_in(places.path[0]), 0);
	/* Its second place is the writer's. */
	(void)snprintf(places.path[1], sizeof(places.path[1]), "%s", scratch_path("aside"));
	struct child second = start();
	cr_assert_eq(ask(&second, 'o'), 'y');
	write_many(300);
	cr_assert_eq(ask(&second, 'c'), 'y');
	cr_assert_eq(rename(places.path[0], scratch_path("gone")), 0);
	cr_assert_eq(rename(places.path[1], places.path[0]), 0);
	env_close(&env); /* the next writer looks elsewhere, and in the place of the one before */
	(void)snprintf(places.path[0], sizeof(places.path[0]), "%s", scratch_path("gone"));
	end(&child, SIGTERM);
	end(&second, SIGTERM);
}

Test(pins, more_files_of_dead_processes_than_readers_there_can_be_stop_nothing)
{
	char path[8192];
	struct stat st;

	setup_writer();
	cr_assert_eq(stat(scratch_path("e/data.mdb"), &st), 0);
	for (int i = 0; i < 4200; i++) {
		(void)snprintf(path, sizeof(path), "%s/%016llx-%016x", places.path[0],
			(unsigned long long)st.st_ino, i);
		int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		cr_assert_geq(fd, 0);
		(void)close(fd);
	}
	write_many(100);
	cr_assert_gt(env_clean_pins(env), 0);
	cr_assert_lt(growth(), GROWTH_MOST);
	for (int i = 0; i < 8; i++)
		(void)env_clean_pins(env);
	cr_assert_eq(files_in(places.path[0]), 0);
}

static int count_readers(void *arg, const struct pin_owner *reader)
{
	*(int *)arg += reader->pid == 0;
	return 0;
}

Test(pins, more_locked_files_than_the_process_may_open_leave_it_descriptors)
{
	enum { FILES = 200, LIMIT = 128 };
	int ready[2], n = 0;
	char path[8192], byte;
	struct stat st;

	setup_writer();
	cr_assert_eq(stat(scratch_path("e/data.mdb"), &st), 0);
	cr_assert_eq(pipe(ready), 0);
	pid_t holder = fork();
	if (holder == 0) {
		struct pin_head head = {.magic = PIN_FILE_MAGIC, .slots = 2};
		for (int i = 0; i < FILES; i++) {
			(void)snprintf(path, sizeof(path), "%s/%016llx-%016x", places.path[0],
				(unsigned long long)st.st_ino, i);
			int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
			if (fcntl(fd, F_OFD_SETLK,
				    &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET}) < 0 ||
				pwrite(fd, &head, sizeof(head), 0) < 0 ||
				ftruncate(fd, PIN_CHUNK_BYTES) < 0)
				_exit(1);
		}
		(void)!write(ready[1], "1", 1);
		(void)pause();
	}
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){LIMIT, LIMIT}), 0);
	env_close(&env);
	env = open_env(ENV_WRITE);
	cr_assert_not_null(env);
	write_many(100);
	cr_assert_eq(env_clean_pins(env), ERR_READERS_FULL);
	cr_assert(strstr(err_text(ERR_READERS_FULL), "'ls -l'"), "%s", err_text(ERR_READERS_FULL));
	int fd = open("/dev/null", O_RDONLY);
	cr_assert(fd >= 0 && fd < LIMIT * 3 / 4, "%d", fd);
	(void)close(fd);
	cr_assert_eq(env_each_reader(env, count_readers, &n), 0);
	cr_assert_eq(n, FILES, "all are listed: %d", n);
	cr_assert_eq(kill(holder, SIGKILL), 0);
	cr_assert_eq(waitpid(holder, NULL, 0), holder);
	cr_assert_eq(env_clean_pins(env), FILES);
}

Test(pins, snapshot_stays_whole_when_its_directory_is_removed_and_a_writer_starts)
{
	struct child child = start(), second = start();
	char path[8192];

	setup_writer();
	cr_assert_eq(ask(&child, 'o'), 'y');
	env_close(&env);
	DIR *directory = opendir(places.path[0]);
	for (struct dirent *entry; (entry = readdir(directory));) {
		(void)snprintf(path, sizeof(path), "%s/%s", places.path[0], entry->d_name);
		cr_assert(entry->d_name[0] == '.' || unlink(path) == 0);
	}
	(void)closedir(directory);
	cr_assert_eq(rmdir(places.path[0]), 0);
	cr_assert_eq(mkdir(places.path[0], 0700), 0);
	env = open_env(ENV_WRITE);
	cr_assert_not_null(env);
	write_many(200);
	cr_assert_eq(env_clean_pins(env), ERR_LOCKED);
	cr_assert(strstr(err_text(ERR_LOCKED), "fuser"));
	cr_assert_eq(ask(&second, 'o'), 'y');
	write_many(200);
	cr_assert_eq(ask(&child, 'c'), 'y');
	cr_assert_eq(ask(&child, 'r'), 'y', "it makes another file");
	cr_assert_eq(env_clean_pins(env), 0);
	write_many(200);
	cr_assert_eq(ask(&child, 'c'), 'y');
	cr_assert_eq(ask(&second, 'c'), 'y');
	end(&child, SIGTERM);
	end(&second, SIGTERM);
	pause_ms(60);
	cr_assert_lt(growth(), GROWTH_MOST);
}

Test(pins, older_data_copied_into_the_file_hangs_no_reader)
{
	static char bytes[8u << 20];
	struct child child = start(), second = start();

	setup_writer();
	cr_assert_eq(ask(&child, 'o'), 'y');
	cr_assert_eq(ask(&child, 'e'), 'y');
	env_close(&env);
	int fd = open(scratch_path("e/data.mdb"), O_RDWR | O_CLOEXEC);
	ssize_t n = read(fd, bytes, sizeof(bytes));
	cr_assert(n > 0 && n < (ssize_t)sizeof(bytes));
	env = open_env(ENV_WRITE);
	write_many(300);
	env_close(&env);
	cr_assert_eq(pwrite(fd, bytes, (size_t)n, 0), n);
	cr_assert_eq(ftruncate(fd, n), 0);
	(void)close(fd);
	env = open_env(ENV_WRITE);
	cr_assert_not_null(env);
	cr_assert_eq(ask(&second, 'o'), 'y');
	cr_assert_eq(ask(&child, 'x'), 'y', "it notices the new page");
	cr_assert_eq(ask(&child, 'o'), 'y');
	end(&child, SIGTERM);
	end(&second, SIGTERM);
}

/* Counts the removals of unlocked files. This program calls unlinkat() below instead of the C
 * library's. A process removing a pin file holds its lock meanwhile: the file's creator notices. */
static int unlocked_removals = -1; /* -1: not counted */

int unlinkat(int directory_fd, const char *name, int flags)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = unlocked_removals < 0 || flags ? -1
						: openat(directory_fd, name, O_RDWR | O_CLOEXEC);

	if (fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) == 0)
		unlocked_removals++;
	if (fd >= 0)
		(void)close(fd);
	return (int)syscall(SYS_unlinkat, directory_fd, name, flags);
}

Test(pins, file_that_is_being_made_is_not_locked_while_it_is_removed)
{
	struct child child = start();

	setup_writer();
	cr_assert_eq(ask(&child, 'o'), 'y');
	end(&child, SIGKILL);
	unlocked_removals = 0;
	cr_assert_eq(env_clean_pins(env), 1);
	cr_assert_eq(unlocked_removals, 0);
	unlocked_removals = -1;
}

/* A member can keep pages, and is named; it can't take back its file's bytes from under the
 * writer. */
static int find_owner(void *arg, const struct pin_owner *reader)
{
	uint32_t *uid = arg;

	if (reader->oldest && reader->uid == OTHER)
		*uid = reader->uid;
	return 0;
}

Test(pins, member_that_cuts_its_file_while_it_pins_hurts_nobody)
{
	uint32_t uid = 0;
	int ready[2], go[2];
	char byte;

	if (geteuid() != 0) {
		cr_assert_neq(access("/", W_OK), 0, "another uid takes root");
		return;
	}
	share_with_group();
	cr_assert_eq(pipe(ready), 0);
	cr_assert_eq(pipe(go), 0);
	pid_t member = fork();
	if (member == 0) {
		gid_t group = OTHER;
		struct txn *txn = NULL;
		if (read(go[0], &byte, 1) != 1 || setgroups(1, &group) < 0 || setgid(OTHER) < 0 ||
			setuid(OTHER) < 0)
			_exit(9);
		env = open_env(ENV_READ);
		if (!env || txn_begin_read(env, &txn) < 0 || !is_whole(txn))
			_exit(1);
		(void)!write(ready[1], "1", 1);
		if (read(go[0], &byte, 1) != 1)
			_exit(2);
		DIR *directory = opendir(places.path[0]);
		for (struct dirent *entry; (entry = readdir(directory));)
			if (entry->d_name[0] != '.') {
				int fd = openat(dirfd(directory), entry->d_name, O_RDWR);
				if (fd < 0 || ftruncate(fd, 0) < 0)
					_exit(3);
			}
		(void)!write(ready[1], "2", 1);
		(void)pause();
	}
	setup_writer();
	cr_assert_eq(write(go[1], "g", 1), 1);
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	write_many(100);
	cr_assert_eq(env_each_reader(env, find_owner, &uid), 0);
	cr_assert_eq(uid, OTHER, "the reader is named");
	cr_assert_eq(write(go[1], "g", 1), 1);
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	write_many(300);
	cr_assert_eq(kill(member, SIGKILL), 0);
	cr_assert_eq(waitpid(member, NULL, 0), member);
	cr_assert_lt(growth(), GROWTH_MOST);
}
