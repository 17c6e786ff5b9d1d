/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/env.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "common/options.h"
#include "store/env/damaged.h"
#include "store/env/pin_page.h"
#include "tests/unit/scratch.h"

static const char *const databases[] = {"one", "two"};

static const struct pin_places *places_of(void)
{
	static struct pin_places places;

	(void)snprintf(places.path[0], sizeof(places.path[0]), "%s", scratch_path("pins"));
	(void)mkdir(places.path[0], 0700); /* is there from the second call on */
	return &places;
}

static struct env *open_env(const char *name, enum env_mode mode)
{
	struct env_options options = {.mode = mode, .databases = databases, .n_databases = 2,
		.map_bytes = 16u << 20, .file_mode = 0600};
	const char *path = scratch_path(name);
	struct env *env = NULL;

	(void)mkdir(path, 0700);
	options.places = places_of();
	int r = env_open(path, &options, &env);
	cr_assert_eq(r, 0, "%s", err_text(r));
	return env;
}

static void put(struct env *env, const char *key, size_t size)
{
	struct txn *txn = NULL;
	void *place;

	cr_assert_eq(txn_begin_write(env, &txn), 0);
	cr_assert_eq(txn_reserve(txn, 0, bytes_str(key), size, 0, &place), 0);
	memset(place, key[0], size);
	cr_assert_eq(txn_commit(&txn), 0);
	cr_assert_null(txn);
}

Test(env, what_is_committed_is_read)
{
	struct env *env = open_env("e", ENV_WRITE);
	struct txn *txn = NULL;
	struct bytes value;
	uint64_t n;

	put(env, "a", 10);
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("a"), &value), FOUND);
	cr_assert(bytes_equal(value, BYTES_LIT("aaaaaaaaaa")));
	cr_assert_eq(txn_get(txn, 1, BYTES_LIT("a"), &value), NOT_FOUND);
	cr_assert_eq(txn_count(txn, 0, &n), 0);
	cr_assert_eq(n, 1);
	put(env, "b", 10);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("b"), &value), NOT_FOUND, "a snapshot stays as it is");
	cr_assert_eq(txn_renew(txn), 0);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("b"), &value), FOUND);
	txn_abort(&txn);
	env_close(&env);
	cr_assert_null(env);
}

Test(env, first_error_sticks_and_commit_aborts)
{
	struct env *env = open_env("e", ENV_WRITE);
	struct txn *txn = NULL;
	struct bytes value;

	cr_assert_eq(txn_begin_write(env, &txn), 0);
	cr_assert_eq(txn_put(txn, 0, BYTES_LIT("b"), BYTES_LIT("1"), TXN_APPEND), 0);
	cr_assert_eq(txn_put(txn, 0, BYTES_LIT("a"), BYTES_LIT("1"), TXN_APPEND), ERR_CORRUPT);
	cr_assert_eq(txn_put(txn, 0, BYTES_LIT("c"), BYTES_LIT("1"), 0), ERR_CORRUPT);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("b"), &value), ERR_CORRUPT);
	cr_assert_eq(txn_commit(&txn), ERR_CORRUPT);
	cr_assert_null(txn);
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("b"), &value), NOT_FOUND);
	txn_abort(&txn);
	env_close(&env);
}

Test(env, new_key_must_not_exist)
{
	struct env *env = open_env("e", ENV_WRITE);
	struct txn *txn = NULL;

	put(env, "a", 1);
	cr_assert_eq(txn_begin_write(env, &txn), 0);
	cr_assert_eq(txn_put(txn, 0, BYTES_LIT("a"), BYTES_LIT("2"), TXN_NEW), ERR_CORRUPT);
	txn_abort(&txn);
	env_close(&env);
}

Test(env, full_map_is_an_error_and_reading_goes_on)
{
	struct env *env = open_env("e", ENV_WRITE);
	struct txn *txn = NULL;
	struct bytes value;
	void *place;

	put(env, "a", 10);
	cr_assert_eq(txn_begin_write(env, &txn), 0);
	cr_assert_eq(txn_reserve(txn, 0, BYTES_LIT("b"), 20u << 20, 0, &place), ERR_MAP_FULL);
	cr_assert_eq(txn_commit(&txn), ERR_MAP_FULL);
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("a"), &value), FOUND);
	txn_abort(&txn);
	env_close(&env);
}

Test(env, cursor_deletes_and_goes_on)
{
	struct env *env = open_env("e", ENV_WRITE);
	struct cursor *cursor = NULL;
	struct txn *txn = NULL;
	struct bytes key, value;
	char text[16];
	uint64_t n;

	cr_assert_eq(txn_begin_write(env, &txn), 0);
	for (int i = 0; i < 5000; i++) {
		(void)snprintf(text, sizeof(text), "%06d", i);
		cr_assert_eq(txn_put(txn, 0, bytes_str(text), bytes_str(text), TXN_APPEND), 0);
	}
	cr_assert_eq(cursor_open(txn, 0, &cursor), 0);
	int seen = 0;
	for (int r = cursor_seek(cursor, BYTES_LIT("001000"), &key, &value); r == FOUND;
		r = cursor_next(cursor, &key, &value), seen++) {
		(void)snprintf(text, sizeof(text), "%06d", 1000 + seen);
		cr_assert(bytes_equal(key, bytes_str(text)), "at %d", seen);
		cr_assert_eq(cursor_del(cursor), 0);
	}
	cr_assert_eq(seen, 4000);
	cr_assert_eq(txn_count(txn, 0, &n), 0);
	cr_assert_eq(n, 1000);
	cr_assert_eq(cursor_last(cursor, &key, &value), FOUND);
	cr_assert(bytes_equal(key, BYTES_LIT("000999")));
	cr_assert_eq(cursor_put(cursor, BYTES_LIT("000999"), BYTES_LIT("x"), 0), 0);
	cr_assert_eq(txn_commit(&txn), 0);
	cursor_close(&cursor); /* after its transaction: LMDB has freed its part */
	env_close(&env);
}

Test(env, closing_the_first_of_two_write_cursors)
{
	struct env *env = open_env("e", ENV_WRITE);
	struct cursor *a = NULL, *b = NULL;
	struct txn *txn = NULL;

	cr_assert_eq(txn_begin_write(env, &txn), 0);
	cr_assert_eq(cursor_open(txn, 0, &a), 0);
	cr_assert_eq(cursor_open(txn, 1, &b), 0);
	cursor_close(&a);
	txn_abort(&txn);
	cursor_close(&b);
	env_close(&env);
}

Test(env, large_values_have_a_place_and_small_ones_none)
{
	struct env *env = open_env("e", ENV_WRITE);
	struct txn *txn = NULL;
	struct bytes value, again;
	uint64_t place = 0;

	put(env, "small", 100);
	put(env, "large", 2 * env_page_size(env) + 800);
	put(env, "medium", env_page_size(env) * 5 / 8);
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("small"), &value), FOUND);
	cr_assert_eq(txn_place(txn, value, &place), NOT_FOUND);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("medium"), &value), FOUND);
	cr_assert_eq(txn_place(txn, value, &place), FOUND);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("large"), &value), FOUND);
	cr_assert_eq(txn_place(txn, value, &place), FOUND);
	cr_assert_eq(txn_at(txn, place, value.size, &again), FOUND);
	cr_assert_eq(again.data, value.data);
	txn_abort(&txn);
	cr_assert_eq(txn_begin_write(env, &txn), 0);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("large"), &value), FOUND);
	cr_assert_eq(txn_place(txn, value, &place), NOT_FOUND);
	txn_abort(&txn);
	env_close(&env);
}

