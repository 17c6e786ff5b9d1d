/* SPDX-License-Identifier: Apache-2.0 */
/* The length of the file, its blocks, and a full disk. */
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "tests/unit/env_rig.h"

static const struct env_options in_place = {.mode = ENV_WRITE,
	.databases = databases,
	.n_databases = 2,
	.map_bytes = (uint64_t)1 << 30,
	.file_mode = 0640,
	.writemap = true};

static struct env *open_writemap(const char *name)
{
	struct env *opened = NULL;

	(void)mkdir(scratch_path(name), 0700);
	OK(env_open(scratch_path(name), &in_place, &opened));
	return opened;
}

static struct env *env;
static struct txn *txn;

static void close_env(void)
{
	txn_abort(&txn);
	env_close(&env);
}

TestSuite(env_room, .fini = close_env);

static struct stat file_of(const char *path)
{
	struct stat st;

	cr_assert_eq(stat(scratch_path(path), &st), 0);
	return st;
}

/* Returns the page faults of a transaction writing SIZE bytes of C under a new key. */
static long faults_of_write(const char *key, size_t size, char c)
{
	struct rusage before, after;

	void *room;

	cr_assert_eq(getrusage(RUSAGE_SELF, &before), 0);
	cr_assert_eq(txn_begin_write(env, &txn), 0);
	cr_assert_eq(txn_reserve(txn, 0, bytes_str(key), size, 0, &room), 0);
	memset(room, c, size);
	cr_assert_eq(txn_commit(&txn), 0);
	cr_assert_eq(getrusage(RUSAGE_SELF, &after), 0);
	return after.ru_minflt - before.ru_minflt;
}

/* qemu-user accepts the advice and does nothing. */
static bool madvise_populates(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory = mmap(
			NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		there = 0;
	bool populates =
		madvise(memory, size, 23) == 0 && mincore(memory, size, &there) == 0 && (there & 1);

	(void)munmap(memory, size);
	return populates;
}

Test(env_room, pages_that_were_touched_while_the_writer_was_idle_cost_no_fault)
{
	scratch_in_memory(); /* a fault brings in one page there; on disk it may bring in several */
	env = open_writemap("w");
	struct bytes value;

	if (!madvise_populates())
		cr_skip("this kernel has no MADV_POPULATE_WRITE");
	(void)faults_of_write("first", 1 << 20, '1');
	long cold = faults_of_write("cold", 192 << 10, '2');
	cr_assert_geq(cold, (192 << 10) / sysconf(_SC_PAGESIZE));
	env_prepare(env);
	env_prepare(env);
	cr_assert_leq(faults_of_write("warm", 192 << 10, '3'), cold / 2);
	struct stat st = file_of("w/data.mdb");
	cr_assert_geq((int64_t)st.st_blocks * 512, st.st_size);
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("warm"), &value), FOUND);
	cr_assert_eq(((const char *)value.data)[value.size - 1], '3');
}

/* A page without a block is a SIGBUS, and so is a page beyond the end of the file. */
Test(env_room, a_file_written_in_place_is_as_long_as_what_it_holds_and_some_more)
{
	struct bytes value;
	uint64_t place, held = 0;

	env = open_writemap("w");
	const int64_t begin = 256 * (int64_t)env_page_size(env);
	cr_assert_eq(file_of("w/data.mdb").st_mode & 0777, 0640);
	cr_assert_eq(file_of("w/lock.mdb").st_mode & 0777, 0600);
	cr_assert_leq(file_of("w/data.mdb").st_size, begin);
	for (uint64_t size = 1u << 10; size <= 64u << 20; size *= 4) {
		char key[24];
		void *room;

		(void)snprintf(key, sizeof(key), "%llu", (unsigned long long)size);
		cr_assert_eq(txn_begin_write(env, &txn), 0);
		cr_assert_eq(txn_reserve(txn, 0, bytes_str(key), size, 0, &room), 0);
		memset(room, key[0], size);
		held += size;
		struct stat st = file_of("w/data.mdb");
		cr_assert_leq(st.st_size, (int64_t)held + (int64_t)held / 8 + begin,
			"inside the transaction");
		cr_assert_geq((int64_t)st.st_blocks * 512, st.st_size, "with blocks");
		cr_assert_eq(txn_commit(&txn), 0);
		st = file_of("w/data.mdb");
		cr_assert_geq(st.st_size, (int64_t)held);
		cr_assert_leq(st.st_size, (int64_t)held + (int64_t)held / 8 + begin);
	}
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("67108864"), &value), FOUND);
	cr_assert_eq(((const char *)value.data)[value.size - 1], '6');
	cr_assert_eq(txn_place(txn, value, &place), FOUND);
	txn_abort(&txn);
	cr_assert_eq(env_sync(env), 0);
	env_close(&env);
	cr_assert_leq(file_of("w/data.mdb").st_size, (int64_t)held + begin,
		"nothing ahead after its writer has closed it");
	env = open_writemap("w");
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("67108864"), &value), FOUND);
	cr_assert_eq(value.size, 64u << 20);
	txn_abort(&txn);
	put(env, "b", 1u << 20);
}

