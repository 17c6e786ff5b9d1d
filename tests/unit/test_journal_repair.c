/* SPDX-License-Identifier: Apache-2.0 */
/* journal_repair(): a damaged record is stored again under its own seq. */
#include "common/bytes.h"
#include "common/cleanup.h"
#include "store/journal/journal_internal.h"
#include "tests/unit/journal_damage.h"
#include "tests/unit/journal_rig.h"

static struct record given(uint32_t feed, const char *key)
{
	return (struct record){.feed = feed,
		.key = bytes_str(key),
		.uid = BYTES_LIT("u"),
		.rv = BYTES_LIT("7"),
		.body = BYTES_LIT("\x81\xa1x\x01")};
}

/* Damages record SEQ of KEY at each of its bytes, and has it stored again: it is as before. */
static void each_byte(struct journal *j, uint32_t feed, const char *key, uint64_t seq,
	uint64_t prev, uint8_t type)
{
	struct journal_meta meta, before;
	struct record record = {0};
	size_t size = 48 + strlen(key) + 1 + 1 + 4;

	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_meta(j, journal_txn(j), &before), 0);
	for (size_t at = 0; at < size + 1; at++) {
		struct record from_server = given(feed, key);

		damage(j, seq, at < size ? at : 0, at < size ? 0 : 20); /* at last it is cut */
		cr_assert_eq(journal_begin(j), 0);
		int r = journal_get(j, journal_txn(j), seq, &record);
		cr_assert(r == ERR_CORRUPT || record_check(&record) == ERR_CORRUPT, "byte %zu", at);
		cr_assert_eq(journal_repair(j, seq, &from_server), 0);
		cr_assert_eq(journal_commit(j), 0);
		cr_assert_eq(journal_begin(j), 0);
		cr_assert_eq(journal_get(j, journal_txn(j), seq, &record), FOUND);
		cr_assert_eq(record_check(&record), 0);
		cr_expect_eq(record.type, type, "byte %zu", at);
		cr_expect_eq(record.prev, prev, "byte %zu", at);
		cr_expect_eq(record.feed, feed);
		cr_expect(bytes_equal(record.key, bytes_str(key)));
		cr_expect(bytes_equal(record.body, BYTES_LIT("\x81\xa1x\x01")));
		journal_abort(j);
	}
	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_meta(j, journal_txn(j), &meta), 0);
	cr_expect_eq(meta.repairs, before.repairs + size + 1);
	cr_expect_eq(meta.next_seq, before.next_seq);
	journal_abort(j);
}

Test(journal_repair, a_record_damaged_at_any_byte_is_stored_again_with_its_chain)
{
	struct home *home = open_home();
	struct journal *j = open_writer(home);
	uint32_t feed = add_feed(j);

	uint64_t first = append(j, feed, RECORD_ADDED, "web/a");
	uint64_t other = append(j, feed, RECORD_ADDED, "web/b");
	uint64_t second = append(j, feed, RECORD_MODIFIED, "web/a");
	cr_assert_eq(journal_commit(j), 0);
	each_byte(j, feed, "web/a", second, first, RECORD_MODIFIED);
	each_byte(j, feed, "web/b", other, 0, RECORD_ADDED);
	journal_close(&j);
	home_close(&home);
}

Test(journal_repair, history_is_counted_as_before)
{
	struct home *home = open_home();
	struct journal *j = open_writer(home);
	uint32_t feed = add_feed(j);

	uint64_t seq = append(j, feed, RECORD_ADDED, "web/a");
	cr_assert_eq(journal_commit(j), 0);
	uint64_t history = journal_history(j);
	struct record from_server = given(feed, "web/a");

	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_repair(j, seq, &from_server), 0);
	cr_assert_eq(journal_commit(j), 0);
	cr_expect_eq(journal_history(j), history);
	journal_close(&j);
	home_close(&home);
}

Test(journal_repair, trimming_passes_a_record_that_can_not_be_read)
{
	struct home *home = open_home();
	struct journal *j = open_writer(home);
	uint32_t feed = add_feed(j);
	uint64_t trimmed;

	(void)append(j, feed, RECORD_ADDED, "web/a");
	uint64_t broken = append(j, feed, RECORD_MODIFIED, "web/a");
	(void)append(j, feed, RECORD_MODIFIED, "web/a");
	uint64_t last = append(j, feed, RECORD_MODIFIED, "web/a");
	cr_assert_eq(journal_commit(j), 0);
	damage(j, broken, 0, 20);
	cr_assert_eq(journal_trim(j, last, 100, &trimmed), 0, "%s", err_text(ERR_CORRUPT));

	struct journal_meta meta;
	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_meta(j, journal_txn(j), &meta), 0);
	cr_expect_eq(meta.horizon, last);
	journal_abort(j);
	journal_close(&j);
	home_close(&home);
}