Test(env, places_outside_the_file_are_refused)
{
	struct env *env = open_env("e", ENV_WRITE);
	struct txn *txn = NULL;
	struct bytes value;
	struct stat st;

	const uint64_t page = env_page_size(env);
	put(env, "large", 2 * page + 800);
	cr_assert_eq(stat(scratch_path("e/data.mdb"), &st), 0);
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	cr_assert_eq(txn_at(txn, 17, 10, &value), NOT_FOUND);
	cr_assert_eq(txn_at(txn, (uint64_t)st.st_size + 16, 10, &value), NOT_FOUND);
	cr_assert_eq(txn_at(txn, (uint64_t)st.st_size - page + 16, page, &value), NOT_FOUND);
	cr_assert_eq(txn_at(txn, UINT64_MAX - (page - 1) + 16, 10, &value), NOT_FOUND);
	cr_assert_eq(txn_at(txn, page + 16, SIZE_MAX, &value), NOT_FOUND);
	cr_assert_eq(txn_at(txn, (uint64_t)st.st_size - page + 16, page - 16, &value), FOUND);
	txn_abort(&txn);
	env_close(&env);
}

Test(env, reader_and_writer_of_one_process_share_the_map)
{
	struct env *writer = open_env("e", ENV_WRITE);
	struct env *reader = open_env("e", ENV_READ);
	struct txn *txn = NULL;
	struct env_info info;

	put(writer, "a", 1);
	cr_assert_eq(txn_begin_read(reader, &txn), 0);
	cr_assert_eq(env_info(writer, &info), 0);
	cr_assert_eq(info.readers, 1, "the snapshot's: %u", info.readers);
	env_close(&writer);
	struct bytes value;
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("a"), &value), FOUND);
	writer = open_env("e", ENV_WRITE);
	put(writer, "b", 1);
	cr_assert_eq(env_sweep_pins(writer), 0, "the live one keeps its slot");
	txn_abort(&txn);
	env_close(&writer);
	env_close(&reader);
}

Test(env, no_descriptor_is_left_open_in_a_program_that_is_started)
{
	bool before[256];

	for (int fd = 0; fd < 256; fd++)
		before[fd] = fcntl(fd, F_GETFD) >= 0;
	struct env *writer = open_env("e", ENV_WRITE), *reader = NULL;
	put(writer, "a", 1);
	env_close(&writer);
	reader = open_env("e", ENV_READ);
	writer = open_env("other", ENV_WRITE);
	int opened = 0;
	for (int fd = 0; fd < 256; fd++) {
		int flags = fcntl(fd, F_GETFD);
		if (before[fd] || flags < 0)
			continue;
		cr_assert(flags & FD_CLOEXEC, "descriptor %d", fd);
		opened++;
	}
	cr_assert_geq(opened, 2, "both data.mdb");
	env_close(&reader);
	env_close(&writer);
}

Test(env, second_writer_of_one_process_is_refused)
{
	struct env *writer = open_env("e", ENV_WRITE), *second = NULL;
	struct env_options options = {.mode = ENV_WRITE, .databases = databases, .n_databases = 2,
		.map_bytes = 16u << 20, .file_mode = 0600};

	cr_assert_eq(env_open(scratch_path("e"), &options, &second), ERR_LOCKED);
	cr_assert_null(second);
	env_close(&writer);
}

Test(env, child_is_told_to_open_its_own)
{
	struct env *env = open_env("e", ENV_WRITE);
	struct txn *txn = NULL;

	put(env, "a", 1);
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	pid_t child = fork();
	if (child == 0) {
		struct txn *other = NULL;
		bool good = txn_renew(txn) == ERR_FORKED && txn_begin_read(env, &other) == ERR_FORKED &&
			txn_begin_write(env, &other) == ERR_FORKED;
		txn_abort(&txn);
		env_close(&env);
		struct env_options options = {.mode = ENV_READ, .databases = databases, .n_databases = 2,
			.places = places_of()};
		good = good && env_open(scratch_path("e"), &options, &env) == 0 &&
			txn_begin_read(env, &txn) == 0;
		_exit(good ? 0 : 1);
	}
	int status;
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	/* The child was not able to take our slot away; its own is cleared. */
	cr_assert_eq(env_sweep_pins(env), 1);
	put(env, "b", 1);
	txn_abort(&txn);
	env_close(&env);
}

Test(env, kill_of_a_writer_loses_nothing_committed)
{
	const char *path = scratch_path("e");

	for (int round = 0; round < 5; round++) {
		pid_t child = fork();
		if (child == 0) {
			struct env *env = open_env("e", ENV_WRITE);
			char key[16];
			(void)snprintf(key, sizeof(key), "%d", round);
			put(env, key, 5000);
			struct txn *txn = NULL;
			void *place;
			(void)txn_begin_write(env, &txn);
			(void)txn_reserve(txn, 0, BYTES_LIT("lost"), 5000, 0, &place);
			(void)kill(getpid(), SIGKILL);
		}
		int status;
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert(WIFSIGNALED(status));
	}
	cr_assert_not_null(path);
	struct env *env = open_env("e", ENV_READ);
	struct txn *txn = NULL;
	uint64_t n;
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	cr_assert_eq(txn_count(txn, 0, &n), 0);
	cr_assert_eq(n, 5);
	txn_abort(&txn);
	env_close(&env);
}

static int open_code(const char *name, enum env_mode mode)
{
	struct env_options options = {.mode = mode, .databases = databases, .n_databases = 2,
		.map_bytes = 16u << 20, .file_mode = 0600, .places = places_of()};
	struct env *env = NULL;
	int r = env_open(scratch_path(name), &options, &env);

	env_close(&env);
	return r;
}

Test(env, cut_and_garbled_files_are_told)
{
	struct env *env = open_env("e", ENV_WRITE);

	put(env, "a", 1u << 20);
	env_close(&env);
	cr_assert_eq(truncate(scratch_path("e/data.mdb"), 1u << 19), 0);
	cr_assert_eq(open_code("e", ENV_READ), ERR_CORRUPT);
	FILE *file = fopen(scratch_path("e/data.mdb"), "r+");
	cr_assert_not_null(file);
	for (int i = 0; i < 8192; i++)
		(void)fputc('x', file);
	(void)fclose(file);
	cr_assert_eq(open_code("e", ENV_READ), ERR_CORRUPT);
	cr_assert_eq(open_code("e", ENV_WRITE), ERR_CORRUPT);
	cr_assert_eq(truncate(scratch_path("e/data.mdb"), 0), 0);
	cr_assert_eq(open_code("e", ENV_READ), ERR_CORRUPT);
	cr_assert_eq(unlink(scratch_path("e/data.mdb")), 0);
	cr_assert_eq(open_code("e", ENV_READ), -ENOENT);
}

