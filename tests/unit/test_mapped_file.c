/* SPDX-License-Identifier: Apache-2.0 */
#include "common/mapped_file.h"

#include <errno.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "store/env/env.h"
#include "store/index/hints.h"
#include "tests/unit/full_disk_rig.h"

static struct mapped_file child_maps(const char *path, const char *name)
{
	char file[512];

	(void)snprintf(file, sizeof(file), "%s/%s", path, name);
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CHILD_REQUIRES(
		fd >= 0 && ftruncate(fd, 64 * KIB) == 0 && pwrite(fd, "first", 5, 4 * KIB) == 5);
	uint8_t *map = mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHILD_REQUIRES(map != MAP_FAILED);
	return (struct mapped_file){.address = map, .bytes = 64 * KIB, .fd = fd};
}

static void a_full_disk(const char *path)
{
	char text[8] = "";

	child_mounts(path);
	struct mapped_file file = child_maps(path, "file");
	CHILD_REQUIRES(mapped_file_watch(&file) == 0);
	int filler = child_fills(path);
	for (int round = 0; round < 3; round++) {
		file.address[4 * KIB] = 'F'; /* has a block */
		CHILD_REQUIRES(!mapped_file_lost(&file));
		memcpy(file.address + 8 * KIB, "second", 6); /* has none */
		memcpy(file.address + 32 * KIB, "third", 5);
		CHILD_REQUIRES(mapped_file_lost(&file) == ENOSPC);
		CHILD_REQUIRES(memcmp(file.address + 8 * KIB, "second", 6) == 0);
		CHILD_REQUIRES(pread(file.fd, text, 6, 8 * KIB) == 6 && text[0] == '\0');
		CHILD_REQUIRES(mapped_file_restore(&file) == ENOSPC && !mapped_file_lost(&file));
		CHILD_REQUIRES(memcmp(file.address + 4 * KIB, "First", 5) == 0);
	}
	CHILD_REQUIRES(ftruncate(filler, 0) == 0);
	memcpy(file.address + 8 * KIB, "second", 6);
	CHILD_REQUIRES(!mapped_file_lost(&file) && mapped_file_restore(&file) == 0);
	CHILD_REQUIRES(pread(file.fd, text, 6, 8 * KIB) == 6 && memcmp(text, "second", 6) == 0);
	mapped_file_unwatch(&file);
}

Test(mapped_file, a_store_for_which_there_is_no_block_goes_into_memory)
{
	int status = in_child(a_full_disk);

	cr_assert(WIFEXITED(status), "signal %d", WTERMSIG(status));
	cr_assert_eq(WEXITSTATUS(status), 0, "line %d, modulo 128", WEXITSTATUS(status));
}

static void a_cut_file(const char *path)
{
	struct mapped_file file = child_maps(path, "file");

	CHILD_REQUIRES(mapped_file_watch(&file) == 0 && ftruncate(file.fd, 8 * KIB) == 0);
	file.address[32 * KIB] = 1;
}

static void a_fault_elsewhere(const char *path)
{
	struct mapped_file file = child_maps(path, "file"), other = child_maps(path, "other");

	CHILD_REQUIRES(mapped_file_watch(&file) == 0 && ftruncate(other.fd, 8 * KIB) == 0);
	other.address[32 * KIB] = 1;
}