Test(env_room, blocks_of_an_aborted_transaction_are_given_back)
{
	void *room;

	env = open_writemap("w");
	cr_assert_eq(txn_begin_write(env, &txn), 0);
	cr_assert_eq(txn_reserve(txn, 0, BYTES_LIT("a"), 100u << 20, 0, &room), 0);
	memset(room, 1, 100u << 20);
	cr_assert_geq(file_of("w/data.mdb").st_size, 100 << 20);
	txn_abort(&txn);
	cr_assert_leq(file_of("w/data.mdb").st_size, 2 << 20);
	cr_assert_leq(file_of("w/data.mdb").st_blocks * 512, 2 << 20);
	put(env, "b", 10u << 20);
}

/* A batch reserves several times its writes. The rest would keep the disk full for the other
 * database. */
Test(env_room, blocks_that_a_transaction_reserved_and_did_not_use_are_given_back)
{
	env = open_writemap("w");
	put(env, "c", 8u << 20);
	cr_assert_eq(txn_begin_write(env, &txn), 0);
	cr_assert_eq(txn_allocate(txn, 20u << 20), 0);
	cr_assert_geq(file_of("w/data.mdb").st_blocks * 512, 20 << 20);
	cr_assert_eq(txn_put(txn, 0, BYTES_LIT("a"), BYTES_LIT("1"), 0), 0);
	cr_assert_eq(txn_commit(&txn), 0);
	cr_assert_leq(file_of("w/data.mdb").st_blocks * 512, 12 << 20);
	put(env, "b", 10u << 20);
}

/* Each step reserves its maximum. Together they may not reserve much more than they have
 * written. */
Test(env_room, many_small_steps_reserve_little_more_than_they_write)
{
	enum { STEPS = 2000, STEP = 27 << 10, VALUE = 3000 };
	static const uint8_t value[VALUE];
	uint8_t key[4];

	env = open_writemap("w");
	cr_assert_eq(txn_begin_write(env, &txn), 0);
	cr_assert_eq(txn_keep_free(txn, 1 << 20), 0);
	for (uint32_t i = 0; i < STEPS; i++) {
		cr_assert_eq(txn_allocate(txn, STEP), 0);
		be32_put(key, i);
		cr_assert_eq(txn_put(txn, 0, BYTES(key, 4), BYTES(value, VALUE), 0), 0);
	}
	int64_t written = STEPS * 4096, blocks = file_of("w/data.mdb").st_blocks * 512;
	cr_assert_leq(blocks, 2 * written, "%lld for %lld", (long long)blocks, (long long)written);
	cr_assert_eq(txn_commit(&txn), 0);
}

Test(env_room, blocks_that_a_killed_writer_reserved_are_given_back)
{
	int status;

	env = open_writemap("w");
	put(env, "c", 8u << 20);
	env_close(&env);
	pid_t child = fork();
	if (child == 0) {
		env = open_writemap("w");
		put(env, "d", 512u << 10); /* the next writer makes the file longer */
		if (txn_begin_write(env, &txn) == 0 && txn_allocate(txn, 20u << 20) == 0)
			(void)kill(getpid(), SIGKILL);
		_exit(1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSIGNALED(status));
	cr_assert_geq(file_of("w/data.mdb").st_blocks * 512, 20 << 20);
	env = open_writemap("w");
	cr_assert_leq(file_of("w/data.mdb").st_blocks * 512,
		(8 << 20) + 1024 * (off_t)env_page_size(env));
	put(env, "b", 10u << 20);
}

/* An older version made the file as long as the map; so does a copy of its store. */
Test(env_room, a_hole_after_the_newest_state_is_cut_off)
{
	env = open_writemap("w");
	put(env, "a", 1u << 20);
	env_close(&env);
	cr_assert_eq(truncate(scratch_path("w/data.mdb"), 1 << 30), 0);
	env = open_writemap("w");
	cr_assert_leq(file_of("w/data.mdb").st_size, (1 << 20) + 512 * (off_t)env_page_size(env));
}

#define CHILD_REQUIRES(condition) \
	do { \
		if (!(condition)) \
			_exit(__LINE__ - 400); \
	} while (0)

static void child_put(const char *key, size_t size)
{
	void *place;

	CHILD_REQUIRES(txn_begin_write(env, &txn) == 0);
	CHILD_REQUIRES(txn_reserve(txn, 0, bytes_str(key), size, 0, &place) == 0);
	memset(place, key[0], size);
	CHILD_REQUIRES(txn_commit(&txn) == 0);
}

static bool child_writes(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);

	return write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0;
}

