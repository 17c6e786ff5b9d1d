/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/index.h"

#include "common/buf.h"
#include "store/index/index_internal.h"
#include "store/journal/journal.h"
#include "tests/unit/index_rig.h"
#include "tests/unit/rows.h"

TestSuite(index, .init = setup, .fini = teardown);

Test(index, objects_are_found_by_name_by_id_and_by_term)
{
	struct index_entry entry;
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct bytes key;
	uint32_t feed;

	begin();
	uint32_t d = define("node");
	struct index_term one[] = {term(d, "n1"), term(d, "n1")},
			  two[] = {term(d, "n1"), term(d, "n2")};

	put("web/b", 1, NULL, 0, one, 2);
	put("web/a", 2, NULL, 0, two, 2);
	put("x", 3, NULL, 0, NULL, 0);
	cr_assert_eq(index_set_taken(rig.index, 3), 0);
	commit();
	cr_assert_str_eq(names("", ""), "web/a=2 web/b=1 x=3 ");
	cr_assert_str_eq(names("web/", "web/aa"), "web/b=1 ");
	cr_assert_str_eq(names("web/", "x"), "");
	cr_assert_str_eq(under(d, BYTES_LIT("n1")), "2: web/b web/a");
	cr_assert_str_eq(under(d, BYTES_LIT("n2")), "1: web/a");
	cr_assert_str_eq(under(d, BYTES_LIT("n")), "none");
	cr_assert_eq(objects(), 3);
	cr_assert_eq(txn_begin_read(index_env(rig.index), &txn), 0);
	cr_assert_eq(index_get(rig.index, txn, FEED, BYTES_LIT("web/a"), &entry), FOUND);
	cr_assert_eq(entry.place, 20);
	cr_assert_eq(index_object(rig.index, txn, entry.object, &feed, &key, &entry), FOUND);
	cr_assert(bytes_equal(key, BYTES_LIT("web/a")) && feed == FEED && entry.seq == 2);
	cr_assert_eq(index_has(rig.index, txn, d, BYTES_LIT("n2"), entry.object), FOUND);
	cr_assert_eq(index_has(rig.index, txn, d, BYTES_LIT("n3"), entry.object), NOT_FOUND);
	cr_assert_eq(index_get(rig.index, txn, FEED + 1, BYTES_LIT("web/a"), &entry), NOT_FOUND);
}

/* Readers divide by it. */
Test(index, a_value_that_counts_nobody_is_damage)
{
	uint8_t room[TERM_KEY_MAX], row[TERM_BYTES + ROW_CRC] = {1};
	CLEANUP(txn_abort) struct txn *txn = NULL;

	begin();
	uint32_t d = define("node");
	cr_assert_eq(index_set_taken(rig.index, 1), 0);
	struct bytes key = index_term_key(room, d, BYTES_LIT("n1"));
	cr_assert_eq(txn_put(index_txn(rig.index), INDEX_TERM, key,
			     index_checksum_row(key, row, TERM_BYTES), 0),
		0);
	commit();
	cr_assert_eq(txn_begin_read(index_env(rig.index), &txn), 0);
	CLEANUP(index_rows_release) struct index_rows rows = {.txn = txn, .definition = d};
	struct index_term_row given;
	cr_assert_eq(index_next_value(&rows, &given), ERR_CORRUPT);
}

/* Where a page or a range of the initial state ends with it. */
Test(index, what_follows_the_longest_key_is_found)
{
	char key[JOURNAL_KEY_MAX + 1], from[JOURNAL_KEY_MAX + 8], all[600];

	memset(key, 'k', JOURNAL_KEY_MAX);
	key[JOURNAL_KEY_MAX] = 0;
	begin();
	put(key, 1, NULL, 0, NULL, 0);
	put("l", 2, NULL, 0, NULL, 0);
	cr_assert_eq(index_set_taken(rig.index, 2), 0);
	commit();
	(void)snprintf(all, sizeof(all), "%s=1 l=2 ", key);
	cr_assert_str_eq(names("", key), all);
	(void)snprintf(from, sizeof(from), "%s\x01", key);
	cr_assert_str_eq(names("", from), "l=2 ");
	cr_assert_str_eq(names(key, from), "");
	cr_assert_str_eq(names("l", from), "l=2 ");
	from[JOURNAL_KEY_MAX - 1] = 'j';
	cr_assert_str_eq(names("", from), all, "less than the key");
}

