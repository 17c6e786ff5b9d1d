/* SPDX-License-Identifier: Apache-2.0 */
/* Records with a damaged header, and records missing in the log: walks detect each, and trims trust
 * none. */
#include <inttypes.h>

#include "store/journal/journal_record.h"
#include "tests/unit/journal_damage.h"
#include "tests/unit/journal_rig.h"

TestSuite(journal_damage, .init = set_up, .fini = tear_down, .timeout = 60);

/* Returns the seqs of a checked walk from FROM; "!" precedes an unreadable or missing one. */
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
	cr_assert_eq(journal_walk_open_checked(txn, from, meta.horizon, meta.next_seq, &walk), 0);
	uint64_t last = journal_walk_seq(walk);
	text[0] = '\0';
	while ((r = journal_walk_next(walk, &record)) != END) {
		cr_assert(r == FOUND || r == ERR_CORRUPT, "%s", err_text(r));
		if (r == ERR_CORRUPT && journal_walk_seq(walk) == last) {
			(void)snprintf(text + n, sizeof(text) - (size_t)n, "lacks");
			break;
		}
		last = journal_walk_seq(walk);
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%" PRIu64 " ",
			r == FOUND ? "" : "!", last);
	}
	return text;
}

/* 1 FEED_ADDED, then N versions of as many objects. */
static void fill(unsigned n)
{
	char key[16];

	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(key, sizeof(key), "web/%02u", i);
		(void)append(feed, RECORD_ADDED, key);
	}
	cr_assert_eq(journal_commit(j), 0);
}

Test(journal_damage, each_byte_but_the_bodys_is_noticed_without_the_body)
{
	size_t without_body = 48 + strlen("web/a") + 1 + 1;
	uint64_t seq = append(feed, RECORD_ADDED, "web/a");
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
	cr_expect_str_eq(walked(0), "1 2 3 lacks");
	cr_expect_str_eq(walked(5), "lacks");
	lose(j, 1);
	lose(j, 9);
	cr_expect_str_eq(walked(0), "lacks");
	damage(j, 7, 8, 0);
	cr_expect_str_eq(walked(6), "6 !7 8 lacks");
	cr_expect_str_eq(walked(9), "lacks");
	cr_expect_str_eq(walked(10), "");
}

Test(journal_damage, below_the_horizon_records_may_be_missing)
{
	uint64_t trimmed;

	fill(4);                                       /* 2 to 5 */
	(void)append(feed, RECORD_MODIFIED, "web/01"); /* 6, replaces 3 */
	(void)append(feed, RECORD_MODIFIED, "web/02"); /* 7, replaces 4 */
	cr_assert_eq(journal_commit(j), 0);
	cr_assert_eq(journal_trim(j, 6, 100, &trimmed), 0);
	cr_expect_str_eq(walked(0), "2 4 5 6 7 ");
	cr_expect_str_eq(walked(3), "4 5 6 7 ");
	lose(j, 7);
	cr_expect_str_eq(walked(0), "2 4 5 6 lacks");
	cr_expect_str_eq(walked(7), "lacks");
}

static void trimming_ends(void)
{
	struct journal_meta before = meta_of(j);
	uint64_t trimmed;

	cr_expect_eq(journal_trim(j, 9, 100, &trimmed), ERR_CORRUPT);
	cr_expect_eq(meta_of(j).horizon, before.horizon);
	for (uint64_t seq = 2; seq < 10; seq++)
		cr_expect(seq == 5 || is_stored(j, seq), "%" PRIu64, seq);
}

/* A damaged record seems to replace a version, but this may be another object's newest. */
Test(journal_damage, trimming_ends_at_a_record_that_it_can_not_read)
{
	fill(4); /* 2 to 5 */
	for (int i = 0; i < 4; i++)
		(void)append(feed, RECORD_MODIFIED, "web/01"); /* 6 to 9 */
	cr_assert_eq(journal_commit(j), 0);
	damage(j, 7, 8, 0); /* prev */
	trimming_ends();
	damage(j, 7, 8, 0);  /* back */
	damage(j, 7, 28, 0); /* type */
	trimming_ends();
	damage(j, 7, 28, 0);
	lose(j, 5);
	trimming_ends();
}

/* Returns the stored head of KEY, its key first, in a page of the open write transaction. */
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
	int r = head_walk_open(journal_txn(j), feed, BYTES_NONE, &walk);

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

/* Else the next version would name another object's version, and trims would delete it; or the
 * object would be added twice. */
Test(journal_damage, no_byte_of_a_head_is_believed)
{
	uint32_t other = add_feed();

	fill(4);
	(void)append(other, RECORD_ADDED, "web/x");
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