/* LMDB checks nothing of it, and aborts the process when the tables of the file are not where it says. */
Test(env, a_state_that_begins_at_another_page_is_an_error)
{
	enum { META = 16, ROOT = META + 24 + 48 + 40 }; /* of the table of databases, in a meta page */
	struct env_options options = {.mode = ENV_READ, .databases = databases, .n_databases = 2, .places = places_of()};
	struct env *env = open_env("e", ENV_WRITE);
	long page = sysconf(_SC_PAGESIZE);

	for (int i = 0; i < 50; i++)
		put(env, (const char[]){(char)('A' + i), '\0'}, 500);
	env_close(&env);
	int fd = open(scratch_path("e/data.mdb"), O_RDWR | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	for (uint64_t root = 0; root < 8; root++) {
		for (int meta = 0; meta < 2; meta++)
			cr_assert_eq(pwrite(fd, &root, sizeof(root), meta * page + ROOT), sizeof(root));
		for (int mode = 0; mode < 2; mode++) {
			struct txn *txn = NULL;
			uint64_t n;

			options.mode = mode ? ENV_WRITE : ENV_READ;
			options.map_bytes = mode ? 16u << 20 : 0;
			int r = env_open(scratch_path("e"), &options, &env);
			if (r == 0 && txn_begin_read(env, &txn) == 0)
				r = txn_count(txn, 0, &n);
			txn_abort(&txn);
			env_close(&env);
			cr_assert(r == 0 || r == ERR_CORRUPT || r == ERR_NO_STORE, "page %d: %s", (int)root, err_text(r));
			if (mode && r == 0)
				break; /* the right one, or what looks like it, and it was written to */
		}
	}
	(void)close(fd);
}

/* Returns the number of the newest state; 0: the environment is refused, with a sentence, and *RET_CODE says why. */
static uint64_t newest_of(const char *name, enum env_mode mode, int *ret_code)
{
	struct env_options options = {.mode = mode, .databases = databases, .n_databases = 2, .places = places_of()};
	struct env *env = NULL;
	struct txn *txn = NULL;
	uint64_t id = 0;
	int r = env_open(scratch_path(name), &options, &env);

	if (r == 0 && txn_begin_read(env, &txn) == 0)
		id = txn_id(txn);
	cr_assert(id || *err_text(r));
	txn_abort(&txn);
	env_close(&env);
	if (ret_code)
		*ret_code = r;
	return id;
}

static uint64_t newest_or_damaged(const char *name)
{
	int r;
	uint64_t id = newest_of(name, ENV_READ, &r);

	cr_assert(id || r == ERR_CORRUPT || r == ERR_FORMAT || r == -ENOMEM, "%s", err_text(r));
	return id;
}

/* LMDB believes the numbers in its two meta pages. A changed byte must not make an older state the newest. */
Test(env, a_changed_byte_of_a_meta_page_never_leads_to_an_older_state)
{
	enum { META_BYTES = 152 };
	struct env *env = open_env("e", ENV_WRITE);
	long page = sysconf(_SC_PAGESIZE);
	unsigned refused = 0;

	/* As many, so that a changed bit of either number makes the other one the larger. */
	for (int i = 0; i < 6; i++)
		put(env, (const char[]){(char)('A' + i), '\0'}, 500);
	env_close(&env);
	uint64_t newest = newest_or_damaged("e");
	cr_assert_eq(newest, 7);
	int fd = open(scratch_path("e/data.mdb"), O_RDWR | O_CLOEXEC);
	for (off_t at = 0; at < page + META_BYTES; at += at == META_BYTES - 1 ? page - META_BYTES + 1 : 1)
		for (unsigned bit = 0; bit < 10; bit++) {
			uint8_t byte, changed;

			cr_assert_eq(pread(fd, &byte, 1, at), 1);
			changed = bit < 8 ? byte ^ (uint8_t)(1u << bit) : bit == 8 ? 0 : 0xff;
			cr_assert_eq(pwrite(fd, &changed, 1, at), 1);
			uint64_t id = newest_or_damaged("e");
			cr_assert(id == 0 || id == newest, "byte %d, %02x to %02x: state %d", (int)at, byte, changed, (int)id);
			refused += id == 0;
			cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
		}
	cr_assert_gt(refused, 100);
	cr_assert_eq(newest_or_damaged("e"), newest);
	(void)close(fd);
}

Test(env, a_map_of_any_size_is_opened_again)
{
	struct env_options options = {.mode = ENV_WRITE, .databases = databases, .n_databases = 2, .map_bytes = (16u << 20) + 1,
		.file_mode = 0600, .places = places_of()};
	struct env *env = NULL;

	(void)mkdir(scratch_path("e"), 0700);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(env_open(scratch_path("e"), &options, &env), 0, "%s", err_text(-1));
		put(env, "a", 10);
		env_close(&env);
	}
	cr_assert_eq(newest_or_damaged("e"), 3);
}

/* Opens it and reads KEY. Returns the first byte of its value; 0: an error, or there is none. */
static char read_key(const char *name, const char *key)
{
	struct env_options options = {.mode = ENV_READ, .databases = databases, .n_databases = 2, .places = places_of()};
	struct env *env = NULL;
	struct txn *txn = NULL;
	struct bytes value;
	char first = 0;

	if (env_open(scratch_path(name), &options, &env) == 0 && txn_begin_read(env, &txn) == 0 &&
		txn_get(txn, 0, bytes_str(key), &value) == FOUND)
		first = *(const char *)value.data;
	txn_abort(&txn);
	env_close(&env);
	return first;
}

/* Pages that were replaced stay in the file. A changed number of a page must not lead back to one of them. */
Test(env, a_changed_byte_of_a_page_never_leads_to_the_row_that_was_there_before)
{
	struct env *env = open_env("e", ENV_WRITE);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned missed = 0;
	struct stat st;
	char key[8];

	for (int i = 0; i < 300; i++) {
		(void)snprintf(key, sizeof(key), "%03d", i);
		put(env, key, 100);
	}
	for (int i = 0; i < 20; i++)
		put(env, "150", 100 + (size_t)i);
	struct txn *txn = NULL;
	cr_assert_eq(txn_begin_write(env, &txn), 0);
	cr_assert_eq(txn_put(txn, 0, BYTES_LIT("150"), BYTES_LIT("!"), 0), 0);
	cr_assert_eq(txn_commit(&txn), 0);
	env_close(&env);
	cr_assert_eq(read_key("e", "150"), '!');
	int fd = open(scratch_path("e/data.mdb"), O_RDWR | O_CLOEXEC);
	cr_assert_eq(fstat(fd, &st), 0);
	uint8_t *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(bytes, MAP_FAILED);
	const uint8_t *meta = bytes + (le64_get(bytes + 144) > le64_get(bytes + page + 144) ? 0 : page);
	size_t table = le64_get(meta + 128) * page, row = table + le16_get(bytes + table + 16), root = row + 8 + 3 + 40;
	size_t branch = le64_get(bytes + root) * page;
	cr_assert(memcmp(bytes + row + 8, "one", 3) == 0 && (bytes[branch + 10] & 1), "its root is a branch");
	size_t nodes = (le16_get(bytes + branch + 12) - 16u) / 2;
	for (size_t i = 0; i < 8 + 6 * nodes; i++) {
		size_t node = i < 8 ? 0 : branch + le16_get(bytes + branch + 16 + (i - 8) / 6 * 2);
		size_t at = i < 8 ? root + i : node + (i - 8) % 6;

		for (unsigned bit = 0; bit < 10; bit++) {
			uint8_t before = bytes[at];

			bytes[at] = bit < 8 ? before ^ (uint8_t)(1u << bit) : bit == 8 ? 0 : 0xff;
			char read = read_key("e", "150");
			cr_assert(!read || read == '!', "byte %zu of page %zu, %02x to %02x", at % page, at / page, before, bytes[at]);
			missed += !read;
			bytes[at] = before;
		}
	}
	cr_assert_gt(missed, 100);
	cr_assert_eq(read_key("e", "150"), '!');
	le16_put(bytes + branch + 12, (uint16_t)(le16_get(bytes + branch + 12) - 2)); /* the last row of the page */
	cr_assert_eq(newest_or_damaged("e"), 0);
	(void)munmap(bytes, (size_t)st.st_size);
	(void)close(fd);
}