Test(index, an_update_moves_only_what_differs_and_counts_to_nothing_vanish)
{
	begin();
	uint32_t d = define("node");
	struct index_term a[] = {term(d, "1"), term(d, "2"), term(d, "2")};
	struct index_term b[] = {term(d, "2"), term(d, "3")};

	put("o", 1, NULL, 0, a, 3);
	commit();
	begin();
	put("o", 2, a, 3, b, 2);
	commit();
	cr_assert_str_eq(under(d, BYTES_LIT("1")), "none");
	cr_assert_str_eq(under(d, BYTES_LIT("2")), "1: o");
	cr_assert_str_eq(under(d, BYTES_LIT("3")), "1: o");
	cr_assert_str_eq(names("", ""), "o=2 ");
	begin();
	cr_assert_eq(index_remove(rig.index, FEED, BYTES_LIT("o"), b, 2), 0);
	cr_assert_eq(index_remove(rig.index, FEED, BYTES_LIT("o"), b, 2), NOT_FOUND);
	commit();
	cr_assert_str_eq(names("", ""), "");
	cr_assert_str_eq(under(d, BYTES_LIT("2")), "none");
	cr_assert_eq(objects(), 0);
}

Test(index, a_transaction_sees_its_own_changes_and_may_undo_them)
{
	struct index_entry entry, again;

	begin();
	uint32_t d = define("node");
	struct index_term a[] = {term(d, "1")}, b[] = {term(d, "2")};

	cr_assert_eq(index_entry(rig.index, FEED, BYTES_LIT("o"), &entry), NOT_FOUND);
	put("o", 1, NULL, 0, a, 1);
	cr_assert_eq(index_entry(rig.index, FEED, BYTES_LIT("o"), &entry), FOUND);
	put("o", 2, a, 1, b, 1);
	cr_assert_eq(index_remove(rig.index, FEED, BYTES_LIT("o"), b, 1), 0);
	cr_assert_eq(index_entry(rig.index, FEED, BYTES_LIT("o"), &again), NOT_FOUND);
	put("o", 3, NULL, 0, a, 1);
	cr_assert_eq(index_entry(rig.index, FEED, BYTES_LIT("o"), &again), FOUND);
	cr_assert_neq(entry.object, again.object, "a deleted object's id is not used again");
	commit();
	cr_assert_str_eq(under(d, BYTES_LIT("1")), "1: o");
	cr_assert_str_eq(under(d, BYTES_LIT("2")), "none");
	cr_assert_eq(objects(), 1);
	begin();
	cr_assert_eq(index_remove(rig.index, FEED, BYTES_LIT("o"), a, 1), 0);
	put("o", 4, NULL, 0, b, 1);
	commit();
	cr_assert_str_eq(under(d, BYTES_LIT("1")), "none");
	cr_assert_str_eq(under(d, BYTES_LIT("2")), "1: o");
}

Test(index, an_aborted_transaction_leaves_nothing_behind)
{
	struct index_entry first, second;

	begin();
	uint32_t d = define("node");
	struct index_term a[] = {term(d, "1")};

	commit();
	begin();
	put("o", 1, NULL, 0, a, 1);
	cr_assert_eq(index_entry(rig.index, FEED, BYTES_LIT("o"), &first), FOUND);
	cr_assert_eq(index_flush(rig.index), 0);
	index_abort(rig.index);
	cr_assert_str_eq(names("", ""), "");
	begin();
	put("p", 1, NULL, 0, a, 1);
	cr_assert_eq(index_entry(rig.index, FEED, BYTES_LIT("p"), &second), FOUND);
	cr_assert_eq(first.object, second.object);
	commit();
	cr_assert_str_eq(under(d, BYTES_LIT("1")), "1: p");
	cr_assert_eq(objects(), 1);
}

