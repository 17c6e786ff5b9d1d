/* SPDX-License-Identifier: Apache-2.0 */
#include "store/journal/journal_internal.h"
#include "store/journal/journal_record.h"
#include "tests/unit/verify_rig.h"

TestSuite(verify, .init = set_up, .fini = tear_down);

Test(verify, good_stores_have_no_faults_live_closed_and_copied)
{
	const char *copy = scratch_path("copy");

	assert_good(s.path);
	live_through();
	assert_good(s.path);
	struct verify_report report = verified(s.path, true);

	cr_assert_eq(report.objects, 38);
	cr_assert_eq(report.heads, 38);
	cr_assert_eq(report.postings, 38 * 4);
	cr_assert_gt(report.bodies, 38);
	/* Not taken yet, an open list, deleted and made again since: as of visible all is equal. */
	(void)small_store_put(&s, "ns0/o03", "n9", 0);
	small_store_take(&s);
	(void)small_store_list_begin(&s);
	(void)small_store_put(&s, "ns0/o03", "n8", 0);
	(void)small_store_delete(&s, "ns0/o06");
	(void)small_store_put(&s, "ns0/o06", "n8", 0);
	(void)small_store_delete(&s, "ns0/o09");
	(void)small_store_put(&s, "ns0/new", "n8", 0);
	assert_good(s.path);
	small_store_take(&s);
	assert_good(s.path);
	small_store_close(&s);
	assert_good(scratch_path("store"));
	scratch_copy(scratch_path("store"), copy);
	assert_good(copy);
}

/* Trimming removes a version replaced within the same first list. No reader ever sees it. */
Test(verify, a_first_list_that_was_trimmed_is_no_fault)
{
	uint64_t trimmed;

	small_store_add_feed(&s, "others");
	(void)small_store_list_begin(&s);
	(void)small_store_put(&s, "ns0/twice", "n1", 0);
	uint64_t horizon = small_store_put(&s, "ns0/twice", "n2", 0);

	small_store_take(&s);
	OK(journal_trim(s.journal, horizon, 1000, &trimmed));
	cr_assert_geq(trimmed, 2);
	assert_good(s.path);
}

Test(verify_nothing, stores_without_index_and_without_anything)
{
	struct home_options how = {.create = true, .runtime_dir = scratch()};
	struct journal_options small = {.map_bytes = 64u << 20};
	struct verify_options options = {0}, of_feed = {.feed = "pods"};
	struct verify_report report;
	CLEANUP(journal_close) struct journal *journal = NULL;
	CLEANUP(home_close) struct home *home = NULL;
	char reason[256];

	cr_assert_eq(verify_store(scratch_path("none"), &options, &report), ERR_NO_STORE);
	OK(home_open(scratch_path("store"), &how, &home));
	cr_assert_eq(verify_store(scratch_path("store"), &options, &report), ERR_NO_STORE);
	OK(journal_open_write(home, &small, reason, &journal));
	OK(verify_store(scratch_path("store"), &options, &report));
	cr_assert(report.faults == 0 && !report.has_index);
	cr_assert_eq(verify_store(scratch_path("store"), &of_feed, &report), ERR_NO_FEED);
}

/* ---- damage in the index ------------------------------------------------ */

static void change_index(const char *key, struct index_entry to, const struct index_term *old,
	size_t n_old, const struct index_term *new, size_t n_new)
{
	struct index_change change = {.feed = s.feed,
		.key = bytes_str(key),
		.to = to,
		.old = old,
		.n_old = n_old,
		.new = new,
		.n_new = n_new};

	OK(index_begin(s.index));
	OK(index_put(s.index, &change));
	OK(index_commit(s.index));
}

Test(verify, an_index_that_is_not_the_journal_is_told)
{
	uint64_t a = small_store_put(&s, "web/a", "n1", 0);
	uint64_t b = small_store_put(&s, "web/a", "n1", 0);

	small_store_take(&s);
	change_index("web/a", (struct index_entry){.seq = a}, NULL, 0, NULL, 0);
	assert_fault(s.path, false, "'web/a' of feed 1 is version");
	change_index("web/a", (struct index_entry){.seq = b}, NULL, 0, NULL, 0);
	assert_good(s.path);
	change_index("web/x", (struct index_entry){.seq = b}, NULL, 0, NULL, 0);
	assert_fault(s.path, false, "feed 1 has 2 objects, the journal 1");
	OK(index_begin(s.index));
	OK(index_remove(s.index, s.feed, BYTES_LIT("web/x"), NULL, 0));
	OK(index_remove(s.index, s.feed, BYTES_LIT("web/a"), NULL, 0));
	OK(index_commit(s.index));
	assert_fault(s.path, false, "'web/a' of feed 1 is missing");
}

