/* SPDX-License-Identifier: Apache-2.0 */
/* Readers in processes of their own, and a writer that reuses pages as fast as it can. */
#include "store/env/pin_file.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/err.h"
#include "store/env/env.h"
#include "store/env/pin_scan.h"
#include "tests/unit/scratch.h"

#define KEYS  32
#define VALUE 3000 /* in overflow pages */
#define OTHER 65534

static const char *const databases[] = {"one"};
static struct pin_places places;
static struct env *env; /* of this process */

/* ---- a database whose states can be told apart ---- */

static struct env *open_env(enum env_mode mode)
{
	struct env_options options = {.mode = mode, .databases = databases, .n_databases = 1, .map_bytes = 512u << 20,
		.file_mode = 0640, .writemap = true, .places = &places};
	struct env *opened = NULL;
	int r = env_open(scratch_path("e"), &options, &opened);

	if (r < 0)
		(void)fprintf(stderr, "%s\n", err_text(r));
	return opened;
}

/* Each transaction writes every second key, a value that repeats one number, and the sum of the numbers of all keys. */
static uint64_t numbers[KEYS], version;

static bool write_one(void)
{
	struct txn *txn = NULL;
	uint64_t sum = 0;
	char key[8];

	if (txn_begin_write(env, &txn) < 0)
		return false;
	version++;
	for (int i = 0; i < KEYS; i++) {
		if ((version + (uint64_t)i) % 2 == 0) {
			uint64_t *place = NULL;
			numbers[i] = version * KEYS + (uint64_t)i;
			(void)snprintf(key, sizeof(key), "k%02d", i);
			(void)txn_allocate(txn, 3 * VALUE);
			if (txn_reserve(txn, 0, bytes_str(key), VALUE, 0, (void **)&place) < 0)
				break;
			for (size_t j = 0; j < VALUE / sizeof(*place); j++)
				memcpy((char *)place + j * sizeof(*place), &numbers[i], sizeof(*place));
		}
		sum += numbers[i];
	}
	(void)txn_put(txn, 0, BYTES_LIT("sum"), (struct bytes){&sum, sizeof(sum)}, 0);
	return txn_commit(&txn) == 0;
}

static void write_many(int n)
{
	for (int i = 0; i < n; i++)
		cr_assert(write_one());
}

/* Loads what the last writer left, so that the next one continues it. */
static void load(void)
{
	struct txn *txn = NULL;
	struct bytes value;
	char key[8];

	cr_assert_eq(txn_begin_read(env, &txn), 0);
	for (int i = 0; i < KEYS; i++) {
		(void)snprintf(key, sizeof(key), "k%02d", i);
		if (txn_get(txn, 0, bytes_str(key), &value) == FOUND)
			memcpy(&numbers[i], value.data, sizeof(numbers[i]));
		if (numbers[i] / KEYS > version)
			version = numbers[i] / KEYS;
	}
	txn_abort(&txn);
}

/* Returns whether all that the transaction sees is of one state. */
static bool is_whole(struct txn *txn)
{
	uint64_t sum = 0, stored = 0, number, word;
	struct bytes value;
	char key[8];

	for (int i = 0; i < KEYS; i++) {
		(void)snprintf(key, sizeof(key), "k%02d", i);
		int r = txn_get(txn, 0, bytes_str(key), &value);
		if (r == NOT_FOUND)
			continue;
		if (r < 0 || value.size != VALUE)
			return false;
		memcpy(&number, value.data, sizeof(number));
		for (size_t j = 0; j < VALUE / sizeof(word); j++) {
			memcpy(&word, (const char *)value.data + j * sizeof(word), sizeof(word));
			if (word != number)
				return false;
		}
		sum += number;
	}
	if (txn_get(txn, 0, BYTES_LIT("sum"), &value) != FOUND || value.size != sizeof(stored))
		return false;
	memcpy(&stored, value.data, sizeof(stored));
	return sum == stored;
}

/* ---- other processes ---- */

struct child {
	pid_t pid;
	int to, from;
};