/* Runs in a child with a small file system of its own at PATH. */
static void full_disk_child(const char *path, const char *directory, const char *file)
{
	struct bytes value;
	struct stat st;
	char uid[32], gid[32];

	void *room;

	(void)snprintf(uid, sizeof(uid), "0 %u 1\n", geteuid());
	(void)snprintf(gid, sizeof(gid), "0 %u 1\n", getegid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 || !child_writes("/proc/self/uid_map", uid) ||
		!child_writes("/proc/self/setgroups", "deny") ||
		!child_writes("/proc/self/gid_map", gid) ||
		mount("tmpfs", path, "tmpfs", 0, "size=8m") < 0)
		_exit(255);
	CHILD_REQUIRES(mkdir(directory, 0700) == 0 && env_open(directory, &in_place, &env) == 0);
	child_put("a", 1u << 20);
	for (int i = 0; i < 3; i++) {
		CHILD_REQUIRES(txn_begin_write(env, &txn) == 0);
		CHILD_REQUIRES(txn_reserve(txn, 0, BYTES_LIT("b"), 20u << 20, 0, &room) == 0);
		memset(room, 1, 20u << 20); /* no signal */
		CHILD_REQUIRES(txn_put(txn, 0, BYTES_LIT("c"), BYTES_LIT("c"), 0) == -ENOSPC);
		CHILD_REQUIRES(txn_commit(&txn) == -ENOSPC);
		CHILD_REQUIRES(stat(file, &st) == 0 && st.st_size < 3 << 20);
		CHILD_REQUIRES(txn_begin_read(env, &txn) == 0);
		CHILD_REQUIRES(txn_get(txn, 0, BYTES_LIT("b"), &value) == NOT_FOUND);
		CHILD_REQUIRES(txn_get(txn, 0, BYTES_LIT("a"), &value) == FOUND);
		txn_abort(&txn);
		child_put("small", 1000);
	}
	CHILD_REQUIRES(mount("", path, "", MS_REMOUNT, "size=80m") == 0);
	child_put("b", 20u << 20);
	CHILD_REQUIRES(txn_begin_read(env, &txn) == 0);
	CHILD_REQUIRES(txn_get(txn, 0, BYTES_LIT("b"), &value) == FOUND);
	CHILD_REQUIRES(
		value.size == 20u << 20 && ((const char *)value.data)[value.size - 1] == 'b');
	CHILD_REQUIRES(txn_get(txn, 0, BYTES_LIT("small"), &value) == FOUND);
	txn_abort(&txn);
	env_close(&env);
	_exit(0);
}

Test(env_room, a_full_disk_fails_the_transaction_and_no_more)
{
	char path[512], directory[512], file[512];
	int status;

	(void)snprintf(path, sizeof(path), "%s", scratch_path("disk"));
	(void)snprintf(directory, sizeof(directory), "%s", scratch_path("disk/w"));
	(void)snprintf(file, sizeof(file), "%s", scratch_path("disk/w/data.mdb"));
	cr_assert_eq(mkdir(path, 0700), 0);
	pid_t child = fork();
	if (child == 0)
		full_disk_child(path, directory, file);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status), "signal %d", WTERMSIG(status));
	if (WEXITSTATUS(status) == 255)
		cr_skip_test("no mount namespaces here");
	cr_assert_eq(WEXITSTATUS(status), 0, "line %d", WEXITSTATUS(status) + 400);
}

/* ---- a meta page refused by the disk, without WRITEMAP -------------------- */

static int meta_error; /* of the next write of a meta page */

/* Replaces the C library's function in liblmdb. */
__attribute__((visibility("default"))) ssize_t pwrite(
	int fd, const void *from, size_t size, off_t at)
{
	if (meta_error && at < 2 * sysconf(_SC_PAGESIZE)) {
		errno = meta_error;
		meta_error = 0;
		return -1;
	}
	return syscall(SYS_pwrite64, fd, from, size, at);
}

/* On btrfs the last write of a commit can be the first to fail on a full disk. */
Test(env_room, after_a_meta_page_without_room_the_file_must_be_opened_again)
{
	struct bytes value;

	env = open_env("e", ENV_WRITE);
	put(env, "a", 1000);
	cr_assert_eq(txn_begin_write(env, &txn), 0);
	cr_assert_eq(txn_put(txn, 0, BYTES_LIT("b"), BYTES_LIT("lost"), 0), 0);
	meta_error = ENOSPC;
	cr_assert_lt(txn_commit(&txn), 0);
	cr_assert_eq(meta_error, 0);
	int r = txn_begin_write(env, &txn);
	cr_assert_eq(r, ERR_MOVED, "%s", err_text(r));
	env_close(&env);
	env = open_env("e", ENV_WRITE);
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("a"), &value), FOUND);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("b"), &value), NOT_FOUND);
}