static void must_be_refused(uint8_t *byte)
{
	int r;

	*byte ^= 1;
	cr_assert(newest_of("e", ENV_WRITE, &r) == 0 && r == ERR_CORRUPT, "%s", r < 0 ? err_text(r) : "it is opened");
	*byte ^= 1;
}

/* A row that its key does not lead to any more: its daemon would look for it for ever. */
Test(env, a_writer_refuses_keys_that_do_not_lead_to_their_rows)
{
	struct env *env = open_env("e", ENV_WRITE);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned n_branches = 0, n_leaves = 0;
	struct stat st;
	char key[8];

	for (int i = 0; i < 300; i++) {
		(void)snprintf(key, sizeof(key), "%03d", i);
		put(env, key, i % 50 ? 100 : 5000);
	}
	env_close(&env);
	int fd = open(scratch_path("e/data.mdb"), O_RDWR | O_CLOEXEC);
	cr_assert_eq(fstat(fd, &st), 0);
	uint8_t *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(bytes, MAP_FAILED);
	const uint8_t *meta = bytes + (le64_get(bytes + 144) > le64_get(bytes + page + 144) ? 0 : page);
	uint8_t *table = bytes + le64_get(meta + 128) * page, *branch = bytes + le64_get(table + le16_get(table + 16) + 8 + 3 + 40) * page;
	cr_assert(branch[10] & 1);
	for (size_t at = 18; at < le16_get(branch + 12); at += 2, n_branches++)
		must_be_refused(branch + le16_get(branch + at) + 8 + 2);
	uint8_t *leaf = bytes + le32_get(branch + le16_get(branch + 18)) * page;
	for (size_t at = 16; at < le16_get(leaf + 12); at += 2, n_leaves++)
		must_be_refused(leaf + le16_get(leaf + at) + 8 + 2);
	cr_assert(n_branches > 4 && n_leaves > 10);
	le16_put(leaf + 12, (uint16_t)(le16_get(leaf + 12) - 2)); /* hides the last row of the page */
	int r;
	cr_assert(newest_of("e", ENV_WRITE, &r) == 0 && r == ERR_CORRUPT);
	(void)munmap(bytes, (size_t)st.st_size);
	(void)close(fd);
}

/* Else it takes the map for full, LMDB maps more than there are addresses, or an assertion of LMDB's ends it. */
Test(env, a_writer_refuses_counts_and_flags_that_cannot_be)
{
	struct env *env = open_env("e", ENV_WRITE);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct stat st;

	for (int i = 0; i < 3; i++)
		put(env, "key", 5000);
	env_close(&env);
	int fd = open(scratch_path("e/data.mdb"), O_RDWR | O_CLOEXEC);
	cr_assert_eq(fstat(fd, &st), 0);
	uint8_t *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(bytes, MAP_FAILED);
	uint8_t *meta = bytes + (le64_get(bytes + 144) > le64_get(bytes + page + 144) ? 0 : page);
	uint8_t *table = bytes + le64_get(meta + 128) * page;
	uint8_t *counts[] = {meta + 40 + 24, meta + 88 + 24, table + le16_get(table + 16) + 8 + 3 + 24};
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		for (size_t at = 2; at < 8; at++)
			must_be_refused(counts[i] + at);
	counts[0][7] ^= 1;
	struct env_info info;
	env = open_env("e", ENV_READ);
	cr_assert(env_info(env, &info) == 0 && info.used_bytes <= info.file_bytes, "a reader believes no more than the file's length");
	env_close(&env);
	counts[0][7] ^= 1;
	for (size_t at = 3; at < 8; at++)
		must_be_refused(meta + 136 + at);
	uint8_t *flags[] = {bytes + 40 + 4, bytes + 88 + 4, bytes + page + 40 + 4, bytes + page + 88 + 4, table + le16_get(table + 16) + 8 + 3 + 4};
	for (size_t i = 0; i < 2 * ARRAY_SIZE(flags); i++)
		must_be_refused(flags[i / 2] + i % 2);
	(void)munmap(bytes, (size_t)st.st_size);
	(void)close(fd);
	cr_assert_gt(newest_or_damaged("e"), 0);
}

/* The flags of the list of free pages are changed after the file was opened, when they were checked. */
static void change_flags_and_write(uint8_t flags)
{
	struct env *env = open_env("e", ENV_WRITE);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = open(scratch_path("e/data.mdb"), O_RDWR | O_CLOEXEC), r = 0;

	for (off_t meta = 0; meta < 2; meta++)
		if (pwrite(fd, &flags, 1, meta * (off_t)page + 40 + 4) != 1)
			_exit(1);
	for (int i = 0; i < 20 && r == 0; i++) {
		struct txn *txn = NULL;

		r = txn_begin_write(env, &txn);
		if (r == 0)
			r = txn_put(txn, 0, BYTES_LIT("key"), BYTES(scratch_path("e"), 10), 0);
		if (r == 0)
			r = txn_commit(&txn);
		txn_abort(&txn);
	}
	_exit(0);
}