/* Runs in a child: commands come as letters, answers are letters. */
static void __attribute__((noreturn)) serve(int from, int to)
{
	struct txn *txn = NULL, *more = NULL;
	char command, answer;

	while (read(from, &command, 1) == 1) {
		answer = 'n';
		switch (command) {
		case 'o': /* opens and holds a snapshot */
			env = open_env(ENV_READ);
			answer = env && txn_begin_read(env, &txn) == 0 ? 'y' : 'n';
			break;
		case 'c': /* checks the one that it holds */
			answer = is_whole(txn) ? 'y' : 'n';
			break;
		case 'r': /* renews */
			answer = txn_renew(txn) == 0 && is_whole(txn) ? 'y' : 'n';
			break;
		case 'e':
			txn_reset(txn);
			answer = 'y';
			break;
		case 'l': { /* takes all snapshots that it can get */
			int r, n = 0;
			while ((r = txn_begin_read(env, &more)) == 0)
				n++;
			answer = r == ERR_READERS_FULL && n > 1000 ? 'y' : 'n';
			break;
		}
		case 'f': { /* forks a child that lives longer */
			pid_t pid = fork();
			if (pid == 0) {
				(void)alarm(20);
				for (;;)
					(void)pause();
			}
			answer = pid > 0 ? 'y' : 'n';
			break;
		}
		case 'b': { /* opens and closes each file, as a backup does */
			static const char *const names[] = {"e/lock.mdb", "e/data.mdb", "e/pins"};
			for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
				(void)close(open(scratch_path(names[i]), O_RDWR | O_CLOEXEC));
			DIR *directory = opendir(places.path[0]);
			for (struct dirent *entry; directory && (entry = readdir(directory));)
				(void)close(openat(dirfd(directory), entry->d_name, O_RDWR | O_CLOEXEC));
			(void)closedir(directory);
			answer = 'y';
			break;
		}
		case 'w': /* becomes the writer, and writes until it is killed */
			env = open_env(ENV_WRITE);
			load();
			answer = 'y';
			(void)!write(to, &answer, 1);
			while (write_one())
				;
			_exit(3);
		case 'q':
			_exit(0);
		default:
			break;
		}
		if (write(to, &answer, 1) != 1)
			break;
	}
	_exit(0);
}

static struct child start(void)
{
	int to[2], from[2];
	struct child child;

