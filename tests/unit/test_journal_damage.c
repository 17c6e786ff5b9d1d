/* SPDX-License-Identifier: Apache-2.0 */
/* Records whose header is damaged, and records that the log lacks: walks notice each, and
 * trimming believes none. */
#include <inttypes.h>
#include <stdio.h>

#include "common/cleanup.h"
#include "store/journal/journal_record.h"
#include "tests/unit/journal_damage.h"
#include "tests/unit/journal_rig.h"

static struct home *home;
static struct journal *j;
static uint32_t feed;

static void setup(void)
{
	home = open_home();
	j = open_writer(home);
	feed = add_feed(j);
}

static void teardown(void)
{
	journal_close(&j);
	home_close(&home);
}

TestSuite(journal_damage, .init = setup, .fini = teardown, .timeout = 60);

/* Returns the seqs to which a checked walk from FROM comes; "!" stands before one that can't be
 * read or is missing. */
static const char *walked(uint64_t from)
{
	static char text[256];
	CLEANUP(journal_walk_close) struct journal_walk *walk = NULL;
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct journal_meta meta;
	struct record record;
	int n = 0, r;

	cr_assert_eq(txn_begin_read(journal_env(j), &txn), 0);
	cr_assert_eq(journal_meta(j, txn, &meta), 0);
	cr_assert_eq(
		journal_walk_open_checked(j, txn, from, meta.horizon, meta.next_seq, &walk), 0);
	text[0] = '\0';
	while ((r = journal_walk_next(walk, &record)) != END) {
		cr_assert(r == FOUND || r == ERR_CORRUPT, "%s", err_text(r));
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%" PRIu64 " ",
			r == FOUND ? "" : "!", journal_walk_seq(walk));
	}
	return text;
}

/* 1 FEED_ADDED, then N versions of as many objects. */
static void fill(unsigned n)
{
	char key[16];

	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(key, sizeof(key), "web/%02u", i);
		(void)append(j, feed, RECORD_ADDED, key);
	}
	cr_assert_eq(journal_commit(j), 0);
}

Test(journal_damage, each_byte_but_the_bodys_is_noticed_without_the_body)
{
	size_t without_body = 48 + strlen("web/a") + 1 + 1;
	uint64_t seq = append(j, feed, RECORD_ADDED, "web/a");
	struct record record;

	cr_assert_eq(journal_commit(j), 0);
	for (size_t at = 0; at < without_body; at++) {
		if (at >= 40 && at < 44) /* the checksum of the whole */
			continue;
		damage(j, seq, at, 0);
		cr_assert_eq(journal_begin(j), 0);
		cr_expect_eq(
			journal_get(j, journal_txn(j), seq, &record), ERR_CORRUPT, "byte %zu", at);
		journal_abort(j);
		cr_expect_str_eq(walked(seq), "!2 ", "byte %zu: %s", at, walked(seq));
		damage(j, seq, at, 0); /* back */
	}
	cr_expect_str_eq(walked(seq), "2 ");
}

Test(journal_damage, a_walk_notices_each_record_that_is_missing)
{
	fill(8); /* 2 to 9 */
	cr_expect_str_eq(walked(0), "1 2 3 4 5 6 7 8 9 ");
	lose(j, 4);
	lose(j, 5);
	cr_expect_str_eq(walked(0), "1 2 3 !5 6 7 8 9 ");
	cr_expect_str_eq(walked(5), "!5 6 7 8 9 ");
	lose(j, 1);
	lose(j, 9);
	cr_expect_str_eq(walked(0), "!1 2 3 !5 6 7 8 !9 ");
	damage(j, 7, 8, 0);
	cr_expect_str_eq(walked(6), "6 !7 8 !9 ");
	cr_expect_str_eq(walked(9), "!9 ");
	cr_expect_str_eq(walked(10), "");
}

Test(journal_damage, below_the_horizon_records_may_be_missing)
{
	uint64_t trimmed;

	fill(4);                                          /* 2 to 5 */
	(void)append(j, feed, RECORD_MODIFIED, "web/01"); /* 6, replaces 3 */
	(void)append(j, feed, RECORD_MODIFIED, "web/02"); /* 7, replaces 4 */
	cr_assert_eq(journal_commit(j), 0);
	cr_assert_eq(journal_trim(j, 6, 100, &trimmed), 0);
	cr_expect_str_eq(walked(0), "2 4 5 6 7 ");
	cr_expect_str_eq(walked(3), "4 5 6 7 ");
	lose(j, 7);
	cr_expect_str_eq(walked(0), "2 4 5 6 !7 ");
	cr_expect_str_eq(walked(7), "!7 ");
}

