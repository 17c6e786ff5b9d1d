/* SPDX-License-Identifier: Apache-2.0 */
/* Damages records of a test's journal, and inspects the records left by a trim. */
#ifndef UNIT_JOURNAL_DAMAGE_H
#define UNIT_JOURNAL_DAMAGE_H

#include "common/bytes.h"
#include "store/journal/journal_internal.h"
#include "tests/unit/unit.h"

/* Replaces byte AT of the stored record SEQ, or its last one, by another; SIZE also truncates
 * it. */
static inline void damage(struct journal *j, uint64_t seq, size_t at, size_t size)
{
	uint8_t room[SEQ_KEY_SIZE], copy[1024];
	struct bytes stored;

	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(txn_get(journal_txn(j), DB_LOG, seq_key(seq, room), &stored), FOUND);
	cr_assert(stored.size <= sizeof(copy));
	memcpy(copy, stored.data, stored.size);
	copy[at < stored.size ? at : stored.size - 1] ^= 1;
	cr_assert_eq(txn_put(journal_txn(j), DB_LOG, seq_key(seq, room),
			     BYTES(copy, size ? size : stored.size), 0),
		0);
	cr_assert_eq(journal_commit(j), 0);
}

/* Takes the record SEQ out of the log. */
static inline void lose(struct journal *j, uint64_t seq)
{
	uint8_t room[SEQ_KEY_SIZE];

	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(txn_del(journal_txn(j), DB_LOG, seq_key(seq, room)), FOUND);
	cr_assert_eq(journal_commit(j), 0);
}

static inline struct journal_meta meta_of(struct journal *j)
{
	struct journal_meta meta;

	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_meta(j, journal_txn(j), &meta), 0);
	journal_abort(j);
	return meta;
}

/* True for an unreadable record too. */
static inline bool is_stored(struct journal *j, uint64_t seq)
{
	uint8_t room[SEQ_KEY_SIZE];
	struct bytes stored;

	cr_assert_eq(journal_begin(j), 0);
	int r = txn_get(journal_txn(j), DB_LOG, seq_key(seq, room), &stored);
	journal_abort(j);
	return r == FOUND;
}

#endif