	cr_assert_eq(pipe2(to, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(from, O_CLOEXEC), 0);
	child.pid = fork();
	cr_assert_geq(child.pid, 0);
	if (child.pid == 0) {
		(void)close(to[1]);
		(void)close(from[0]);
		serve(to[0], from[1]);
	}
	(void)close(to[0]);
	(void)close(from[1]);
	child.to = to[1];
	child.from = from[0];
	return child;
}

static char ask(const struct child *child, char command)
{
	char answer = '-';

	cr_assert_eq(write(child->to, &command, 1), 1);
	(void)!read(child->from, &answer, 1); /* '-': it has died */
	return answer;
}

static void end(struct child *child, int signal)
{
	cr_assert_eq(kill(child->pid, signal), 0);
	cr_assert_eq(waitpid(child->pid, NULL, 0), child->pid);
	(void)close(child->to);
	(void)close(child->from);
}

static void pause_ms(int ms)
{
	(void)poll(NULL, 0, ms); /* a signal only makes it shorter */
}

static uint64_t file_bytes(void)
{
	struct env_info info;

	cr_assert_eq(env_info(env, &info), 0);
	return info.file_bytes;
}

/* Returns the bytes by which the file grows while the writer overwrites all keys 200 times. */
static uint64_t growth(void)
{
	uint64_t before;

	(void)env_sweep_pins(env); /* moves the floor */
	write_many(200);
	before = file_bytes();
	write_many(400);
	return file_bytes() - before;
}

static void setup(void)
{
	(void)snprintf(places.path[0], sizeof(places.path[0]), "%s", scratch_path("pins"));
	cr_assert_eq(mkdir(places.path[0], 0700), 0);
	cr_assert_eq(mkdir(scratch_path("e"), 0700), 0);
}

static void setup_writer(void)
{
	env = open_env(ENV_WRITE);
	cr_assert_not_null(env);
	write_many(4);
}

static void teardown(void)
{
	env_close(&env);
}

TestSuite(pins, .init = setup, .fini = teardown, .timeout = 60);

Test(pins, snapshot_stays_whole_while_all_pages_are_written_anew)
{
	struct child child = start();

	setup_writer();
	cr_assert_eq(ask(&child, 'o'), 'y');
	for (int i = 0; i < 20; i++) {
		write_many(100);
		cr_assert_eq(ask(&child, 'c'), 'y');
	}
	cr_assert_eq(ask(&child, 'r'), 'y');
	end(&child, SIGTERM);
}

Test(pins, pages_are_reused_when_the_snapshot_ends_or_its_process_is_killed)
{
	struct child first = start(), second = start();

	setup_writer();
	uint64_t alone = growth();
	cr_assert_eq(ask(&first, 'o'), 'y');
	cr_assert_gt(growth(), alone + (8u << 20), "nothing that it reads is reused");
	cr_assert_eq(ask(&first, 'e'), 'y');
	cr_assert_lt(growth(), 4u << 20);
	cr_assert_eq(ask(&first, 'r'), 'y');
	cr_assert_eq(ask(&second, 'o'), 'y');
	end(&first, SIGKILL);
	cr_assert_eq(ask(&second, 'e'), 'y');
	pause_ms(60); /* a process is asked for again after 50 ms */
	cr_assert_lt(growth(), 4u << 20);
	cr_assert_eq(ask(&second, 'r'), 'y');
	end(&second, SIGTERM);
}

Test(pins, stopped_reader_goes_on_where_it_was)
{
	struct child child = start();

	setup_writer();
	cr_assert_eq(ask(&child, 'o'), 'y');
	cr_assert_eq(kill(child.pid, SIGSTOP), 0);
	write_many(500);
	cr_assert_eq(kill(child.pid, SIGCONT), 0);
	cr_assert_eq(ask(&child, 'c'), 'y');
	end(&child, SIGTERM);
}

Test(pins, snapshot_survives_kills_and_starts_of_the_writer)
{
	struct child reader = start();
	struct child writers[8];

	for (int i = 0; i < 8; i++)
		writers[i] = start();
	setup_writer();
	env_close(&env);
	cr_assert_eq(ask(&reader, 'o'), 'y');
	for (int i = 0; i < 8; i++) {
		cr_assert_eq(ask(&writers[i], 'w'), 'y');
		pause_ms(20 + i * 7);
		end(&writers[i], SIGKILL);
		cr_assert_eq(ask(&reader, 'c'), 'y', "after writer %d", i);
		if (i % 3 == 2)
			cr_assert_eq(ask(&reader, 'r'), 'y', "after writer %d", i);
	}
	end(&reader, SIGTERM);
}

Test(pins, readers_renew_while_writers_are_killed)
{
	struct child readers[2] = {start(), start()}, writers[6];

	for (int i = 0; i < 6; i++)
		writers[i] = start();
	setup_writer();
	env_close(&env);
	cr_assert_eq(ask(&readers[0], 'o'), 'y');
	cr_assert_eq(ask(&readers[1], 'o'), 'y');
	for (int i = 0; i < 6; i++) {
		cr_assert_eq(ask(&writers[i], 'w'), 'y');
		for (int j = 0; j < 300; j++)
			cr_assert_eq(ask(&readers[j % 2], 'r'), 'y', "renewal %d beside writer %d", j, i);
		end(&writers[i], SIGKILL);
	}
	end(&readers[0], SIGTERM);
	end(&readers[1], SIGTERM);
}

Test(pins, child_of_a_reader_holds_nothing_in_its_name)
{
	struct child child = start();

	setup_writer();
	cr_assert_eq(ask(&child, 'o'), 'y');
	cr_assert_eq(ask(&child, 'f'), 'y');
	end(&child, SIGKILL);
	pause_ms(60);
	cr_assert_lt(growth(), 4u << 20);
}

Test(pins, files_opened_and_closed_by_the_reading_program_change_nothing)
{
	struct child child = start();

	setup_writer();
	cr_assert_eq(ask(&child, 'o'), 'y');
	cr_assert_eq(ask(&child, 'b'), 'y');
	pause_ms(60);
	write_many(500);
	cr_assert_eq(ask(&child, 'c'), 'y');
	end(&child, SIGTERM);
}

Test(pins, program_that_leaks_snapshots_stops_itself_only)
{
	struct child leaking = start(), other = start();

	setup_writer();
	cr_assert_eq(ask(&leaking, 'o'), 'y');
	cr_assert_eq(ask(&leaking, 'l'), 'y');
	write_many(100);
	cr_assert_eq(ask(&other, 'o'), 'y');
	env_close(&env);
	env = open_env(ENV_WRITE);
	cr_assert_not_null(env, "a writer that starts");
	write_many(100);
	cr_assert_eq(ask(&leaking, 'c'), 'y');
	cr_assert_eq(ask(&other, 'r'), 'y');
	end(&leaking, SIGTERM);
	end(&other, SIGTERM);
}

/* ---- namespaces ---- */

static void write_id_map(const char *path, unsigned id)
{
	char text[32];
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int n = snprintf(text, sizeof(text), "0 %u 1\n", id);

	cr_assert_eq(write(fd, text, (size_t)n), n, "%s", path);
	(void)close(fd);
}

/* Starts a child as pid 1 of a PID namespace of its own. */
static struct child start_as_first(void)
{
	int to[2], from[2];
	struct child child;

