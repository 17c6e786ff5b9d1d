/* SPDX-License-Identifier: Apache-2.0 */
/* Searches in read transactions: they agree with LMDB's, and changed flags of a page lead none
 * of them astray. */
#include <sys/mman.h>

#include "tests/unit/env_rig.h"
#include "tests/unit/page_rig.h"

#define ROWS 1000

static struct bytes key_of(char text[16], int i)
{
	return BYTES(text, (size_t)snprintf(text, 16, "%05d", i));
}

/* Stores rows with the even keys below 2 * ROWS. Their values begin with LETTER and have the size
 * of a page number. */
static void fill(struct env *env, char letter, int step)
{
	struct txn *txn = NULL;
	uint8_t *value;
	char text[16];
	void *place;

	cr_assert_eq(txn_begin_write(env, &txn), 0);
	for (int i = 0; i < ROWS; i += step) {
		cr_assert_eq(txn_reserve(txn, 0, key_of(text, 2 * i), (size_t)(4 + i / 16 % 40), 0,
				     &place),
			0);
		value = place;
		value[0] = (uint8_t)letter;
	}
	cr_assert_eq(txn_commit(&txn), 0);
}

/* Searches for key I in all ways. Returns how many searches fail; a wrong result ends the test. */
static unsigned look_for(struct txn *txn, int i, const char *where)
{
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	struct bytes value, found;
	char text[16], even[16];
	struct bytes key = key_of(text, i);
	int get = txn_get(txn, 0, key, &value);

	cr_assert(get == ERR_CORRUPT || get == (i % 2 ? NOT_FOUND : FOUND), "%s: %d: %d", where, i,
		get);
	cr_assert(
		get != FOUND || *(const char *)value.data == 'c', "%s: %d is an old row", where, i);
	int before = txn_floor(txn, 0, key, &found, &value);
	cr_assert(before == ERR_CORRUPT ||
			  (before == FOUND && bytes_equal(found, key_of(even, i & ~1))),
		"%s: floor of %d", where, i);
	int after = before < 0 ? before : txn_after(txn, 0, &found, &value);
	cr_assert(after != FOUND || bytes_equal(found, key_of(even, (i & ~1) + 2)),
		"%s: the row after the floor of %d", where, i);
	cr_assert(
		strncmp(where, "sound", 5) != 0 || after == (i >= 2 * ROWS - 2 ? NOT_FOUND : FOUND),
		"%d has no row after it", i);
	cr_assert_eq(cursor_open(txn, 0, &cursor), 0);
	int r = cursor_seek(cursor, key, &found, &value);
	cr_assert(r == ERR_CORRUPT ||
			  (i == 2 * ROWS - 1 ? r == END
					     : r == FOUND && bytes_equal(found,
								     key_of(even, (i + 1) & ~1))),
		"%s: the row from %d on", where, i);
	int last = cursor_last(cursor, &found, &value);
	cr_assert(last == ERR_CORRUPT ||
			  (last == FOUND && bytes_equal(found, key_of(even, 2 * ROWS - 2))),
		"%s: the last row", where);
	return (get < 0) + (before < 0) + (after < 0) + (r < 0) + (last < 0);
}

static unsigned look(struct env *env, const char *where)
{
	unsigned failed = 0;

	for (int i = 0; i < 2 * ROWS; i += 7) {
		CLEANUP(txn_abort) struct txn *txn = NULL;

		cr_assert_eq(txn_begin_read(env, &txn), 0);
		failed += look_for(txn, i, where);
	}
	return failed;
}