Test(env, an_assertion_of_lmdbs_is_noted_beside_the_file)
{
	cr_assert_not_null(scratch_path("e")); /* made once, before the child is */
	pid_t child = fork();
	if (child == 0)
		change_flags_and_write(0x0c); /* integer keys, several values of one */
	int status;
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "%x", status);
	AUTO_FD int folder = open(scratch_path("e"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	cr_assert_eq(damaged_count(folder), 1);
}

/* Pages are taken, freed and used again, of rows and of large values, and a killed writer leaves some. */
Test(env, trees_that_are_sound_are_never_refused)
{
	unsigned short seed[3] = {7};
	struct txn *txn = NULL;
	struct env *env = open_env("e", ENV_WRITE);
	char key[8];
	void *place;

	env_close(&env);
	for (int round = 0; round < 20; round++) {
		pid_t writer = fork();
		if (writer == 0) {
			env = open_env("e", ENV_WRITE);
			for (int commit = 0; commit < 20; commit++) {
				long keys = 1 + nrand48(seed) % (round % 4 ? 300 : 2000);
				cr_assert_eq(txn_begin_write(env, &txn), 0);
				for (long i = 0; i < keys; i++) {
					(void)snprintf(key, sizeof(key), "%04ld", nrand48(seed) % 3000);
					unsigned db = (unsigned)(nrand48(seed) % 2);
					if (nrand48(seed) % 8 < (round % 4 == 3 ? 7 : 3))
						(void)txn_del(txn, db, bytes_str(key));
					else
						cr_assert_eq(txn_reserve(txn, db, bytes_str(key),
							nrand48(seed) % 50 ? (size_t)nrand48(seed) % (commit % 2 ? 100 : 1500) : 6000, 0, &place), 0);
				}
				if (commit < 19) {
					cr_assert_eq(txn_commit(&txn), 0);
					cr_assert_eq(env_check(env), 0);
				}
			}
			_exit(0);
		}
		int status;
		cr_assert(waitpid(writer, &status, 0) == writer && status == 0);
		cr_assert_gt(newest_or_damaged("e"), 0, "round %d", round);
		seed[1]++;
	}
}

/* The writer has found its trees sound, and readers beside it need not do that again. */
Test(env, trees_are_checked_once_beside_a_writer)
{
	struct env *env = open_env("e", ENV_WRITE);
	char key[8];

	for (int i = 0; i < 300; i++) {
		(void)snprintf(key, sizeof(key), "%03d", i);
		put(env, key, 100);
	}
	env_close(&env);
	int ready[2], go[2];
	char byte;
	cr_assert_eq(pipe(ready) + pipe(go), 0);
	pid_t writer = fork();
	if (writer == 0) {
		env = open_env("e", ENV_WRITE);
		_exit(write(ready[1], "", 1) == 1 && read(go[0], &byte, 1) == 1 ? 0 : 1);
	}
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	int fd = open(scratch_path("e/data.mdb"), O_RDWR | O_CLOEXEC);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), table, root;
	uint8_t meta[2][152], row[4096];
	cr_assert_eq(pread(fd, meta[0], 152, 0) + pread(fd, meta[1], 152, (off_t)page), 304);
	table = le64_get(meta[le64_get(meta[1] + 144) > le64_get(meta[0] + 144)] + 128);
	cr_assert_eq(pread(fd, row, sizeof(row), (off_t)(table * page)), (ssize_t)sizeof(row));
	root = le64_get(row + le16_get(row + 16) + 8 + 3 + 40);
	cr_assert_eq(pread(fd, row, sizeof(row), (off_t)(root * page)), (ssize_t)sizeof(row));
	size_t first = le16_get(row + 16), second = le16_get(row + 18);
	memcpy(row + second, row + first, 4); /* one page in two places */
	cr_assert_eq(pwrite(fd, row, sizeof(row), (off_t)(root * page)), (ssize_t)sizeof(row));
	env = open_env("e", ENV_READ);
	cr_assert_eq(env_check(env), ERR_CORRUPT);
	env_close(&env);
	cr_assert_eq(write(go[1], "", 1), 1);
	cr_assert(waitpid(writer, NULL, 0) == writer);
	cr_assert_eq(newest_or_damaged("e"), 0);
	(void)close(fd);
}

/* ---- commits that were killed inside ---- */

/* The bytes of data.mdb after the last three commits, which made the states 4, 5 and 6. */
struct states {
	size_t page, size;
	uint8_t *bytes[3];
	int fd;
	struct pin_page *pins; /* of the environment */
};

static struct states states_make(void)
{
	struct env_options options = {.mode = ENV_WRITE, .databases = databases, .n_databases = 2, .map_bytes = 16u << 20,
		.file_mode = 0600, .places = places_of()};
	struct states s = {.page = (size_t)sysconf(_SC_PAGESIZE)};
	struct stat st;

	(void)mkdir(scratch_path("e"), 0700);
	for (int i = 0; i < 5; i++) {
		struct env *env = NULL;

		cr_assert_eq(env_open(scratch_path("e"), &options, &env), 0, "%s", err_text(-1));
		put(env, "a", 10 + (size_t)i);
		env_close(&env);
		if (i < 2)
			continue;
		s.fd = open(scratch_path("e/data.mdb"), O_RDWR | O_CLOEXEC);
		cr_assert(s.fd >= 0 && fstat(s.fd, &st) == 0);
		s.size = (size_t)st.st_size;
		s.bytes[i - 2] = malloc(s.size);
		cr_assert_eq(pread(s.fd, s.bytes[i - 2], s.size, 0), (ssize_t)s.size);
		cr_assert(i == 4 || close(s.fd) == 0);
	}
	int pins = open(scratch_path("e/pins"), O_RDWR | O_CLOEXEC);
	s.pins = mmap(NULL, PIN_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, pins, 0);
	cr_assert(s.pins != MAP_FAILED && s.pins->committed == 6);
	(void)close(pins);
	return s;
}

static void states_release(struct states *s)
{
	(void)munmap(s->pins, PIN_PAGE_BYTES);
	(void)close(s->fd);
	for (int i = 0; i < 3; i++)
		free(s->bytes[i]);
}

static size_t value_size(const char *name, enum env_mode mode)
{
	struct env_options options = {.mode = mode, .databases = databases, .n_databases = 2, .map_bytes = 16u << 20,
		.file_mode = 0600, .places = places_of()};
	struct env *env = NULL;
	struct txn *txn = NULL;
	struct bytes value;

	cr_assert_eq(env_open(scratch_path(name), &options, &env), 0, "%s", err_text(-1));
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("a"), &value), FOUND);
	txn_abort(&txn);
	env_close(&env);
	return value.size;
}

/* Checks a file whose state 6 is whole or was not begun, whatever its meta page looks like, and writes another state. */
static void check_sound(bool is_whole, bool is_half, const char *text, size_t step)
{
	enum env_mode mode = access(scratch_path("e/pins"), F_OK) == 0 ? ENV_READ : ENV_COPY;
	int code;
	uint64_t newest = newest_of("e", mode, &code);

	cr_assert_eq(newest, is_half ? 0 : is_whole ? 6 : 5, "%s, %zu: %d, %s", text, step, (int)newest, err_text(code));
	cr_assert(!is_half || code == ERR_LOCKED);
	cr_assert_eq(value_size("e", ENV_WRITE), is_whole ? 14 : 13, "%s, %zu", text, step);
	struct env *env = open_env("e", ENV_WRITE);
	put(env, "a", 99);
	env_close(&env);
	cr_assert_eq(newest_or_damaged("e"), is_whole ? 7 : 6, "%s, %zu", text, step);
	cr_assert_eq(value_size("e", ENV_READ), 99);
}

struct store_step {
	uint8_t from, size;
};

/* The order in which a commit stores the parts of a meta page, in place. LMDB's text, and what gcc made of it in Debian 12,
 * where the root of the table follows the number. */
static const struct store_step as_written[] = {
	{32, 8}, {40, 48}, {88, 16}, {104, 16}, {120, 8}, {128, 8}, {136, 8}, {144, 8}};
static const struct store_step as_compiled[] = {
	{40, 16}, {32, 8}, {56, 16}, {72, 16}, {88, 16}, {104, 16}, {136, 8}, {144, 8}, {120, 16}};

static void kill_inside(struct states *s, const struct store_step *steps, size_t n, bool with_pins, const char *text)
{
	uint8_t *newest = s->bytes[2]; /* state 6 is in meta page 0 */

	cr_assert_eq(le64_get(newest + 144), 6);
	for (size_t done = 0; done <= n; done++) {
		uint8_t meta[152];
		bool has_root = false, has_number = false;

		memcpy(meta, s->bytes[0], sizeof(meta));
		for (size_t i = 0; i < done; i++) {
			memcpy(meta + steps[i].from, newest + steps[i].from, steps[i].size);
			has_root |= steps[i].from <= 128 && steps[i].from + steps[i].size > 128;
			has_number |= steps[i].from == 144;
		}
		cr_assert_eq(pwrite(s->fd, newest, s->size, 0), (ssize_t)s->size);
		cr_assert_eq(pwrite(s->fd, meta, sizeof(meta), 0), (ssize_t)sizeof(meta));
		if (with_pins) {
			s->pins->began = 6;
			s->pins->committed = 5;
		} else {
			(void)unlink(scratch_path("e/pins"));
		}
		check_sound(has_root && has_number, has_number && !has_root, text, done);
	}
}