Test(index, terms_that_do_not_match_what_is_stored_are_damage)
{
	begin();
	uint32_t d = define("node");
	struct index_term a[] = {term(d, "1")}, b[] = {term(d, "2")};

	put("o", 1, NULL, 0, a, 1);
	put("p", 2, NULL, 0, b, 1);
	commit();
	begin();
	put("o", 3, b, 1, NULL, 0);
	cr_assert_eq(index_commit(rig.index), ERR_CORRUPT);
	begin();
	put("o", 3, NULL, 0, a, 1);
	cr_assert_eq(index_flush(rig.index), ERR_CORRUPT);
	cr_assert_eq(index_commit(rig.index), ERR_CORRUPT, "the first error stays");
	cr_assert_str_eq(under(d, BYTES_LIT("1")), "1: o");
}

Test(index, long_values_are_kept_as_beginning_and_hash_and_never_meet_short_ones)
{
	char text[2000];
	struct bytes longer, other, kept;

	memset(text, 'a', sizeof(text));
	longer = BYTES(text, INDEX_VALUE_MAX + 16);
	other = BYTES(text, INDEX_VALUE_MAX + 17);
	kept = BYTES(text, INDEX_VALUE_MAX);
	begin();
	uint32_t d = define("node");
	struct index_term a[] = {{d, longer}, {d, other}, {d, kept}},
			  b[] = {{d, BYTES(text, 2000)}};

	put("o", 1, NULL, 0, a, 3);
	put("p", 2, NULL, 0, b, 1);
	commit();
	cr_assert_str_eq(under(d, longer), "1: o");
	cr_assert_str_eq(under(d, other), "1: o");
	cr_assert_str_eq(under(d, kept), "1: o");
	cr_assert_str_eq(under(d, b[0].value), "1: p");
	cr_assert_str_eq(under(d, BYTES(text, INDEX_VALUE_MAX - 1)), "none");
	begin();
	put("o", 3, a, 3, NULL, 0);
	commit();
	cr_assert_str_eq(under(d, longer), "none");
	cr_assert_str_eq(under(d, b[0].value), "1: p");
}

static void put_values(struct txn *txn, uint32_t d, struct bytes prefix, struct buf *out)
{
	CLEANUP(index_rows_release)
	struct index_rows rows = {.txn = txn, .definition = d, .prefix = prefix};
	struct index_term_row row;
	int r;

	buf_reset(out);
	while ((r = index_next_value(&rows, &row)) == FOUND)
		buf_printf(out, "%.*s%s=%llu ", row.value.size > 4 ? 4 : (int)row.value.size,
			(const char *)row.value.data, row.whole ? "" : "...",
			(unsigned long long)row.count);
	cr_assert_eq(r, END);
}

Test(index, values_come_in_byte_order_with_their_counts)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	CLEANUP(txn_abort) struct txn *txn = NULL;
	char large[600];

	memset(large, 'n', sizeof(large));
	begin();
	uint32_t d = define("node"), e = define("zone");
	struct index_term a[] = {
		term(d, "n2"), term(d, "n1"), term(e, "n3"), {d, BYTES(large, 600)}};

	put("o", 1, NULL, 0, a, 4);
	put("p", 2, NULL, 0, a + 1, 2);
	commit();
	cr_assert_eq(txn_begin_read(index_env(rig.index), &txn), 0);
	put_values(txn, d, BYTES_NONE, &text);
	cr_assert_str_eq(buf_cstr(&text), "n1=2 n2=1 nnnn...=1 ");
	put_values(txn, d, BYTES_LIT("n2"), &text);
	cr_assert_str_eq(buf_cstr(&text), "n2=1 ");
	put_values(txn, d, BYTES(large, 600), &text);
	cr_assert_str_eq(buf_cstr(&text), "nnnn...=1 ");
}