/* Some values' sizes are numbers of pages with older versions of the rows. */
Test(env_path, changed_flags_lead_to_no_other_row)
{
	CLEANUP(env_close) struct env *env = open_env("e", ENV_WRITE);
	size_t page = database_page();
	unsigned failed = 0, pages = 0;
	struct env_info info;
	char where[64];

	fill(env, 'a', 1);
	fill(env, 'b', 1);
	fill(env, 'c', 1);
	cr_assert_eq(env_info(env, &info), 0);
	cr_assert_eq(look(env, "sound"), 0);
	AUTO_FD int fd = open(scratch_path("e/data.mdb"), O_RDWR | O_CLOEXEC);
	uint8_t *bytes = mmap(NULL, info.file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(bytes, MAP_FAILED);
	const uint8_t *meta =
		bytes + (le64_get(bytes + 144) > le64_get(bytes + page + 144) ? 0 : page);
	uint64_t table = le64_get(meta + 128);
	for (uint64_t n = 2; n < info.file_bytes / page; n++) {
		uint8_t *flags = bytes + n * page + 10, before = *flags;

		if (le64_get(bytes + n * page) != n ||
			n == table) /* the table's page is read at the opening */
			continue;
		for (unsigned how = 0; how < 10; how++) {
			*flags = how < 8 ? before ^ (uint8_t)(1u << how) : how == 8 ? 0 : 0xff;
			(void)snprintf(where, sizeof(where), "page %d, %02x -> %02x", (int)n,
				before, *flags);
			failed += look(env, where);
		}
		*flags = before;
		pages++;
	}
	cr_assert_gt(pages, 20);
	cr_assert_gt(failed, 1000);
	cr_assert_eq(look(env, "sound again"), 0);
	(void)munmap(bytes, info.file_bytes);
}

/* Walks both databases in both directions, and seeks. Returns how many of these fail. */
static unsigned walk_all(struct env *env)
{
	CLEANUP(txn_abort) struct txn *txn = NULL;
	unsigned failed = 0;
	char text[16];

	cr_assert_eq(txn_begin_read(env, &txn), 0);
	for (unsigned db = 0; db < 2; db++) {
		CLEANUP(cursor_close) struct cursor *cursor = NULL;
		struct bytes key, value;
		int r;

		cr_assert_eq(cursor_open(txn, db, &cursor), 0);
		while ((r = cursor_next(cursor, &key, &value)) == FOUND)
			continue;
		failed += r < 0;
		cr_assert(r == END || cursor_next(cursor, &key, &value) == ERR_CORRUPT,
			"a cursor goes on after damage");
		for (int i = 0; i < 2 * ROWS; i += 100) {
			failed += cursor_before(cursor, key_of(text, i), &key, &value) < 0;
			failed += cursor_seek(cursor, key_of(text, i), &key, &value) < 0;
		}
	}
	return failed;
}

/* LMDB follows an offset of a row wherever it leads: out of the page, out of the file. ENV is
 * open, or NULL: each time the file is opened. Returns how many reads fail. */
static unsigned change_offsets(struct env *env)
{
	size_t page = database_page();
	unsigned failed = 0;
	struct stat st;
	int r = 0;
	AUTO_FD int fd = open(scratch_path("e/data.mdb"), O_RDWR | O_CLOEXEC);

	cr_assert_eq(fstat(fd, &st), 0);
	uint8_t *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(bytes, MAP_FAILED);
	const uint8_t *meta =
		bytes + (le64_get(bytes + 144) > le64_get(bytes + page + 144) ? 0 : page);
	uint64_t table = le64_get(meta + 128);
	for (uint64_t n = 2; n < (uint64_t)st.st_size / page; n++) {
		uint8_t *at = bytes + n * page;

		if (le64_get(at) != n || !(at[10] & 3) ||
			n == table) /* the table's page is read at the opening */
			continue;
		for (size_t i = 16; i < 24 && i < le16_get(at + 12); i++)
			for (unsigned how = 0; how < 4; how++) {
				uint8_t before = at[i];

				at[i] = how < 3 ? before ^ (uint8_t)(0x20u << how) : 0xff;
				failed += env ? walk_all(env) : newest_of("e", ENV_COPY, &r) == 0;
				cr_assert(r == 0 || r == ERR_CORRUPT, "%s", err_text(r));
				at[i] = before;
			}
	}
	(void)munmap(bytes, (size_t)st.st_size);
	return failed;
}

Test(env_path, changed_offsets_lead_out_of_no_page)
{
	struct env *env = open_env("e", ENV_WRITE);

	for (int i = 0; i < 3; i++) /* pages become free */
		fill(env, 'a', 1);
	cr_assert_eq(walk_all(env), 0);
	cr_assert_gt(change_offsets(env), 100);
	cr_assert_eq(walk_all(env), 0);
	env_close(&env);
	cr_assert_gt(change_offsets(NULL), 20);
}

static bool is_same(struct bytes a, struct bytes b)
{
	return a.data == b.data && a.size == b.size;
}

/* Walks database DB in READ by our walk and in WRITE by LMDB. Returns how many rows it has. */
static unsigned walk_both(struct txn *read, struct txn *write, unsigned db)
{
	CLEANUP(cursor_close) struct cursor *own = NULL, *lmdbs = NULL, *before = NULL;
	struct bytes key = BYTES_NONE, value, k, v, last = BYTES_NONE;
	unsigned n = 0;
	int r;

	cr_assert_eq(cursor_open(read, db, &own), 0);
	cr_assert_eq(cursor_open(read, db, &before), 0);
	cr_assert_eq(cursor_open(write, db, &lmdbs), 0);
	while ((r = cursor_next(own, &key, &value)) == cursor_next(lmdbs, &k, &v) && r == FOUND) {
		cr_assert(is_same(key, k) && is_same(value, v), "row %u", n);
		cr_assert_eq(cursor_before(before, key, &k, &v), n ? FOUND : END);
		cr_assert(!n || is_same(k, last), "the row before row %u", n);
		cr_assert_eq(cursor_next(before, &k, &v), FOUND);
		last = key;
		n++;
	}
	cr_assert_eq(r, END);
	cr_assert_eq(cursor_next(own, &key, &value), END, "again");
	cr_assert_eq(cursor_last(own, &key, &value), n ? FOUND : END);
	cr_assert(!n || is_same(key, last));
	return n;
}

/* Rows come and go, of all sizes, in both databases. */
Test(env_path, searches_agree_with_lmdbs)
{
	CLEANUP(env_close) struct env *env = open_env("e", ENV_WRITE);
	unsigned short seed[3] = {11};
	unsigned found[3] = {0}, walked = 0;
	struct txn *txn = NULL, *write = NULL;
	char text[16];
	void *place;

	for (int round = 0; round < 30; round++) {
		cr_assert_eq(txn_begin_write(env, &txn), 0);
		for (int i = 0; i < (round == 20 ? 3000 : 100); i++) {
			struct bytes key =
				key_of(text, round == 20 ? i : (int)(nrand48(seed) % 3000));
			unsigned db = (unsigned)(nrand48(seed) % 2);

			key.size -= (size_t)(nrand48(seed) % 2);
			if (round == 20 || nrand48(seed) % 3 == 0)
				(void)txn_del(txn, round == 20 ? 0 : db, key_of(text, i));
			else
				cr_assert_eq(txn_reserve(txn, db, key,
						     nrand48(seed) % 9 ? (size_t)nrand48(seed) % 400
								       : 9000,
						     0, &place),
					0);
		}
		cr_assert_eq(txn_commit(&txn), 0);
		cr_assert_eq(txn_begin_read(env, &txn), 0);
		cr_assert_eq(txn_begin_write(env, &write), 0); /* its cursors are LMDB's */
		for (int i = 0; i < 500; i++) {
			CLEANUP(cursor_close) struct cursor *cursor = NULL, *own = NULL;
			struct bytes key = key_of(text, (int)(nrand48(seed) % 3000)), value, lmdbs,
				     k, lmdbs_k;
			unsigned db = (unsigned)(i % 2);

			key.size -= (size_t)(nrand48(seed) % 2);
			cr_assert_eq(cursor_open(write, db, &cursor), 0);
			cr_assert_eq(cursor_open(txn, db, &own), 0);
			int r = cursor_seek(cursor, key, &lmdbs_k, &lmdbs);
			cr_assert_eq(cursor_seek(own, key, &k, &value), r, "%.*s", BYTES_ARG(key));
			cr_assert(r == END || (is_same(k, lmdbs_k) && is_same(value, lmdbs)));
			r = cursor_floor(cursor, key, &lmdbs_k, &lmdbs);
			cr_assert_eq(cursor_floor(own, key, &k, &value), r, "%.*s", BYTES_ARG(key));
			cr_assert(r == END || (is_same(k, lmdbs_k) && is_same(value, lmdbs)));
			cr_assert_eq(
				txn_floor(txn, db, key, &k, &value), r, "%.*s", BYTES_ARG(key));
			cr_assert(r == END || (is_same(k, lmdbs_k) && is_same(value, lmdbs)));
			bool is_there = r == FOUND && bytes_equal(k, key);
			cr_assert_eq(txn_get(txn, db, key, &value), is_there ? FOUND : NOT_FOUND);
			cr_assert(!is_there || is_same(value, lmdbs));
			found[is_there ? 0 : r == FOUND ? 1 : 2]++;
		}
		walked += walk_both(txn, write, 0) + walk_both(txn, write, 1);
		txn_abort(&write);
		txn_abort(&txn);
	}
	cr_assert_gt(walked, 10000);
	cr_assert(found[0] > 100 && found[1] > 100 && found[2] > 10, "%u %u %u", found[0], found[1],
		found[2]);
}
