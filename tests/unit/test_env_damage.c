/* SPDX-License-Identifier: Apache-2.0 */
/* Environments with a damaged file: it is an error, and nothing older or false is read. */
#include <signal.h>
#include <sys/mman.h>

#include "common/bytes.h"
#include "store/env/state.h"
#include "tests/unit/env_rig.h"
#include "tests/unit/page_rig.h"
#include "tests/unit/rows.h"

Test(env_damage, cut_and_garbled_files_are_told)
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

/* LMDB checks nothing of it, and aborts the process when the tables of the file are not where it
 * says. */
Test(env_damage, a_state_that_begins_at_another_page_is_an_error)
{
	enum {
		META = 16,
		ROOT = META + 24 + 48 + 40
	}; /* of the table of databases, in a meta page */
	struct env_options options = {
		.mode = ENV_READ, .databases = databases, .n_databases = 2, .places = places_of()};
	struct env *env = open_env("e", ENV_WRITE);
	long page = (long)database_page();

	for (int i = 0; i < 50; i++)
		put(env, (const char[]){(char)('A' + i), '\0'}, 500);
	env_close(&env);
	AUTO_FD int fd = open(scratch_path("e/data.mdb"), O_RDWR | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	for (uint64_t root = 0; root < 8; root++) {
		for (int meta = 0; meta < 2; meta++)
			cr_assert_eq(
				pwrite(fd, &root, sizeof(root), meta * page + ROOT), sizeof(root));
		for (int mode = 0; mode < 2; mode++) {
			struct txn *txn = NULL;
			uint64_t n;

			options.mode = mode ? ENV_WRITE : ENV_READ;
			options.map_bytes = mode ? 16u << 20 : 0;
			int r = env_open(scratch_path("e"), &options, &env);
			if (r == 0 && txn_begin_read(env, &txn) == 0)
				r = count_rows(txn, 0, &n);
			txn_abort(&txn);
			env_close(&env);
			cr_assert(r == 0 || r == ERR_CORRUPT || r == ERR_NO_STORE, "page %d: %s",
				(int)root, err_text(r));
			if (mode && r == 0)
				/* the right page or a lookalike, and it was written to */
				break;
		}
	}
}

/* LMDB believes the numbers in its two meta pages. A changed byte must not make an older state
 * the newest. */
Test(env_damage, a_changed_byte_of_a_meta_page_never_leads_to_an_older_state)
{
	enum { META_BYTES = 152 };
	struct env *env = open_env("e", ENV_WRITE);
	long page = (long)database_page();
	unsigned refused = 0;

	/* Equal counts: a changed bit of either number makes the other one the larger. */
	for (int i = 0; i < 6; i++)
		put(env, (const char[]){(char)('A' + i), '\0'}, 500);
	env_close(&env);
	uint64_t newest = newest_or_damaged("e");
	cr_assert_eq(newest, 7);
	AUTO_FD int fd = open(scratch_path("e/data.mdb"), O_RDWR | O_CLOEXEC);
	for (off_t at = 0; at < page + META_BYTES;
		at += at == META_BYTES - 1 ? page - META_BYTES + 1 : 1)
		for (unsigned bit = 0; bit < 10; bit++) {
			uint8_t byte, changed;

			cr_assert_eq(pread(fd, &byte, 1, at), 1);
			changed = bit < 8 ? byte ^ (uint8_t)(1u << bit) : bit == 8 ? 0 : 0xff;
			cr_assert_eq(pwrite(fd, &changed, 1, at), 1);
			uint64_t id = newest_or_damaged("e");
			cr_assert(id == 0 || id == newest, "byte %d, %02x to %02x: state %d",
				(int)at, byte, changed, (int)id);
			refused += id == 0;
			cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
		}
	cr_assert_gt(refused, 100);
	cr_assert_eq(newest_or_damaged("e"), newest);
}

/* Replaced pages stay in the file. A changed number of a page must not lead back to one of them. */
Test(env_damage, a_changed_byte_of_a_page_never_leads_to_the_row_that_was_there_before)
{
	struct env *env = open_env("e", ENV_WRITE);
	size_t page = database_page();
	unsigned missed = 0;
	struct stat st;
	char key[8];

	for (int i = 0; i < 300; i++) {
		(void)snprintf(key, sizeof(key), "%03d", i);
		put(env, key, page / 40);
	}
	for (int i = 0; i < 20; i++)
		put(env, "150", page / 40 + (size_t)i);
	struct txn *txn = NULL;
	cr_assert_eq(txn_begin_write(env, &txn), 0);
	cr_assert_eq(txn_put(txn, 0, BYTES_LIT("150"), BYTES_LIT("!"), 0), 0);
	cr_assert_eq(txn_commit(&txn), 0);
	env_close(&env);
	cr_assert_eq(read_key("e", "150"), '!');
	AUTO_FD int fd = open(scratch_path("e/data.mdb"), O_RDWR | O_CLOEXEC);
	cr_assert_eq(fstat(fd, &st), 0);
	uint8_t *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(bytes, MAP_FAILED);
	const uint8_t *meta =
		bytes + (le64_get(bytes + 144) > le64_get(bytes + page + 144) ? 0 : page);
	size_t table = le64_get(meta + 128) * page, row = table + le16_get(bytes + table + 16),
	       root = row + 8 + 3 + 40;
	size_t branch = le64_get(bytes + root) * page;
	cr_assert(memcmp(bytes + row + 8, "one", 3) == 0 && (bytes[branch + 10] & 1),
		"its root is a branch");
	size_t nodes = (le16_get(bytes + branch + 12) - 16u) / 2;
	for (size_t i = 0; i < 8 + 6 * nodes; i++) {
		size_t node = i < 8 ? 0 : branch + le16_get(bytes + branch + 16 + (i - 8) / 6 * 2);
		size_t at = i < 8 ? root + i : node + (i - 8) % 6;

		for (unsigned bit = 0; bit < 10; bit++) {
			uint8_t before = bytes[at];

			bytes[at] = bit < 8 ? before ^ (uint8_t)(1u << bit) : bit == 8 ? 0 : 0xff;
			char read = read_key("e", "150");
			cr_assert(!read || read == '!', "byte %zu of page %zu, %02x to %02x",
				at % page, at / page, before, bytes[at]);
			missed += !read;
			bytes[at] = before;
		}
	}
	cr_assert_gt(missed, 100);
	cr_assert_eq(read_key("e", "150"), '!');
	le16_put(bytes + branch + 12,
		(uint16_t)(le16_get(bytes + branch + 12) - 2)); /* the last row of the page */
	cr_assert_eq(newest_or_damaged("e"), 0);
	(void)munmap(bytes, (size_t)st.st_size);
}

/* A page damaged during a read: its rows may seem to lie, or to end, beyond the file. */
Test(env_damage, a_row_beyond_the_file_is_damage)
{
	CLEANUP(env_close) struct env *writer = open_env("e", ENV_WRITE);
	CLEANUP(txn_abort) struct txn *txn = NULL;
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	struct bytes key, value;

	put(writer, "1", 10);
	put(writer, "2", 20);
	CLEANUP(env_close) struct env *env = open_env("e", ENV_READ);
	cr_assert_eq(txn_begin_read(env, &txn), 0);
	cr_assert_eq(cursor_open(txn, 0, &cursor), 0);
	cr_assert_eq(cursor_next(cursor, &key, &value), FOUND);
	AUTO_FD int fd = open(scratch_path("e/data.mdb"), O_RDWR | O_CLOEXEC);
	uint8_t *bytes = mmap(NULL, database_page() * 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(bytes, MAP_FAILED);
	uint8_t *second = memmem(bytes, database_page() * 8,
		"2"
		"22222222222222222222",
		21);
	for (size_t at = 0;
		second && at + 21 < database_page() * 8;) { /* in each page of the row */
		le16_put(second - 8 + 2, 0x3fff);           /* the upper half of the value's size */
		at = (size_t)(second + 21 - bytes);
		second = memmem(bytes + at, database_page() * 8 - at,
			"2"
			"22222222222222222222",
			21);
	}
	cr_expect_eq(cursor_next(cursor, &key, &value), ERR_CORRUPT);
	(void)munmap(bytes, database_page() * 8);
	cursor_close(&cursor);
	txn_abort(&txn);
}

static void must_be_refused(uint8_t *byte)
{
	int r;

	*byte ^= 1;
	cr_assert(newest_of("e", ENV_WRITE, &r) == 0 && r == ERR_CORRUPT, "%s",
		r < 0 ? err_text(r) : "it is opened");
	*byte ^= 1;
}

/* A row unreachable by its key: its daemon would look for it for ever. */
Test(env_damage, a_writer_refuses_keys_that_do_not_lead_to_their_rows)
{
	struct env *env = open_env("e", ENV_WRITE);
	size_t page = database_page();
	unsigned n_branches = 0, n_leaves = 0;
	struct stat st;
	char key[8];

	for (int i = 0; i < 300; i++) {
		(void)snprintf(key, sizeof(key), "%03d", i);
		put(env, key, i % 50 ? page / 40 : page * 5 / 4);
	}
	env_close(&env);
	AUTO_FD int fd = open(scratch_path("e/data.mdb"), O_RDWR | O_CLOEXEC);
	cr_assert_eq(fstat(fd, &st), 0);
	uint8_t *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(bytes, MAP_FAILED);
	const uint8_t *meta =
		bytes + (le64_get(bytes + 144) > le64_get(bytes + page + 144) ? 0 : page);
	uint8_t *table = bytes + le64_get(meta + 128) * page,
		*branch = bytes + le64_get(table + le16_get(table + 16) + 8 + 3 + 40) * page;
	cr_assert(branch[10] & 1);
	for (size_t at = 18; at < le16_get(branch + 12); at += 2, n_branches++)
		must_be_refused(branch + le16_get(branch + at) + 8 + 2);
	uint8_t *leaf = bytes + le32_get(branch + le16_get(branch + 18)) * page;
	for (size_t at = 16; at < le16_get(leaf + 12); at += 2, n_leaves++)
		must_be_refused(leaf + le16_get(leaf + at) + 8 + 2);
	cr_assert(n_branches > 4 && n_leaves > 10);
	le16_put(leaf + 12,
		(uint16_t)(le16_get(leaf + 12) - 2)); /* hides the last row of the page */
	int r;
	cr_assert(newest_of("e", ENV_WRITE, &r) == 0 && r == ERR_CORRUPT);
	(void)munmap(bytes, (size_t)st.st_size);
}

/* Else it takes the map for full, LMDB maps more than there are addresses, or an assertion of
 * LMDB's ends it. */
Test(env_damage, a_writer_refuses_counts_and_flags_that_cannot_be)
{
	struct env *env = open_env("e", ENV_WRITE);
	size_t page = database_page();
	struct stat st;

	for (int i = 0; i < 3; i++)
		put(env, "key", page * 5 / 4);
	env_close(&env);
	int fd = open(scratch_path("e/data.mdb"), O_RDWR | O_CLOEXEC);
	cr_assert_eq(fstat(fd, &st), 0);
	uint8_t *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(bytes, MAP_FAILED);
	uint8_t *meta = bytes + (le64_get(bytes + 144) > le64_get(bytes + page + 144) ? 0 : page);
	uint8_t *table = bytes + le64_get(meta + 128) * page;
	uint8_t *counts[] = {
		meta + 40 + 24, meta + 88 + 24, table + le16_get(table + 16) + 8 + 3 + 24};
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		for (size_t at = 2; at < 8; at++)
			must_be_refused(counts[i] + at);
	counts[0][7] ^= 1;
	struct env_info info;
	env = open_env("e", ENV_READ);
	cr_assert(env_info(env, &info) == 0 && info.used_bytes <= info.file_bytes,
		"a reader believes no more than the file's length");
	env_close(&env);
	counts[0][7] ^= 1;
	for (size_t at = 3; at < 8; at++)
		must_be_refused(meta + 136 + at);
	uint8_t *flags[] = {bytes + 40 + 4, bytes + 88 + 4, bytes + page + 40 + 4,
		bytes + page + 88 + 4, table + le16_get(table + 16) + 8 + 3 + 4};
	for (size_t i = 0; i < 2 * ARRAY_SIZE(flags); i++)
		must_be_refused(flags[i / 2] + i % 2);
	(void)munmap(bytes, (size_t)st.st_size);
	(void)close(fd);
	cr_assert_gt(newest_or_damaged("e"), 0);
}

/* The flags of the list of free pages are changed after the file was opened, when they were
 * checked. */
static void change_flags_and_write(uint8_t flags)
{
	struct env *env = open_env("e", ENV_WRITE);
	size_t page = database_page();
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

Test(env_damage, an_assertion_of_lmdbs_is_noted_beside_the_file)
{
	cr_assert_not_null(scratch_path("e")); /* made once, before the child is */
	pid_t child = fork();
	if (child == 0)
		change_flags_and_write(0x0c); /* integer keys, several values of one */
	int status;
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "%x", status);
	AUTO_FD int folder = open(scratch_path("e"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	cr_assert_eq(damaged_check(folder), ERR_CORRUPT);
}

/* Puts a row of the database, or deletes it three times in eight, seven times if DELETING. */
static void random_write(struct txn *txn, unsigned short seed[3], bool deleting, size_t size_max)
{
	unsigned db = (unsigned)(nrand48(seed) % 2);
	char key[8];
	void *place;

	(void)snprintf(key, sizeof(key), "%04ld", nrand48(seed) % 3000);
	if (nrand48(seed) % 8 < (deleting ? 7 : 3)) {
		(void)txn_del(txn, db, bytes_str(key));
		return;
	}
	size_t size = nrand48(seed) % 50 ? (size_t)nrand48(seed) % size_max : 6000;
	cr_assert_eq(txn_reserve(txn, db, bytes_str(key), size, 0, &place), 0);
}

/* Makes 20 commits, and dies inside the last one. */
static void random_commits(int round, unsigned short seed[3])
{
	struct env *env = open_env("e", ENV_WRITE);
	struct txn *txn = NULL;

	for (int commit = 0; commit < 20; commit++) {
		long keys = 1 + nrand48(seed) % (round % 4 ? 300 : 2000);
		cr_assert_eq(txn_begin_write(env, &txn), 0);
		for (long i = 0; i < keys; i++)
			random_write(txn, seed, round % 4 == 3, commit % 2 ? 100 : 1500);
		if (commit < 19) {
			cr_assert_eq(txn_commit(&txn), 0);
			cr_assert_eq(env_check(env), 0);
		}
	}
	_exit(0);
}

/* Pages are taken, freed and used again, of rows and of large values, and a killed writer leaves
 * some. */
Test(env_damage, trees_that_are_sound_are_never_refused)
{
	unsigned short seed[3] = {7};
	struct env *env = open_env("e", ENV_WRITE);

	env_close(&env);
	for (int round = 0; round < 20; round++) {
		pid_t writer = fork();
		if (writer == 0)
			random_commits(round, seed);
		int status;
		cr_assert(waitpid(writer, &status, 0) == writer && status == 0);
		cr_assert_gt(newest_or_damaged("e"), 0, "round %d", round);
		seed[1]++;
	}
}

/* The writer has checked its trees, so readers beside it need not. */
Test(env_damage, trees_are_checked_once_beside_a_writer)
{
	struct env *env = open_env("e", ENV_WRITE);
	size_t page = database_page();
	char key[8];

	for (int i = 0; i < 300; i++) {
		(void)snprintf(key, sizeof(key), "%03d", i);
		put(env, key, page / 40);
	}
	env_close(&env);
	int ready[2], go[2];
	char byte;
	cr_assert_eq(pipe(ready) + pipe(go), 0);
	pid_t writer = fork();
	if (writer == 0) {
		(void)close(go[1]); /* if the parent dies, reading fails */
		env = open_env("e", ENV_WRITE);
		_exit(write(ready[1], "", 1) == 1 && read(go[0], &byte, 1) == 1 ? 0 : 1);
	}
	cr_assert_eq(close(ready[1]), 0); /* if the writer dies, reading fails */
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	AUTO_FD int fd = open(scratch_path("e/data.mdb"), O_RDWR | O_CLOEXEC);
	uint64_t table, root;
	uint8_t meta[2][152];
	AUTO_FREE uint8_t *row = malloc(page);
	cr_assert_eq(pread(fd, meta[0], 152, 0) + pread(fd, meta[1], 152, (off_t)page), 304);
	table = le64_get(meta[le64_get(meta[1] + 144) > le64_get(meta[0] + 144)] + 128);
	cr_assert_eq(pread(fd, row, page, (off_t)(table * page)), (ssize_t)page);
	root = le64_get(row + le16_get(row + 16) + 8 + 3 + 40);
	cr_assert_eq(pread(fd, row, page, (off_t)(root * page)), (ssize_t)page);
	size_t first = le16_get(row + 16), second = le16_get(row + 18);
	memcpy(row + second, row + first, 4); /* one page in two places */
	cr_assert_eq(pwrite(fd, row, page, (off_t)(root * page)), (ssize_t)page);
	env = open_env("e", ENV_READ);
	cr_assert_eq(env_check(env), ERR_CORRUPT);
	env_close(&env);
	cr_assert_eq(write(go[1], "", 1), 1);
	cr_assert(waitpid(writer, NULL, 0) == writer);
	cr_assert_eq(newest_or_damaged("e"), 0);
}
