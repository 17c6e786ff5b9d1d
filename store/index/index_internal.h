/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The internals of the index group: databases, encoding of keys and rows (FORMAT.md, Index), and
 * the handle. Only the group and verify_index.c, a reader of raw rows, include this.
 */
#ifndef STORE_INDEX_INDEX_INTERNAL_H
#define STORE_INDEX_INDEX_INTERNAL_H

#include "store/index/changes.h"
#include "store/env/generation.h"
#include "store/index/hints.h"
#include "store/index/index.h"
#include "store/journal/journal.h"

#define INDEX_FORMAT 6
#define INDEX_MAGIC  0x6b696478u

enum index_database {
	INDEX_NAME,
	INDEX_OBJECT,
	INDEX_TERM,
	INDEX_POSTING,
	INDEX_META,
	INDEX_DATABASES
};

#define NAME_KEY_MAX (4 + JOURNAL_KEY_MAX)
/* end of each value: CRC32C of the key and the value before it */
#define ROW_CRC          4
#define ENTRY_BYTES      32
#define OBJECT_HEAD      (ENTRY_BYTES + 4) /* the object key follows */
#define TERM_KEY_MAX     (4 + INDEX_VALUE_MAX + INDEX_HASH_BYTES)
#define INDEX_HASH_BYTES 16
#define TERM_BYTES       16
/* the distances of a block's other ids are the value (index_postings.h) */
#define POSTING_KEY     16
#define STATE_BYTES     56
#define FEED_BYTES      (32 + INDEX_RV_SIZE)
#define DEFINITION_HEAD 16 /* name and paths follow, each with its NUL */

_Static_assert(NAME_KEY_MAX <= ENV_KEY_MAX && TERM_KEY_MAX <= ENV_KEY_MAX, "keys fit LMDB");

/* Rows of meta: a tag, for feeds and definitions their id. */
enum { META_STATE = 's', META_FEED = 'f', META_DEFINITION = 'd' };
#define META_KEY 5

struct index_state {
	struct index_meta meta;
	uint64_t next_object;
	uint64_t next_term;
	uint32_t next_definition;
};

struct index_feed_row {
	struct index_feed feed;
	bool changed;
};

struct index_definition_row {
	struct index_definition definition; /* its texts are at the end of this allocation */
	bool changed;
};

struct index {
	uint32_t magic;
	struct generation *gen;
	struct txn *txn;      /* the open write transaction */
	struct cursor *names; /* of it, for lookups: most come in order. NULL: there was none yet */
	int error;            /* first error of the open transaction */
	/* The writer's copy of meta; loaded again after a failed transaction. */
	bool loaded;
	struct index_state state;
	bool state_changed;
	struct index_feed_row *feeds; /* by id */
	size_t n_feeds, feeds_room;
	struct index_definition_row **definitions; /* by id */
	size_t n_definitions, definitions_room;
	struct changes changes;
	struct hints *hints; /* the writer's, of a published index; NULL: none could be made */
	/* For another attempt at a table. */
	uint64_t hints_retry_objects, hints_retry_taken;
};

extern const struct generation_kind index_kind;

/* ---- encoding; index_layout.c ------------------------------------------- */

struct bytes index_name_key(uint8_t *buffer, uint32_t feed, struct bytes key);
/* The key of a value longer than INDEX_VALUE_MAX is its beginning and a hash: longer than any key
 * of a whole value. */
struct bytes index_term_key(uint8_t *buffer, uint32_t definition, struct bytes value);
static inline bool index_term_is_whole(struct bytes key)
{
	return key.size <= 4 + INDEX_VALUE_MAX;
}
struct bytes index_posting_key(uint8_t *buffer, uint64_t term, uint64_t object);
struct bytes index_meta_key(uint8_t *buffer, char tag, uint32_t id);

void index_write_entry(uint8_t *row, const struct index_entry *entry);
void index_read_entry(const uint8_t *row, struct index_entry *ret_entry);

/* Appends the checksum of row KEY to its value of SIZE bytes. Returns the whole value. */
struct bytes index_checksum_row(struct bytes key, uint8_t *row, size_t size);
/* Takes the checksum off VALUE, the row KEY of DB, and compares it. Returns: 0; ERR_CORRUPT. */
int index_check_row(enum index_database db, struct bytes key, struct bytes *value);

/* Checks that no row is missing at WANTED, after txn_floor() found a sound row before it, or none.
 * Returns: 0; ERR_CORRUPT. */
int index_check_missing(struct txn *txn, enum index_database db, struct bytes wanted);

/* Each returns ERR_CORRUPT if VALUE has another shape or checksum. */
int index_read_name(struct bytes key, struct bytes value, struct index_entry *ret_entry);
int index_read_object(struct bytes key, struct bytes value, uint32_t *ret_feed,
	struct bytes *ret_key, struct index_entry *ret_entry);
int index_read_term(struct bytes key, struct bytes value, uint64_t *ret_term, uint64_t *ret_count);
int index_read_state(struct bytes key, struct bytes value, struct index_state *ret_state);
int index_read_feed(struct bytes key, struct bytes value, struct index_feed *ret_feed);
int index_read_definition(
	struct bytes key, struct bytes value, struct index_definition *ret_definition);
/* Each writes a row without its checksum (index_checksum_row()). */
void index_write_state(uint8_t row[STATE_BYTES], const struct index_state *state);
void index_write_feed(uint8_t row[FEED_BYTES], const struct index_feed *feed);
void index_write_definition(struct buf *row, const struct index_definition *definition);

/* ---- the writer's copy of meta; index.c --------------------------------- */

/* Returns NULL if there is none. Borrowed until the next feed or definition is added or removed. */
struct index_feed_row *index_feed_row(struct index *index, uint32_t feed);
struct index_definition_row *index_definition_row(struct index *index, uint32_t id);
/* Finds the row or adds one of zeros. */
int index_feed_row_add(struct index *index, uint32_t feed, struct index_feed_row **ret_row);
void index_feed_row_remove(struct index *index, uint32_t feed);
int index_definition_row_add(struct index *index, const struct index_definition *definition,
	struct index_definition_row **ret_row);
void index_definition_row_remove(struct index *index, uint32_t id);
int index_load(struct index *index);
void index_forget(struct index *index);
/* Writes the changed rows. */
int index_save(struct index *index);

/* ---- the open transaction; index_write.c -------------------------------- */

/* Collected changes are flushed above this size: bounds the memory of a batch. */
#define INDEX_FLUSH_BYTES ((size_t)8 << 20)

/* Returns the error of an open transaction that has failed. */
int index_ready(const struct index *index);
/* Keeps the first error: later calls do nothing, and the commit is an abort. Returns R. */
int index_keep_error(struct index *index, int r);
/* Adds DELTA (1 or -1) to the number of objects of a feed. */
int index_count_object(struct index *index, uint32_t feed, int delta);

/* ---- hints; index_hints.c. Nothing here fails: without hints lookups are only slower --- */

/* Takes over the table of an earlier writer if it belongs to this state, else makes one. */
void index_hints_open(struct index *index);
/* Enters the collected changes; called before they are forgotten. */
void index_hints_note(struct index *index);
/* Makes another table after a commit if this one has become too small. */
void index_hints_grow(struct index *index);

/* ---- writing; index_flush.c --------------------------------------------- */

int index_write_changes(struct index *index);

#endif