Test(index, a_removed_feed_goes_without_bodies)
{
	begin();
	uint32_t d = define("node");
	struct index_term a[] = {term(d, "1")};

	for (int i = 0; i < 50; i++) {
		char key[16];

		(void)snprintf(key, sizeof(key), "k%02d", i);
		put(key, 1, NULL, 0, a, 1);
	}
	commit();
	int r;
	unsigned slices = 0;

	do {
		begin();
		r = index_feed_drop(rig.index, FEED, 20);
		commit();
		slices++;
	} while (r == AGAIN);
	cr_assert_eq(r, 0);
	cr_assert_geq(slices, 3);
	cr_assert_eq(definitions(), 0);
	cr_assert_eq(objects(), UINT64_MAX, "the row is gone");
	cr_assert_str_eq(names("", ""), "");
	CLEANUP(txn_abort) struct txn *txn = NULL;
	uint64_t left;

	cr_assert_eq(txn_begin_read(index_env(rig.index), &txn), 0);
	for (unsigned db = 0; db < 4; db++) {
		cr_assert_eq(count_rows(txn, db, &left), 0);
		cr_assert_eq(left, 0);
	}
}

Test(index, large_transactions_are_flushed_in_between_and_stay_whole)
{
	char key[32], value[16][24];
	struct index_term terms[16];
	enum { N = 30000 };

	begin();
	uint32_t d = define("node");

	for (int i = 0; i < N; i++) {
		(void)snprintf(key, sizeof(key), "ns%d/pod-%06d", i % 7, i);
		for (int t = 0; t < 16; t++) {
			(void)snprintf(value[t], sizeof(value[t]), "t%d-%d", t, i % (1 << t));
			terms[t] = term(d, value[t]);
		}
		put(key, (uint64_t)i + 1, NULL, 0, terms, 16);
	}
	cr_assert_eq(index_set_taken(rig.index, N), 0);
	commit();
	cr_assert_eq(objects(), N);
	struct txn *txn;
	uint64_t n;

	cr_assert_eq(txn_begin_read(index_env(rig.index), &txn), 0);
	for (int t = 0; t < 16; t++) {
		struct index_walk *walk;
		uint64_t object, found = 0;

		(void)snprintf(value[t], sizeof(value[t]), "t%d-0", t);
		cr_assert_eq(
			index_postings(rig.index, txn, d, bytes_str(value[t]), &n, &walk), FOUND);
		while (index_walk_next_id(walk, &object) == FOUND)
			cr_assert_eq(object, 1 + (found++ << t));
		cr_assert_eq(found, n);
		cr_assert_eq(n, 1 + ((N - 1) >> t));
		index_walk_close(&walk);
	}
	txn_abort(&txn);
	cr_assert_eq(strncmp(under(d, BYTES_LIT("t15-5")), "1: ns5/pod-000005", 17), 0);
}

Test(index, it_is_found_again_as_published_and_not_before)
{
	struct index *reader = NULL;
	struct index_meta meta;
	struct txn *txn;

	cr_assert_eq(index_open_read(rig.home, &reader), NOT_FOUND);
	begin();
	put("o", 1, NULL, 0, NULL, 0);
	cr_assert_eq(index_set_taken(rig.index, 5), 0);
	commit();
	OK(index_publish(rig.index, rig.home));
	OK(index_open_read(rig.home, &reader));
	cr_assert_eq(txn_begin_read(index_env(reader), &txn), 0);
	cr_assert_eq(index_meta(reader, txn, &meta), 0);
	cr_assert(meta.taken == 5 && !meta.building && !memcmp(meta.journal, rig.uuid, 16));
	txn_abort(&txn);
	index_close(&reader);
	index_close(&rig.index);
	OK(index_open_write(rig.home, &small, &rig.index));
	cr_assert_str_eq(names("", ""), "o=1 ");
	begin();
	put("p", 6, NULL, 0, NULL, 0);
	commit();
	cr_assert_str_eq(names("", ""), "o=1 p=6 ");
}
