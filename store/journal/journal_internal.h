/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal group's internal header: databases, keys, and the writer's memory. journal.c appends,
 * commits and looks up; journal_open.c opens, begins and removes journals; journal_walk.c walks log
 * and heads; feed_row.c holds feeds and checkpoints; feed_passed.c the objects passed over;
 * feed_name.c the names of feeds; journal_meta.c the counters; journal_copy.c copies for compaction
 * and backup; trim.c the horizon; journal_record.c the bytes of a record; salvage.c finds the
 * records of a journal with broken trees.
 *
 * The writer keeps meta and checkpoints in memory and writes the changed ones once, at commit. An
 * abort or a failed commit makes its memory `stale`: the next begin loads it again.
 */
#ifndef STORE_JOURNAL_JOURNAL_INTERNAL_H
#define STORE_JOURNAL_JOURNAL_INTERNAL_H

#include "common/buf.h"
#include "store/env/generation.h"
#include "store/journal/journal.h"
#include "store/journal/journal_record.h"

enum journal_db { DB_LOG, DB_HEAD, DB_FEED, DB_META, DB_MAX };
enum feed_part { FEED_DEFINITION = 0, FEED_CHECKPOINT = 1, FEED_PASSED = 2, FEED_PART_MAX };

#define FEED_KEY_SIZE 5
#define SEQ_KEY_SIZE  8

struct feed_row {
	struct feed_checkpoint checkpoint; /* its texts lie in rv and trimmed_rv */
	uint32_t id;
	bool changed;
	struct buf rv, trimmed_rv;
};

struct journal {
	uint32_t magic;
	struct generation *gen;
	bool is_writer;
	/* The rest: writer only. */
	struct txn *txn;
	struct cursor *heads; /* in txn */
	/* The last search in `heads`. An append of this key goes on from it. */
	struct head_search {
		uint8_t key[HEAD_KEY_MAX];
		size_t key_size; /* 0: the cursor has moved, or heads changed */
		int result;      /* FOUND, NOT_FOUND; END: nor is there a later key */
		uint64_t seq;    /* FOUND: of the head */
	} search;
	int error; /* the open transaction can only be aborted */
	bool stale;
	bool meta_changed;
	struct journal_meta meta;
	struct feed_row *feeds; /* by id */
	size_t n_feeds, feeds_room;
	struct buf scratch;
};

/* ---- meta (journal_meta.c) ---------------------------------------------- */

#define META_KEY BYTES_LIT("journal")
/* Reads the row. ERR_CORRUPT. */
int meta_decode(struct bytes value, struct journal_meta *ret_meta);
int meta_read(struct txn *txn, struct journal_meta *ret_meta);
int meta_write(struct txn *txn, const struct journal_meta *meta);

/* ---- feeds (feed_row.c) ------------------------------------------------- */

struct bytes feed_key(uint32_t feed, enum feed_part part, uint8_t room[FEED_KEY_SIZE]);
#define FEED_CRC_SIZE 4 /* at the end of each row */
uint32_t row_checksum(struct bytes key, struct bytes content);
/* Appends the checksum of row PART of FEED to BUF, its content. */
void feed_checksum(uint32_t feed, enum feed_part part, struct buf *buf);
/* Returns the row's content without its checksum. ERR_CORRUPT. */
int feed_open(uint32_t feed, enum feed_part part, struct bytes stored, struct bytes *ret_content);
int definition_write(const struct feed_definition *definition, struct buf *buf);
/* The texts of RET_DEFINITION lie in BUF. */
int definition_read(uint32_t feed, struct bytes stored, struct buf *buf,
	struct feed_definition *ret_definition);
/* Tells it of a stored checkpoint without comparing its checksum. */
bool checkpoint_is_removed(struct bytes stored);
int checkpoint_read(uint32_t feed, struct bytes stored, struct feed_checkpoint *ret_checkpoint);

int feed_rows_load(struct journal *journal, struct txn *txn);
int feed_rows_flush(struct journal *journal);
void feed_rows_release(struct journal *journal);
struct feed_row *feed_row_find(const struct journal *journal, uint32_t feed);
int feed_row_add(struct journal *journal, uint32_t feed, struct feed_row **ret_row);
void feed_row_remove(struct journal *journal, uint32_t feed);
int feed_row_set_rv(struct feed_row *row, struct bytes rv);
/* Records the trimming of SEQ with RV, empty: none. */
int feed_row_set_trimmed(struct feed_row *row, uint64_t seq, struct bytes rv);

/* ---- journal_open.c ----------------------------------------------------- */

#define JOURNAL_MAGIC 0x6b1e0e06u

extern const struct generation_kind journal_kind;
int journal_new_uuid(uint8_t ret_uuid[16]);
struct generation_options journal_generation_options(
	const struct home *home, const struct journal_options *options, struct pin_places *places);

/* Loads the writer's memory from the databases. */
int journal_load(struct journal *journal, struct txn *txn);

/* ---- journal.c ---------------------------------------------------------- */

/* The caller writes: a transaction has to be open. */
void journal_require_open(const struct journal *journal);
struct bytes seq_key(uint64_t seq, uint8_t room[SEQ_KEY_SIZE]);
/* Same as journal_begin(), but may use the room kept free for deletes. */
int journal_begin_trim(struct journal *journal);
/* Writes the changed rows and commits; passes no failpoints. */
int journal_finish(struct journal *journal);

#endif