static uint64_t trimmed_of(uint32_t of)
{
	struct feed_checkpoint checkpoint;

	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_feed_checkpoint(j, journal_txn(j), of, &checkpoint), FOUND);
	journal_abort(j);
	return checkpoint.trimmed;
}

static bool is_there(uint64_t seq)
{
	struct record record;

	cr_assert_eq(journal_begin(j), 0);
	int r = journal_get(j, journal_txn(j), seq, &record);
	journal_abort(j);
	return r == FOUND;
}

Test(journal_damage, trimming_deletes_nothing_because_of_a_damaged_header)
{
	uint32_t other = add_feed(j);                                       /* 2 */
	uint64_t trimmed, kept = append(j, feed, RECORD_ADDED, "web/kept"); /* 3 */

	(void)append(j, feed, RECORD_ADDED, "web/a");
	uint64_t second = append(j, feed, RECORD_MODIFIED, "web/a");
	uint64_t last = append(j, feed, RECORD_ADDED, "web/b");
	cr_assert_eq(journal_commit(j), 0);
	damage(j, second, 8, 0);  /* prev: 5, not 4 */
	damage(j, second, 28, 0); /* type: DELETED */
	cr_assert_eq(journal_trim(j, last, 100, &trimmed), 0);
	cr_expect(is_there(kept) && is_there(last));
	cr_expect_eq(trimmed, 2, "the two FEED_ADDED: %" PRIu64, trimmed);
	cr_expect_eq(trimmed_of(feed), last);
	cr_expect_eq(trimmed_of(other), second, "it may have been the other feed's");
}

Test(journal_damage, trimming_passes_over_missing_records_up_to_where_it_may)
{
	struct journal_meta meta;
	uint64_t trimmed;

	fill(8); /* 2 to 9 */
	for (uint64_t seq = 3; seq < 8; seq++)
		lose(j, seq);
	cr_assert_eq(journal_trim(j, 5, 100, &trimmed), 0);
	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_meta(j, journal_txn(j), &meta), 0);
	cr_expect_eq(meta.horizon, 5);
	journal_abort(j);
	cr_expect_eq(trimmed_of(feed), 5);
	cr_assert_eq(journal_trim(j, 9, 100, &trimmed), 0);
	cr_expect_eq(trimmed_of(feed), 9);
}

Test(journal_damage, a_removed_feed_goes_also_if_its_last_record_is_damaged)
{
	struct feed_checkpoint checkpoint;
	uint64_t trimmed, seq;

	fill(3);
	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_append(
			     j, &(struct record){.feed = feed, .type = RECORD_FEED_REMOVED}, &seq),
		0);
	cr_assert_eq(journal_commit(j), 0);
	damage(j, seq, 28, 0);
	int r;
	while ((r = journal_trim(j, seq, 100, &trimmed)) == AGAIN)
		continue;
	cr_assert_eq(r, 0, "%s", err_text(r));
	cr_assert_eq(journal_begin(j), 0);
	cr_expect_eq(journal_feed_checkpoint(j, journal_txn(j), feed, &checkpoint), NOT_FOUND);
	journal_abort(j);
	for (uint64_t at = 1; at <= seq; at++)
		cr_expect_not(is_there(at), "%" PRIu64, at);
}

/* Returns the stored head of KEY, its key first, in a page that the open transaction may change. */
static uint8_t *head_of(const char *key)
{
	uint8_t room[HEAD_KEY_MAX], copy[256];
	struct bytes stored, wanted = head_key(feed, bytes_str(key), room);

	cr_assert_eq(txn_get(journal_txn(j), DB_HEAD, wanted, &stored), FOUND);
	cr_assert(stored.size <= sizeof(copy));
	memcpy(copy, stored.data, stored.size);
	cr_assert_eq(txn_put(journal_txn(j), DB_HEAD, wanted, BYTES(copy, stored.size), 0), 0);
	cr_assert_eq(txn_get(journal_txn(j), DB_HEAD, wanted, &stored), FOUND);
	return (uint8_t *)(uintptr_t)stored.data - wanted.size;
}

static int walk_heads(void)
{
	CLEANUP(head_walk_close) struct head_walk *walk = NULL;
	struct bytes key;
	struct head head;
	int r = head_walk_open(j, journal_txn(j), feed, BYTES_NONE, &walk);

	while (r == 0)
		r = head_walk_next(walk, &key, &head);
	return r;
}