Test(env, a_commit_that_was_killed_inside_is_none_and_no_damage)
{
	struct states s = states_make();

	kill_inside(&s, as_written, ARRAY_SIZE(as_written), true, "as written");
	states_release(&s);
}

Test(env, a_commit_that_was_killed_inside_is_none_whatever_the_compiler_made)
{
	struct states s = states_make();

	kill_inside(&s, as_compiled, ARRAY_SIZE(as_compiled), true, "as compiled");
	states_release(&s);
}

Test(env, a_copy_of_a_commit_that_was_killed_inside_is_no_damage)
{
	struct states s = states_make();

	kill_inside(&s, as_written, ARRAY_SIZE(as_written), false, "as written");
	kill_inside(&s, as_compiled, ARRAY_SIZE(as_compiled), false, "as compiled");
	states_release(&s);
}

/* The killed commit's meta page stays until the next commit, which first uses its pages again. */
Test(env, pages_of_a_killed_commit_that_are_used_again_are_no_damage)
{
	struct states s = states_make();
	uint8_t *newest = s.bytes[2], number[8];
	size_t root = le64_get(newest + 128) * s.page, root_5 = le64_get(newest + s.page + 128) * s.page;

	le64_put(number, 4);
	for (int i = 0; i < 4; i++) {
		cr_assert_eq(pwrite(s.fd, newest, s.size, 0), (ssize_t)s.size);
		cr_assert_eq(pwrite(s.fd, number, 8, 144), 8);
		uint8_t *page = malloc(s.page);
		memcpy(page, newest + root_5, s.page); /* a copy of 5's table, not sealed yet */
		memcpy(page, newest + root, 8);
		if (i == 1)
			memset(page, 0, s.page);
		if (i == 2)
			memset(page, 0xff, s.page);
		if (i < 3)
			cr_assert_eq(pwrite(s.fd, page, s.page, (off_t)root), (ssize_t)s.page);
		free(page);
		s.pins->began = i == 3 ? 5 : 6; /* 3: another writer has started */
		s.pins->committed = 5;
		check_sound(false, false, "used again", (size_t)i);
	}
	states_release(&s);
}

/* After a power cut the pin page is of any age; and a data.mdb may have got the content of another one. */
Test(env, a_pin_page_of_any_age_makes_no_damage)
{
	struct states s = states_make();

	for (uint64_t committed = 0; committed <= 8; committed++)
		for (uint64_t began = committed; began <= committed + 1; began++) {
			cr_assert_eq(pwrite(s.fd, s.bytes[2], s.size, 0), (ssize_t)s.size);
			s.pins->committed = committed;
			s.pins->began = began;
			cr_assert_eq(value_size("e", ENV_WRITE), 14, "committed %d, began %d", (int)committed, (int)began);
			(void)munmap(s.pins, PIN_PAGE_BYTES);
			int pins = open(scratch_path("e/pins"), O_RDWR | O_CLOEXEC);
			s.pins = mmap(NULL, PIN_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, pins, 0);
			(void)close(pins);
			cr_assert_neq(s.pins, MAP_FAILED);
		}
	states_release(&s);
}

/* The number is one that a killed commit leaves, but the pin page knows that the commit was published. */
Test(env, a_published_state_is_not_taken_for_a_killed_commit)
{
	struct states s = states_make();
	uint8_t number[8];
	int code;

	le64_put(number, 4);
	cr_assert_eq(pwrite(s.fd, number, 8, 144), 8);
	cr_assert_eq(newest_of("e", ENV_READ, &code), 0);
	cr_assert_eq(code, ERR_CORRUPT);
	cr_assert_eq(newest_of("e", ENV_WRITE, &code), 0);
	cr_assert_eq(code, ERR_CORRUPT, "%s", err_text(code));
	states_release(&s);
}

/* ---- files of earlier versions ---- */

/* A file of an earlier version has no seal, until something is committed to it. */
Test(env, a_file_without_seals_is_read_and_gets_them)
{
	static const char seal[] = "seal";
	struct env *env = open_env("e", ENV_WRITE);
	struct stat st;

	put(env, "a", 10);
	put(env, "b", 10);
	env_close(&env);
	int fd = open(scratch_path("e/data.mdb"), O_RDWR | O_CLOEXEC);
	cr_assert_eq(fstat(fd, &st), 0);
	char *bytes = mmap(NULL, 1u << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(bytes, MAP_FAILED);
	for (char *at = bytes; (at = memmem(at, (size_t)(bytes + st.st_size - at), seal, 4)); at++)
		at[3] = 'm';
	cr_assert_eq(newest_or_damaged("e"), 3);
	env = open_env("e", ENV_WRITE);
	put(env, "c", 10);
	env_close(&env);
	cr_assert_eq(newest_or_damaged("e"), 4, "one of both has its seal");
	env = open_env("e", ENV_WRITE);
	put(env, "d", 10);
	env_close(&env);
	cr_assert_eq(newest_or_damaged("e"), 5);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_assert_not_null(memmem(bytes, (size_t)st.st_size, seal, 4));
	bytes[sysconf(_SC_PAGESIZE) + 144] ^= 4; /* the number of the newest state, 5 */
	cr_assert_eq(newest_or_damaged("e"), 0);
	(void)munmap(bytes, 1u << 20);
	(void)close(fd);
}

/* An earlier version leaves the row as it is. */
Test(env, what_an_earlier_version_wrote_after_this_one_is_read)
{
	struct states s = states_make();
	uint8_t *newest = s.bytes[2], number[8], seal[12] = "seal";

	le64_put(seal + 4, 6);
	uint8_t *last = memmem(newest, s.size, seal, sizeof(seal));
	le64_put(seal + 4, 5);
	uint8_t *before = memmem(newest, s.size, seal, sizeof(seal));
	cr_assert(last && before);
	for (uint64_t sealed = 4; sealed <= 5; sealed++) { /* the state after which it wrote one, or two */
		le64_put(number, sealed);
		memcpy(last + 4, number, 8);
		memcpy(before + 4, number, 8);
		cr_assert_eq(pwrite(s.fd, newest, s.size, 0), (ssize_t)s.size);
		check_sound(true, false, "an earlier version", (size_t)sealed);
	}
	states_release(&s);
}

Test(env, copy_is_read_without_lock)
{
	struct env *env = open_env("e", ENV_WRITE);
	struct env_info info;

	put(env, "a", 1);
	env_close(&env);
	cr_assert_eq(unlink(scratch_path("e/lock.mdb")), 0);
	env = open_env("e", ENV_COPY);
	cr_assert_eq(env_info(env, &info), 0);
	cr_assert_eq(info.readers, 0);
	cr_assert_neq(access(scratch_path("e/lock.mdb"), F_OK), 0, "nothing was written");
	env_close(&env);
}

Test(env, used_bytes_do_not_count_free_pages)
{
	struct env *env = open_env("e", ENV_WRITE);
	struct env_info before, full, after;
	struct txn *txn = NULL;

	cr_assert_eq(env_info(env, &before), 0);
	put(env, "a", 1u << 20);
	cr_assert_eq(env_info(env, &full), 0);
	cr_assert_geq(full.used_bytes, before.used_bytes + (1u << 20));
	cr_assert_eq(full.map_bytes, 16u << 20);
	cr_assert_gt(full.last_txn, before.last_txn);
	cr_assert_eq(txn_begin_write(env, &txn), 0);
	cr_assert_eq(txn_del(txn, 0, BYTES_LIT("a")), FOUND);
	cr_assert_eq(txn_del(txn, 0, BYTES_LIT("a")), NOT_FOUND);
	cr_assert_eq(txn_commit(&txn), 0);
	cr_assert_eq(env_info(env, &after), 0);
	cr_assert_lt(after.used_bytes, before.used_bytes + 5 * env_page_size(env));
	cr_assert_geq(after.file_bytes, full.file_bytes);
	env_close(&env);
}

static int remember_pid(void *arg, const struct env_reader *reader)
{
	if (reader->txn)
		*(int32_t *)arg = reader->pid;
	return 0;
}

Test(env, readers_are_listed_with_their_snapshots)
{
	struct env *env = open_env("e", ENV_WRITE);
	struct txn *txn = NULL;
	int32_t pid = 0;

	put(env, "a", 1);
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	cr_assert_eq(env_each_reader(env, remember_pid, &pid), 0);
	cr_assert_eq(pid, getpid());
	pid = 0;
	txn_reset(txn);
	cr_assert_eq(env_each_reader(env, remember_pid, &pid), 0);
	cr_assert_eq(pid, 0);
	txn_abort(&txn);
	env_close(&env);
}

static const struct env_options in_place = {.mode = ENV_WRITE, .databases = databases, .n_databases = 2,
	.map_bytes = (uint64_t)1 << 30, .file_mode = 0640, .writemap = true};

static struct env *open_writemap(const char *name)
{
	struct env *env = NULL;

	(void)mkdir(scratch_path(name), 0700);
	int r = env_open(scratch_path(name), &in_place, &env);
	cr_assert_eq(r, 0, "%s", err_text(r));
	return env;
}

static struct stat file_of(const char *path)
{
	struct stat st;

	cr_assert_eq(stat(scratch_path(path), &st), 0);
	return st;
}

/* Returns the page faults of a transaction that writes SIZE bytes of C under a new key. */
static long faults_of_write(struct env *env, const char *key, size_t size, char c)
{
	struct rusage before, after;
	struct txn *txn = NULL;
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
	uint8_t *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), there = 0;
	bool populates = madvise(memory, size, 23) == 0 && mincore(memory, size, &there) == 0 && (there & 1);

	(void)munmap(memory, size);
	return populates;
}