Test(verify, terms_that_are_not_those_of_the_body_are_told_deep)
{
	uint64_t a = small_store_put(&s, "web/a", "n1", 0);
	struct index_term wrong = {s.node, BYTES_LIT("n2")}, right = {s.node, BYTES_LIT("n1")};
	struct index_entry to = {.seq = a};

	small_store_take(&s);
	change_index("web/a", to, NULL, 0, &wrong, 1);
	cr_assert_eq(verified(s.path, false).faults, 0);
	assert_fault(s.path, true, "'node' of feed 1 has 2 postings, the bodies have 1");
	change_index("web/a", to, &right, 1, NULL, 0);
	assert_fault(s.path, true, "'web/a' is not found under 'node' by its value 'n1'");
}

/* Databases of the index by number, for damage its own functions refuse. */
enum { NAME, OBJECT, TERM, POSTING };

static void delete_first(unsigned database)
{
	struct cursor *cursor;
	struct bytes key, value;

	OK(index_begin(s.index));
	OK(cursor_open(index_txn(s.index), database, &cursor));
	OK(cursor_seek(cursor, BYTES_NONE, &key, &value));
	OK(cursor_del(cursor));
	cursor_close(&cursor);
	OK(index_commit(s.index));
}

static void one_object(void)
{
	(void)small_store_put(&s, "web/a", "n1", 0);
	small_store_take(&s);
}

/* Walks over all names of the feed, or over the postings of a value. Returns how the walk ends. */
static int walk_index(const char *value)
{
	CLEANUP(index_walk_close) struct index_walk *walk = NULL;
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct index_entry entry;
	struct bytes key;
	uint64_t count;
	int r = txn_begin_read(index_env(s.index), &txn);

	if (r == 0)
		r = value ? index_postings(
				    s.index, txn, s.namespace_, bytes_str(value), &count, &walk)
			  : index_names(s.index, txn, s.feed, BYTES_NONE, BYTES_NONE, &walk);
	while (r == FOUND)
		r = index_walk_next(walk, &key, &entry);
	return r;
}

/* Readers listed fewer objects than there are, without an error. */
Test(verify, rows_that_a_damaged_tree_lacks_are_an_error_for_readers)
{
	one_object();
	cr_assert_eq(walk_index("web"), END);
	cr_assert_eq(walk_index(NULL), END);
	delete_first(POSTING); /* of 'namespace', the first definition */
	cr_assert_eq(walk_index("web"), ERR_CORRUPT);
	cr_assert(strstr(err_text(ERR_CORRUPT), "fewer postings of a value than are counted"), "%s",
		err_text(ERR_CORRUPT));
	delete_first(NAME);
	cr_assert_eq(walk_index(NULL), ERR_CORRUPT);
	cr_assert(strstr(err_text(ERR_CORRUPT), "fewer names of a feed than are counted"), "%s",
		err_text(ERR_CORRUPT));
}

Test(verify, a_missing_name_is_told)
{
	one_object();
	delete_first(NAME);
	assert_fault(s.path, false, "object 1 ('web/a') has no name");
	cr_assert(strstr(said, "feed 1 counts 1 objects and has 0"));
}

Test(verify, a_missing_object_is_told)
{
	one_object();
	delete_first(OBJECT);
	assert_fault(s.path, false, "'web/a' names object 1, which is missing");
	cr_assert(strstr(said, "is of object 1, which is missing"));
}

Test(verify, a_missing_value_or_posting_is_told)
{
	one_object();
	delete_first(POSTING);
	assert_fault(s.path, false, "term 1 counts 1 objects and has 0");
	delete_first(TERM);
	cr_assert_eq(verified(s.path, false).faults, 0, "no trace of the value is left");
	assert_fault(s.path, true, "'web/a' is not found under 'namespace' by its value 'web'");
}

/* ---- damage in the journal ---------------------------------------------- */

static struct bytes seq_bytes(uint64_t seq, uint8_t room[8])
{
	be64_put(room, seq);
	return BYTES(room, 8);
}