static void no_byte_is_believed(const char *key)
{
	size_t size = 4 + strlen(key) + 16;
	struct head head;

	for (size_t at = 0; at <= size; at++) {
		int expected = at < size ? ERR_CORRUPT : FOUND;

		cr_assert_eq(journal_begin(j), 0);
		uint8_t *stored = head_of(key);
		if (at < size)
			stored[at] ^= 1;
		cr_expect_eq(journal_head(j, journal_txn(j), feed, bytes_str(key), &head), expected,
			"%s, byte %zu", key, at);
		cr_expect_eq(
			walk_heads(), expected == FOUND ? END : expected, "%s, byte %zu", key, at);
		journal_abort(j);
	}
}

/* Else the next version would name another object's, which trimming would delete; or the object
 * would be added twice. */
Test(journal_damage, no_byte_of_a_head_is_believed)
{
	uint32_t other = add_feed(j);

	fill(4);
	(void)append(j, other, RECORD_ADDED, "web/x");
	cr_assert_eq(journal_commit(j), 0);
	no_byte_is_believed("web/00");
	no_byte_is_believed("web/02");
	no_byte_is_believed("web/03");
}

Test(journal_damage, a_page_of_heads_that_lacks_some_is_noticed)
{
	enum { LOWER = 12 };
	uintptr_t page = env_page_size(journal_env(j));
	struct head head;

	fill(4);
	cr_assert_eq(journal_begin(j), 0);
	uint8_t *lower = (uint8_t *)((uintptr_t)head_of("web/03") / page * page) + LOWER;
	le16_put(lower, (uint16_t)(le16_get(lower) - 2));
	cr_expect_eq(
		journal_head(j, journal_txn(j), feed, BYTES_LIT("web/03"), &head), ERR_CORRUPT);
	cr_expect_eq(walk_heads(), ERR_CORRUPT);
	journal_abort(j);
}

/* Trimming passes over a damaged version that a newer one replaces, over a damaged deletion, and
 * over missing records. */
Test(journal_damage, trimming_leaves_nothing_of_what_it_passed_over)
{
	fill(5);                                                       /* 2 to 6 */
	uint64_t damaged = append(j, feed, RECORD_MODIFIED, "web/00"); /* 7 */
	uint64_t deleted = append(j, feed, RECORD_DELETED, "web/01");  /* 8 */
	uint64_t missing = append(j, feed, RECORD_MODIFIED, "web/02"); /* 9 */
	uint64_t newest = append(j, feed, RECORD_MODIFIED, "web/03");  /* 10 */
	cr_assert_eq(journal_commit(j), 0);
	damage(j, damaged, 8, 0);
	damage(j, deleted, 8, 0);
	damage(j, newest, 8, 0);
	lose(j, missing);
	trim_to(j, newest, 100);
	cr_expect(!is_stored(j, 3) && !is_stored(j, deleted), "web/01 is deleted");
	cr_expect(!is_stored(j, 2) && !is_stored(j, 5), "versions before the newest");
	cr_expect(is_stored(j, 6), "an object that did not change");
	cr_expect_eq(meta_of(j).history, 0);
	uint64_t last = append(j, feed, RECORD_MODIFIED, "web/00");
	cr_assert_eq(journal_commit(j), 0);
	cr_expect_gt(meta_of(j).history, 0);
	trim_to(j, last, 100);
	cr_expect_not(is_stored(j, damaged));
	cr_expect_eq(meta_of(j).history, 0);
}

Test(journal_damage, nothing_goes_while_a_record_above_the_horizon_may_need_it)
{
	fill(3);                                                       /* 2 to 4 */
	uint64_t damaged = append(j, feed, RECORD_MODIFIED, "web/00"); /* 5 */
	uint64_t second = append(j, feed, RECORD_MODIFIED, "web/01");  /* 6, after 3 */
	uint64_t last = append(j, feed, RECORD_MODIFIED, "web/02");    /* 7, after 4 */
	cr_assert_eq(journal_commit(j), 0);
	damage(j, damaged, 8, 0);
	damage(j, second, 8, 0);
	trim_to(j, damaged, 100);
	cr_expect(is_stored(j, 2) && is_stored(j, 3) && is_stored(j, 4) && is_stored(j, damaged));
	trim_to(j, second, 100);
	cr_expect(!is_stored(j, 2) && !is_stored(j, 3), "the heads name the newest");
	cr_expect(is_stored(j, 4) && is_stored(j, damaged) && is_stored(j, second),
		"4 is the one before 7");
	trim_to(j, last, 100);
	cr_expect(!is_stored(j, 4) && is_stored(j, last));
}