Test(env, pages_that_were_touched_while_the_writer_was_idle_cost_no_fault)
{
	const long pages = (192 << 10) / (long)sysconf(_SC_PAGESIZE);
	struct env *env = open_writemap("w");
	struct txn *txn = NULL;
	struct bytes value;

	if (!madvise_populates())
		cr_skip("this kernel has no MADV_POPULATE_WRITE");
	(void)faults_of_write(env, "first", 1 << 20, '1');
	cr_assert_geq(faults_of_write(env, "cold", 192 << 10, '2'), pages);
	env_prepare(env);
	env_prepare(env);
	cr_assert_leq(faults_of_write(env, "warm", 192 << 10, '3'), pages / 2);
	struct stat st = file_of("w/data.mdb");
	cr_assert_geq((int64_t)st.st_blocks * 512, st.st_size);
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("warm"), &value), FOUND);
	cr_assert_eq(((const char *)value.data)[value.size - 1], '3');
	txn_abort(&txn);
	env_close(&env);
}

/* A page without a block is a SIGBUS, and so is a page beyond the end of the file. */
Test(env, a_file_written_in_place_is_as_long_as_what_it_holds_and_some_more)
{
	struct env *env = open_writemap("w");
	struct txn *txn = NULL;
	struct bytes value;
	uint64_t place, held = 0;
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
		cr_assert_leq(st.st_size, (int64_t)held + (int64_t)held / 8 + begin, "inside the transaction");
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
	cr_assert_leq(file_of("w/data.mdb").st_size, (int64_t)held + begin, "nothing ahead after its writer has closed it");
	env = open_writemap("w");
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	cr_assert_eq(txn_get(txn, 0, BYTES_LIT("67108864"), &value), FOUND);
	cr_assert_eq(value.size, 64u << 20);
	txn_abort(&txn);
	put(env, "b", 1u << 20);
	env_close(&env);
}

Test(env, blocks_of_an_aborted_transaction_are_given_back)
{
	struct env *env = open_writemap("w");
	struct txn *txn = NULL;
	void *room;

	cr_assert_eq(txn_begin_write(env, &txn), 0);
	cr_assert_eq(txn_reserve(txn, 0, BYTES_LIT("a"), 100u << 20, 0, &room), 0);
	memset(room, 1, 100u << 20);
	cr_assert_geq(file_of("w/data.mdb").st_size, 100 << 20);
	txn_abort(&txn);
	cr_assert_leq(file_of("w/data.mdb").st_size, 2 << 20);
	cr_assert_leq(file_of("w/data.mdb").st_blocks * 512, 2 << 20);
	put(env, "b", 10u << 20);
	env_close(&env);
}

/* A batch reserves several times what it writes in the end. The rest would keep the disk full for the other database. */
Test(env, blocks_that_a_transaction_reserved_and_did_not_use_are_given_back)
{
	struct env *env = open_writemap("w");
	struct txn *txn = NULL;

	put(env, "c", 8u << 20);
	cr_assert_eq(txn_begin_write(env, &txn), 0);
	cr_assert_eq(txn_allocate(txn, 20u << 20), 0);
	cr_assert_geq(file_of("w/data.mdb").st_blocks * 512, 20 << 20);
	cr_assert_eq(txn_put(txn, 0, BYTES_LIT("a"), BYTES_LIT("1"), 0), 0);
	cr_assert_eq(txn_commit(&txn), 0);
	cr_assert_leq(file_of("w/data.mdb").st_blocks * 512, 12 << 20);
	put(env, "b", 10u << 20);
	env_close(&env);
}

/* Each step reserves the most that it can take. Together they may not reserve much more than they have written. */
Test(env, many_small_steps_reserve_little_more_than_they_write)
{
	enum { STEPS = 2000, STEP = 27 << 10, VALUE = 3000 };
	struct env *env = open_writemap("w");
	struct txn *txn = NULL;
	static const uint8_t value[VALUE];
	uint8_t key[4];

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
	env_close(&env);
}