static void delete_record(uint64_t seq)
{
	uint8_t room[8];

	OK(journal_begin(s.journal));
	cr_assert_eq(txn_del(journal_txn(s.journal), DB_LOG, seq_bytes(seq, room)), FOUND);
	OK(journal_commit(s.journal));
}

Test(verify, a_missing_version_is_told)
{
	uint64_t a = small_store_put(&s, "web/a", "n1", 0);

	(void)small_store_put(&s, "web/a", "n2", 0);
	uint64_t c = small_store_put(&s, "web/c", "n2", 0);

	small_store_take(&s);
	delete_record(a);
	delete_record(c);
	assert_fault(s.path, false, "of 'web/a', before");
	cr_assert(strstr(said, "the head of 'web/c' names version"));
}

Test(verify, a_head_that_is_gone_or_of_another_object_is_told)
{
	CLEANUP(buf_release) struct buf head = BUF_INIT;
	struct record record;
	uint8_t room[HEAD_KEY_MAX];

	(void)small_store_put(&s, "web/a", "n1", 0);
	(void)small_store_put(&s, "web/b", "n1", 0);
	small_store_take(&s);
	OK(journal_begin(s.journal));
	OK(journal_get(s.journal, journal_txn(s.journal), 4, &record));
	cr_assert_eq(txn_del(journal_txn(s.journal), DB_HEAD, head_key(s.feed, record.key, room)),
		FOUND);
	struct bytes key = head_key(s.feed, BYTES_LIT("web/b"), room);
	head_write(key, &record, &head);
	OK(txn_put(journal_txn(s.journal), DB_HEAD, key, buf_bytes(&head), 0));
	OK(journal_commit(s.journal));
	assert_fault(s.path, false, "the head of 'web/b' names version 4 of 'web/a'");
	cr_assert(strstr(
		said, "version 5 of feed 1 is neither the newest of its object nor replaced"));
}

Test(verify, leftovers_below_the_horizon_are_told)
{
	uint64_t trimmed;
	uint8_t room[8], copy[4096];
	struct bytes value;

	uint64_t a = small_store_put(&s, "web/a", "n1", 0);
	uint64_t b = small_store_put(&s, "web/a", "n2", 0);

	small_store_take(&s);
	OK(journal_begin(s.journal));
	OK(txn_get(journal_txn(s.journal), DB_LOG, seq_bytes(a, room), &value));
	memcpy(copy, value.data, value.size);
	value.data = copy;
	journal_abort(s.journal);
	OK(journal_trim(s.journal, b, 1000, &trimmed));
	assert_good(s.path);
	OK(journal_begin(s.journal));
	OK(txn_put(journal_txn(s.journal), DB_LOG, seq_bytes(a, room), value, 0));
	OK(journal_commit(s.journal));
	assert_fault(s.path, false, "below the horizon and is still there");
}

Test(verify, a_body_of_another_object_and_a_wrong_checksum_are_told)
{
	struct record record = {.type = RECORD_ADDED,
		.key = BYTES_LIT("web/a"),
		.uid = BYTES_LIT("u"),
		.rv = BYTES_LIT("5"),
		.body = BYTES_LIT("\x81\xa8metadata\x82\xa4name\xa1"
				  "b\xa3uid\xa1u")};
	uint64_t seq;

	record.feed = s.feed;
	OK(journal_begin(s.journal));
	OK(journal_append(s.journal, &record, &seq));
	OK(journal_commit(s.journal));
	small_store_take(&s);
	cr_assert_eq(verified(s.path, false).faults, 0);
	assert_fault(s.path, true, "'web/a': metadata.name in the body differs");
	cr_assert(strstr(said, "metadata.namespace") && strstr(said, "metadata.resourceVersion"));
	cr_assert_null(strstr(said, "metadata.uid"));
	uint8_t room[8], copy[4096];
	struct bytes value;

	OK(journal_begin(s.journal));
	OK(txn_get(journal_txn(s.journal), DB_LOG, seq_bytes(seq, room), &value));
	memcpy(copy, value.data, value.size);
	copy[value.size - 1] ^= 1;
	value.data = copy;
	OK(txn_put(journal_txn(s.journal), DB_LOG, seq_bytes(seq, room), value, 0));
	OK(journal_commit(s.journal));
	assert_fault(s.path, false, "checksum of record");
}
