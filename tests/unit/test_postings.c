/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/index_postings.h"

#include "store/index/index_internal.h"
#include "tests/unit/index_rig.h"
#include "tests/unit/rows.h"

TestSuite(postings, .init = setup, .fini = teardown);

enum { IDS = 4000, TERMS = 3, CHANGES = 600 };

static uint64_t random_state = 7;

static uint64_t random_below(uint64_t n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (random_state >> 33) % n;
}

/* Changes a term in the open transaction, as one flush does. */
static int change(uint64_t term, bool is_new, const struct change_posting *changes, size_t n)
{
	CLEANUP(postings_release) struct postings_writer writer = {0};

	cr_assert_eq(cursor_open(index_txn(rig.index), INDEX_POSTING, &writer.cursor), 0);
	return postings_change(&writer, term, is_new, changes, n);
}

/* Adds, or removes, the ids from FIRST on in steps. */
static int change_run(
	uint64_t term, bool is_new, int delta, uint64_t first, uint64_t step, size_t n)
{
	AUTO_FREE struct change_posting *changes = calloc(n, sizeof(*changes));

	for (size_t i = 0; i < n; i++)
		changes[i] = (struct change_posting){.object = first + i * step, .delta = delta};
	return change(term, is_new, changes, n);
}

/* Checks that the rows of TERM have exactly the ids of HELD; returns the number of rows. */
static size_t assert_holds(uint64_t term, const bool held[IDS])
{
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	struct postings_block block;
	struct bytes key, value;
	uint8_t from[POSTING_KEY];
	size_t rows = 0, id = 0;

	cr_assert_eq(cursor_open(index_txn(rig.index), INDEX_POSTING, &cursor), 0);
	int r = cursor_seek(cursor, index_posting_key(from, term, 0), &key, &value);
	for (; r == FOUND; r = cursor_next(cursor, &key, &value)) {
		cr_assert_eq(postings_read(key, value, &block), 0);
		if (block.term != term)
			break;
		rows++;
		for (size_t i = 0; i < block.n; i++, id++) {
			while (id < IDS && !held[id])
				id++;
			cr_assert_eq(postings_object(&block, i), id);
		}
	}
	while (id < IDS && !held[id])
		id++;
	cr_assert_eq(id, IDS, "%zu is missing", id);
	for (size_t i = 0; i < 50; i++) {
		id = random_below(IDS);
		cr_assert_eq(
			postings_has(index_txn(rig.index), term, id), held[id] ? FOUND : NOT_FOUND);
	}
	return rows;
}

/* Runs of random ids are added and removed; an array has the expected terms. */
Test(postings, they_are_what_the_changes_make_of_them)
{
	static bool held[TERMS + 1][IDS];
	struct change_posting changes[CHANGES];

	begin();
	for (int round = 0; round < 600; round++) {
		uint64_t term = 1 + random_below(TERMS), from = random_below(IDS);
		size_t n = 0, most = 1 + random_below(round % 3 ? 20 : CHANGES);
		bool growing = random_below(10) < (round % 200 < 120 ? 8 : 3);

		for (uint64_t id = from; id < IDS && n < most; id += 1 + random_below(4)) {
			if (held[term][id] == growing)
				continue;
			held[term][id] = growing;
			changes[n++] =
				(struct change_posting){.object = id, .delta = growing ? 1 : -1};
		}
		OK(change(term, false, changes, n));
		(void)assert_holds(term, held[term]);
	}
	for (uint64_t term = 1; term <= TERMS; term++)
		(void)assert_holds(term, held[term]);
}

static uint64_t rows_of_all(void)
{
	uint64_t n;

	cr_assert_eq(count_rows(index_txn(rig.index), INDEX_POSTING, &n), 0);
	return n;
}

Test(postings, blocks_are_filled_at_the_end_divided_within_and_joined_when_small)
{
	begin();
	cr_assert_eq(change_run(5, true, 1, 1, 2, 10 * POSTINGS_MOST), 0);
	cr_assert_eq(rows_of_all(), 10);
	cr_assert_eq(change_run(5, false, 1, 1 + 20 * POSTINGS_MOST, 2, 1), 0);
	cr_assert_eq(rows_of_all(), 11, "one after the end");
	cr_assert_eq(change_run(5, false, 1, 2, 2, 1), 0);
	cr_assert_eq(rows_of_all(), 12, "the first one was full");
	cr_assert_eq(change_run(5, false, -1, 1, 2, 9 * POSTINGS_MOST), 0);
	cr_assert_leq(rows_of_all(), 3);
	cr_assert_eq(change_run(5, false, -1, 1 + 18 * POSTINGS_MOST, 2, POSTINGS_MOST + 1), 0);
	cr_assert_eq(change_run(5, false, -1, 2, 2, 1), 0);
	cr_assert_eq(rows_of_all(), 0);
}

Test(postings, ids_that_are_far_from_each_other_are_in_blocks_of_their_own)
{
	const uint64_t far = (UINT64_C(1) << 32) - 1;

	begin();
	cr_assert_eq(change_run(1, true, 1, 1, far, 7), 0);
	cr_assert_eq(rows_of_all(), 4);
	for (uint64_t i = 0; i < 7; i++) {
		cr_assert_eq(postings_has(index_txn(rig.index), 1, 1 + i * far), FOUND);
		cr_assert_eq(postings_has(index_txn(rig.index), 1, 2 + i * far), NOT_FOUND);
	}
	cr_assert_eq(postings_has(index_txn(rig.index), 2, 1), NOT_FOUND);
}

Test(postings, a_change_that_does_not_fit_is_damage)
{
	begin();
	cr_assert_eq(change_run(1, true, 1, 10, 10, 5), 0);
	cr_assert_eq(change_run(1, false, 1, 20, 10, 1), ERR_CORRUPT, "it is there");
	cr_assert_eq(change_run(1, false, -1, 21, 10, 1), ERR_CORRUPT, "it is not");
	cr_assert_eq(change_run(2, false, -1, 10, 10, 1), ERR_CORRUPT, "nor is its term");
}

Test(postings, a_damaged_row_is_an_error)
{
	uint8_t back[8 + ROW_CRC] = {2, 0, 0, 0, 1, 0, 0, 0},
			 large[4 * POSTINGS_MOST + ROW_CRC] = {0};
	uint8_t room[POSTING_KEY + 1] = {0};
	struct bytes key = BYTES(room, POSTING_KEY), longer = BYTES(room, POSTING_KEY + 1);
	struct postings_block block;

	cr_assert_eq(postings_read(key, index_checksum_row(key, back, 8), &block), 0);
	cr_assert_eq(
		postings_read(longer, index_checksum_row(longer, back, 8), &block), ERR_CORRUPT);
	cr_assert_eq(postings_read(key, index_checksum_row(key, back, 7), &block), ERR_CORRUPT);
	cr_assert_eq(
		postings_read(key, index_checksum_row(key, large, sizeof(large) - ROW_CRC), &block),
		ERR_CORRUPT);
	begin();
	key = index_posting_key(room, 1, 10);
	back[7] = 0; /* the checksum of 7 bytes began there */
	cr_assert_eq(txn_put(index_txn(rig.index), INDEX_POSTING, key,
			     index_checksum_row(key, back, 8), 0),
		0);
	cr_assert_eq(change_run(1, false, 1, 20, 1, 1), ERR_CORRUPT, "its ids do not ascend");
}