Test(env, blocks_that_a_killed_writer_reserved_are_given_back)
{
	struct env *env = open_writemap("w");
	int status;

	put(env, "c", 8u << 20);
	env_close(&env);
	pid_t child = fork();
	if (child == 0) {
		struct txn *txn = NULL;
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
	cr_assert_leq(file_of("w/data.mdb").st_blocks * 512, (8 << 20) + 1024 * (off_t)env_page_size(env));
	put(env, "b", 10u << 20);
	env_close(&env);
}

/* An older version made the file as long as the map; so does a copy of its store. */
Test(env, a_hole_after_the_newest_state_is_cut_off)
{
	struct env *env = open_writemap("w");

	put(env, "a", 1u << 20);
	env_close(&env);
	cr_assert_eq(truncate(scratch_path("w/data.mdb"), 1 << 30), 0);
	env = open_writemap("w");
	cr_assert_leq(file_of("w/data.mdb").st_size, (1 << 20) + 512 * (off_t)env_page_size(env));
	env_close(&env);
}

#define CHILD_REQUIRES(condition)              \
	do {                                   \
		if (!(condition))              \
			_exit(__LINE__ - 400); \
	} while (0)

static void child_put(struct env *env, const char *key, size_t size)
{
	struct txn *txn = NULL;
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
	struct env *env = NULL;
	struct txn *txn = NULL;
	struct bytes value;
	struct stat st;
	char uid[32], gid[32];
	void *room;

	(void)snprintf(uid, sizeof(uid), "0 %u 1\n", geteuid());
	(void)snprintf(gid, sizeof(gid), "0 %u 1\n", getegid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 || !child_writes("/proc/self/uid_map", uid) ||
		!child_writes("/proc/self/setgroups", "deny") || !child_writes("/proc/self/gid_map", gid) ||
		mount("tmpfs", path, "tmpfs", 0, "size=8m") < 0)
		_exit(255);
	CHILD_REQUIRES(mkdir(directory, 0700) == 0 && env_open(directory, &in_place, &env) == 0);
	child_put(env, "a", 1u << 20);
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
		child_put(env, "small", 1000);
	}
	CHILD_REQUIRES(mount("", path, "", MS_REMOUNT, "size=80m") == 0);
	child_put(env, "b", 20u << 20);
	CHILD_REQUIRES(txn_begin_read(env, &txn) == 0);
	CHILD_REQUIRES(txn_get(txn, 0, BYTES_LIT("b"), &value) == FOUND);
	CHILD_REQUIRES(value.size == 20u << 20 && ((const char *)value.data)[value.size - 1] == 'b');
	CHILD_REQUIRES(txn_get(txn, 0, BYTES_LIT("small"), &value) == FOUND);
	txn_abort(&txn);
	env_close(&env);
	_exit(0);
}

Test(env, a_full_disk_fails_the_transaction_and_no_more)
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

#ifdef KINF_FAILPOINTS
/* On btrfs the last write of a commit can be the one that finds the disk full. */
Test(env, a_meta_page_that_finds_the_disk_full_fails_the_transaction_and_no_more)
{
	for (int durable = 0; durable < 2; durable++) {
		struct env_options options = {.mode = ENV_WRITE, .databases = databases, .n_databases = 2,
			.map_bytes = 16u << 20, .file_mode = 0600, .durable = durable, .places = places_of()};
		const char *path = scratch_path(durable ? "durable" : "fast");
		struct env *env = NULL;
		struct txn *txn = NULL;
		struct bytes value;

		cr_assert_eq(mkdir(path, 0700), 0);
		cr_assert_eq(env_open(path, &options, &env), 0);
		put(env, "a", 1000);
		for (int i = 0; i < 3; i++) {
			cr_assert_eq(txn_begin_write(env, &txn), 0);
			cr_assert_eq(txn_put(txn, 0, BYTES_LIT("b"), BYTES_LIT("lost"), 0), 0);
			cr_assert_eq(setenv("KINF_FAIL", "env.meta:1:error=ENOSPC", 1) | failpoint_setup(), 0);
			cr_assert_eq(txn_commit(&txn), -ENOSPC);
			cr_assert_eq(unsetenv("KINF_FAIL") | failpoint_setup(), 0);
			cr_assert_eq(txn_begin_read(env, &txn), 0);
			cr_assert_eq(txn_get(txn, 0, BYTES_LIT("a"), &value), FOUND);
			cr_assert_eq(txn_get(txn, 0, BYTES_LIT("b"), &value), NOT_FOUND);
			txn_abort(&txn);
			for (int more = 0; more < i; more++) /* the next one fails at the other meta page */
				put(env, "a", 5000);
		}
		env_close(&env);
		env = open_env(durable ? "durable" : "fast", ENV_READ);
		cr_assert_eq(txn_begin_read(env, &txn), 0);
		cr_assert_eq(txn_get(txn, 0, BYTES_LIT("a"), &value), FOUND);
		cr_assert_eq(value.size, 5000);
		txn_abort(&txn);
		env_close(&env);
	}
}
#endif

/* A daemon ends after its store was removed and another one was made at the same path. */
Test(env, closing_touches_no_other_file_that_has_the_path_now)
{
	struct env_options options = {.mode = ENV_WRITE, .databases = databases, .n_databases = 2,
		.map_bytes = 64u << 20, .file_mode = 0600, .writemap = true};
	char path[512], moved[512];
	struct env *old = NULL, *new = NULL;
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s", scratch_path("w"));
	(void)snprintf(moved, sizeof(moved), "%s", scratch_path("away"));
	cr_assert_eq(mkdir(path, 0700), 0);
	cr_assert_eq(env_open(path, &options, &old), 0);
	cr_assert_eq(rename(path, moved), 0);
	cr_assert_eq(mkdir(path, 0700), 0);
	cr_assert_eq(env_open(path, &options, &new), 0);
	put(new, "a", 1u << 20);
	env_close(&old);
	cr_assert_eq(stat(scratch_path("w/data.mdb"), &st), 0);
	cr_assert_geq(st.st_size, 1 << 20, "of %lld bytes", (long long)st.st_size);
	put(new, "b", 1u << 20);
	env_close(&new);
	cr_assert_eq(stat(scratch_path("away/data.mdb"), &st), 0);
	cr_assert_leq(st.st_size, 1 << 20, "its own is cut");
}

Test(env, larger_map_is_adopted_by_readers)
{
	struct env *reader = NULL;
	int ready[2], go[2];
	char byte;

	struct env *env = open_env("e", ENV_WRITE);
	put(env, "a", 1u << 20);
	env_close(&env);
	cr_assert_eq(pipe(ready), 0);
	cr_assert_eq(pipe(go), 0);
	pid_t child = fork();
	if (child == 0) {
		struct txn *txn = NULL, *other = NULL;
		struct bytes value;
		reader = open_env("e", ENV_READ);
		bool good = txn_begin_read(reader, &txn) == 0 && txn_begin_read(reader, &other) == 0;
		good = good && write(ready[1], "r", 1) == 1 && read(go[0], &byte, 1) == 1;
		txn_reset(txn);
		good = good && txn_renew(txn) == -EBUSY; /* the other one still reads the old map */
		txn_reset(other);
		good = good && txn_renew(txn) == 0 && txn_renew(other) == 0 &&
			txn_get(txn, 0, BYTES_LIT("b"), &value) == FOUND && value.size == 30u << 20;
		_exit(good ? 0 : 1);
	}
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	struct env_options options = {.mode = ENV_WRITE, .databases = databases, .n_databases = 2,
		.map_bytes = 64u << 20, .file_mode = 0600};
	cr_assert_eq(env_open(scratch_path("e"), &options, &env), 0);
	put(env, "b", 30u << 20);
	cr_assert_eq(write(go[1], "g", 1), 1);
	int status;
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	env_close(&env);
}

Test(env, library_versions_that_destroy_locks_are_known)
{
	cr_assert_null(env_version_fault(0, 9, 24));
	cr_assert_not_null(env_version_fault(0, 9, 26));
	cr_assert_not_null(env_version_fault(0, 9, 31));
	cr_assert_null(env_version_fault(0, 9, 32));
	cr_assert_null(env_version_fault(1, 9, 29));
	(void)env_library_fault();
}