	cr_assert_eq(pipe2(to, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(from, O_CLOEXEC), 0);
	child.pid = fork();
	if (child.pid == 0) {
		unsigned uid = geteuid(), gid = getegid();
		(void)close(to[1]);
		(void)close(from[0]);
		if (uid != 0) {
			cr_assert_eq(unshare(CLONE_NEWUSER), 0);
			(void)close(open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC));
			write_id_map("/proc/self/uid_map", uid);
			(void)gid;
		}
		cr_assert_eq(unshare(CLONE_NEWPID), 0, "%s", strerror(errno));
		pid_t first = fork();
		if (first == 0) {
			if (getpid() != 1)
				_exit(4);
			serve(to[0], from[1]);
		}
		/* Ends with it, and it with this one. */
		int status;
		(void)waitpid(first, &status, 0);
		_exit(0);
	}
	(void)close(to[0]);
	(void)close(from[1]);
	child.to = to[1];
	child.from = from[0];
	return child;
}

static void end_first(struct child *child)
{
	cr_assert_eq(write(child->to, "q", 1), 1);
	(void)close(child->to);
	cr_assert_eq(waitpid(child->pid, NULL, 0), child->pid);
	(void)close(child->from);
}

Test(pins, two_processes_that_are_pid_1_read_at_once)
{
	struct child first = start_as_first(), second = start_as_first();

	setup_writer();
	cr_assert_eq(ask(&first, 'o'), 'y');
	cr_assert_eq(ask(&second, 'o'), 'y');
	write_many(300);
	cr_assert_eq(ask(&first, 'c'), 'y');
	cr_assert_eq(ask(&second, 'c'), 'y');
	cr_assert_eq(ask(&first, 'r'), 'y');
	end_first(&first);
	write_many(300);
	cr_assert_eq(ask(&second, 'c'), 'y', "the end of the other changes nothing");
	end_first(&second);
}

Test(pins, process_that_starts_again_and_again_as_pid_1_leaves_nothing_pinned)
{
	struct child children[6];

	for (int i = 0; i < 6; i++)
		children[i] = start_as_first();
	setup_writer();
	for (int i = 0; i < 6; i++) {
		cr_assert_eq(ask(&children[i], 'o'), 'y');
		write_many(10);
		end_first(&children[i]); /* with its snapshot */
	}
	pause_ms(60);
	cr_assert_lt(growth(), 4u << 20);
}

/* ---- other users ---- */

static int files_in(const char *path)
{
	DIR *directory = opendir(path);
	int n = 0;

	for (struct dirent *entry; (entry = readdir(directory));)
		n += entry->d_name[0] != '.';
	(void)closedir(directory);
	return n;
}

/* Makes everything as it is with a reader group, to which OTHER belongs. Only root can. */
static void share_with_group(void)
{
	cr_assert_eq(chmod(scratch(), 0755), 0);
	cr_assert_eq(chown(places.path[0], 0, OTHER), 0);
	cr_assert_eq(chmod(places.path[0], 03770), 0);
	cr_assert_eq(chown(scratch_path("e"), 0, OTHER), 0);
	cr_assert_eq(chmod(scratch_path("e"), 02750), 0);
}

/* In a child: becomes a member of the group, and does what BODY says. */
#define AS_MEMBER(...)                                                                                                 \
	do {                                                                                                           \
		pid_t pid_ = fork();                                                                                   \
		if (pid_ == 0) {                                                                                       \
			gid_t group_ = OTHER;                                                                          \
			if (setgroups(1, &group_) < 0 || setgid(OTHER) < 0 || setuid(OTHER) < 0)                       \
				_exit(9);                                                                              \
			__VA_ARGS__;                                                                                   \
			_exit(0);                                                                                      \
		}                                                                                                      \
		int status_;                                                                                           \
		cr_assert_eq(waitpid(pid_, &status_, 0), pid_);                                                        \
		cr_assert(WIFEXITED(status_) && WEXITSTATUS(status_) == 0, "exit %d", WEXITSTATUS(status_));           \
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
		if (open(scratch_path("e/lock.mdb"), O_RDONLY) >= 0 || open(scratch_path("e/data.mdb"), O_RDWR) >= 0 ||
			open(scratch_path("e/pins"), O_RDWR) >= 0)
			_exit(1);
		env = NULL;
		if (open(scratch_path("e/data.mdb"), O_RDONLY) < 0)
			_exit(2);
	});
	/* A read lock on the reader's file, which lives on after the reader. */
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
			int fd = entry->d_name[0] == '.' ? -1 : openat(dirfd(directory), entry->d_name, O_RDONLY);
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
	cr_assert_lt(growth(), 4u << 20);
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
		static const char *const names[] = {"000000000000000l", "000000000000000f", "000000000000000d",
			"000000000000000z", "000000000000000s"};
		for (int i = 0; i < 5; i++) {
			(void)snprintf(path, sizeof(path), "%s/%s%s", places.path[0], prefix, names[i]);
			if (i == 0 && symlink(scratch_path("outside"), path) < 0)
				_exit(1);
			if (i == 1 && mkfifo(path, 0666) < 0)
				_exit(2);
			if (i == 2 && mkdir(path, 0777) < 0)
				_exit(3);
			/* A file that says it has more slots than it has bytes, and one of a terabyte. */
			int fd = i < 3 ? -1 : open(path, O_RDWR | O_CREAT, 0666);
			struct pin_head head = {.magic = PIN_FILE_MAGIC, .slots = UINT32_MAX};
			if (fd >= 0 && (write(fd, &head, sizeof(head)) != (ssize_t)sizeof(head) || fchmod(fd, 0666) < 0 ||
					(i == 4 && ftruncate(fd, (off_t)1 << 40) < 0)))
				_exit(4);
		}
	});
	write_many(100);
	cr_assert_geq(env_sweep_pins(env), 2);
	cr_assert_eq(files_in(places.path[0]), 0);
	cr_assert_lt(growth(), 4u << 20);
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
	/* Its second place is that of the writer. */
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
		(void)snprintf(path, sizeof(path), "%s/%016llx-%016x", places.path[0], (unsigned long long)st.st_ino, i);
		int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		cr_assert_geq(fd, 0);
		(void)close(fd);
	}
	write_many(100);
	cr_assert_gt(env_sweep_pins(env), 0);
	cr_assert_lt(growth(), 4u << 20);
	for (int i = 0; i < 8; i++)
		(void)env_sweep_pins(env);
	cr_assert_eq(files_in(places.path[0]), 0);
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
	cr_assert_eq(env_sweep_pins(env), ERR_LOCKED);
	cr_assert(strstr(err_text(ERR_LOCKED), "fuser"));
	cr_assert_eq(ask(&second, 'o'), 'y');
	write_many(200);
	cr_assert_eq(ask(&child, 'c'), 'y');
	cr_assert_eq(ask(&child, 'r'), 'y', "it makes another file");
	cr_assert_eq(env_sweep_pins(env), 0);
	write_many(200);
	cr_assert_eq(ask(&child, 'c'), 'y');
	cr_assert_eq(ask(&second, 'c'), 'y');
	end(&child, SIGTERM);
	end(&second, SIGTERM);
	pause_ms(60);
	cr_assert_lt(growth(), 4u << 20);
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
	cr_assert_eq(ask(&child, 'r'), 'y', "it finds the new page");
	end(&child, SIGTERM);
	end(&second, SIGTERM);
}

/* Counts the removals of files that nothing has locked. This program calls unlinkat() below instead of the C library's. A
 * process that removes a pin file holds its lock meanwhile, so that the process that made the file notices. */
static int unlocked_removals = -1; /* -1: not counted */

int unlinkat(int directory_fd, const char *name, int flags)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = unlocked_removals < 0 || flags ? -1 : openat(directory_fd, name, O_RDWR | O_CLOEXEC);

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
	cr_assert_eq(env_sweep_pins(env), 1);
	cr_assert_eq(unlocked_removals, 0);
	unlocked_removals = -1;
}

/* A member can keep pages, and is named; it can't take back its file's bytes from under the writer. */
static int find_owner(void *arg, const struct env_reader *reader)
{
	uint32_t *uid = arg;

	if (reader->txn && reader->uid == OTHER)
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
		if (read(go[0], &byte, 1) != 1 || setgroups(1, &group) < 0 || setgid(OTHER) < 0 || setuid(OTHER) < 0)
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
	cr_assert_lt(growth(), 4u << 20);
}