Test(mapped_file, other_faults_are_not_hidden)
{
	int status = in_child(a_cut_file);

	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	cr_assert_eq(rmdir(scratch_path("disk")), -1, "it has files");
	cr_assert_eq(rename(scratch_path("disk"), scratch_path("before")), 0);
	status = in_child(a_fault_elsewhere);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

/* ---- hints -------------------------------------------------------------- */

static void hints_on_a_full_disk(const char *path)
{
	const struct hints_of of = {.journal = "0123456789abcde", .index_generation = 3};
	struct index_entry first = {.object = 1, .seq = 10}, second = {.object = 1, .seq = 20};
	struct hints *hints = NULL, *reader = NULL;
	char name[512];

	child_mounts(path);
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHILD_REQUIRES(hints_create(directory, &of, 10, 0, 0600, &hints) == 0);
	hints_put(hints, 7, BYTES_LIT("a"), &first);
	hints_cover(hints, 10, 1);
	CHILD_REQUIRES(hints_publish(hints, directory) == 0 &&
		       hints_open(directory, &of, false, &reader) == FOUND);
	/* As if the blocks were to be written to another place: the pages of all slots lose
	 * theirs. */
	(void)snprintf(name, sizeof(name), "%s/" HINTS_FILE, path);
	int fd = open(name, O_RDWR | O_CLOEXEC);
	CHILD_REQUIRES(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4 * KIB,
			       1024 * KIB) == 0);
	(void)child_fills(path);
	hints_put(hints, 7, BYTES_LIT("a"), &second);
	CHILD_REQUIRES(hints_is_lost(hints));
	hints_cover(hints, 20, 2);
	CHILD_REQUIRES(hints_taken(reader) == 10);
	CHILD_REQUIRES(hints_publish(hints, directory) == -ENOSPC);
	hints_close(&hints);
	hints_close(&reader);
}

Test(mapped_file, hints_without_room_are_not_trusted_for_what_is_newer)
{
	int status = in_child(hints_on_a_full_disk);

	cr_assert(WIFEXITED(status), "signal %d", WTERMSIG(status));
	cr_assert_eq(WEXITSTATUS(status), 0, "line %d, modulo 128", WEXITSTATUS(status));
}

/* ---- a commit ----------------------------------------------------------- */

#ifdef KINF_FAILPOINTS
static const char *const databases[] = {"one"};

static struct env *open_in_place(void)
{
	const struct env_options options = {.mode = ENV_WRITE,
		.databases = databases,
		.n_databases = 1,
		.map_bytes = (uint64_t)64 << 20,
		.file_mode = 0600,
		.writemap = true};
	struct env *env = NULL;

	(void)mkdir(scratch_path("e"), 0700);
	int r = env_open(scratch_path("e"), &options, &env);
	cr_assert_eq(r, 0, "%s", err_text(r));
	return env;
}

/* Stores NUMBER under each of many keys, so that pages are freed and used again. Returns what
 * the commit does. */
static int write_number(struct env *env, unsigned number)
{
	struct txn *txn = NULL;
	char key[32], value[200] = "";

	(void)snprintf(value, sizeof(value), "%u", number);
	cr_assert_eq(txn_begin_write(env, &txn), 0);
	for (int i = 0; i < 300; i++) {
		(void)snprintf(key, sizeof(key), "key-%d", i);
		cr_assert_eq(txn_put(txn, 0, bytes_str(key), BYTES(value, sizeof(value)), 0), 0);
	}
	return txn_commit(&txn);
}

static void require_number(struct env *env, unsigned number)
{
	struct txn *txn = NULL;
	struct bytes value;
	char key[32], text[16];

	(void)snprintf(text, sizeof(text), "%u", number);
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	for (int i = 0; i < 300; i++) {
		(void)snprintf(key, sizeof(key), "key-%d", i);
		cr_assert_eq(txn_get(txn, 0, bytes_str(key), &value), FOUND);
		cr_assert_str_eq(value.data, text, "%s", key);
	}
	txn_abort(&txn);
}

/* LMDB has committed then, and does not know that its pages are memory. */
Test(mapped_file, a_commit_that_finds_no_room_has_not_happened)
{
	struct env *env = open_in_place();
	unsigned stored = 0;

	for (unsigned number = 1; number < 40; number++) {
		const char *fails = number % 3 == 0 || number % 7 < 2 ? "env.commit:1:error" : "";
		cr_assert_eq(setenv("KINF_FAIL", fails, 1), 0);
		cr_assert_eq(failpoint_setup(), 0);
		int r = write_number(env, number);
		cr_assert_eq(r, *fails && stored ? -ENOSPC : r, "%s", err_text(r));
		if (r == 0)
			stored = number;
		else
			cr_assert_eq(r, -ENOSPC, "%s", err_text(r));
		if (stored)
			require_number(env, stored);
		if (number % 10 == 0) {
			env_close(&env);
			env = open_in_place();
			require_number(env, stored);
		}
	}
	cr_assert_eq(stored, 38);
	env_close(&env);
}
#endif