Test(journal_damage, a_removed_feed_goes_also_if_its_last_record_is_one_of_several_that_are_missing)
{
	struct feed_checkpoint checkpoint;
	uint32_t other = add_feed(j);
	uint64_t removed;

	fill(3);
	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_append(j, &(struct record){.feed = feed, .type = RECORD_FEED_REMOVED},
			     &removed),
		0);
	cr_assert_eq(journal_commit(j), 0);
	(void)append(j, other, RECORD_ADDED, "web/x");
	uint64_t last = append(j, other, RECORD_MODIFIED, "web/x");
	cr_assert_eq(journal_commit(j), 0);
	for (uint64_t seq = removed - 1; seq <= removed + 1; seq++)
		lose(j, seq);
	trim_to(j, last, 100);
	cr_assert_eq(journal_begin(j), 0);
	cr_expect_eq(journal_feed_checkpoint(j, journal_txn(j), feed, &checkpoint), NOT_FOUND);
	journal_abort(j);
	for (uint64_t seq = 1; seq < last; seq++)
		cr_expect_not(is_stored(j, seq), "%" PRIu64, seq);
	cr_expect(is_stored(j, last));
}

/* A page that has the same row twice leads the walk back. */
Test(journal_damage, trimming_goes_on_after_a_page_that_leads_back)
{
	enum { ROWS = 16 };
	uint8_t room[SEQ_KEY_SIZE];
	uintptr_t page = env_page_size(journal_env(j));
	struct journal_meta meta;
	struct bytes stored;
	uint64_t trimmed;

	fill(9); /* 2 to 10 */
	for (unsigned i = 0; i < 5; i++)
		(void)append(j, feed, RECORD_MODIFIED, "web/08");
	cr_assert_eq(journal_commit(j), 0);
	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(txn_get(journal_txn(j), DB_LOG, seq_key(1, room), &stored), FOUND);
	uint8_t copy[256];
	cr_assert(stored.size <= sizeof(copy));
	memcpy(copy, stored.data, stored.size);
	cr_assert_eq(
		txn_put(journal_txn(j), DB_LOG, seq_key(1, room), BYTES(copy, stored.size), 0), 0);
	cr_assert_eq(txn_get(journal_txn(j), DB_LOG, seq_key(1, room), &stored), FOUND);
	uint8_t *leaf = (uint8_t *)((uintptr_t)stored.data / page * page);
	memcpy(leaf + ROWS + 2 * 6, leaf + ROWS + 2 * 3, 2); /* 4 in the place of 7 */
	cr_assert_eq(journal_commit(j), 0);
	int r = journal_trim(j, 10, 100, &trimmed);
	cr_assert_eq(r, 0, "%s", err_text(r));
	meta = meta_of(j);
	cr_expect_eq(meta.horizon, 10, "%" PRIu64, meta.horizon);
	cr_expect(is_there(2) && is_there(3) && is_there(10));
}

static void damage_row(uint32_t of, enum feed_part part)
{
	uint8_t room[FEED_KEY_SIZE], copy[1024];
	struct bytes stored;

	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(txn_get(journal_txn(j), DB_FEED, feed_key(of, part, room), &stored), FOUND);
	cr_assert(stored.size <= sizeof(copy));
	memcpy(copy, stored.data, stored.size);
	copy[3] ^= 1;
	cr_assert_eq(txn_put(journal_txn(j), DB_FEED, feed_key(of, part, room),
			     BYTES(copy, stored.size), 0),
		0);
	cr_assert_eq(journal_commit(j), 0);
}

/* Finds the damaged feed, which is EXPECTED, or none for 0; and stores its rows again without a
 * definition. */
static void is_restored(uint32_t expected)
{
	CLEANUP(txn_abort) struct txn *txn = NULL;
	uint32_t found = 0;

	cr_assert_eq(txn_begin_read(journal_env(j), &txn), 0);
	cr_assert_eq(journal_find_damaged_feed(j, txn, 0, &found), expected ? FOUND : NOT_FOUND);
	cr_expect_eq(found, expected);
	if (!expected)
		return;
	err_forget();
	cr_expect_eq(journal_find_damaged_feed(j, txn, found, &found), NOT_FOUND);
	cr_expect(journal_feed_is_removed(j, found));
	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_restore_feed(j, &(struct feed_definition){.id = found}), 0);
	cr_assert_eq(journal_commit(j), 0);
}

/* Readers read the rows of all feeds, also of removed ones, although they show nothing of those. */
Test(journal_damage, rows_of_a_removed_feed_can_be_stored_again)
{
	uint64_t seq;

	(void)add_feed(j);
	fill(3);
	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_append(
			     j, &(struct record){.feed = feed, .type = RECORD_FEED_REMOVED}, &seq),
		0);
	cr_assert_eq(journal_commit(j), 0);
	is_restored(0);
	damage_row(feed, FEED_DEFINITION);
	is_restored(feed);
	is_restored(0);
	damage_row(feed, FEED_CHECKPOINT);
	is_restored(feed);
	is_restored(0);
}
