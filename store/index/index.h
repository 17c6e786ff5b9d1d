/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index: a materialised view of the journal, disposable. Layout in FORMAT.md, Index.
 *
 *	name     feed + object key -> object id, seq, place of the body in the journal
 *	object   object id -> the same, feed and key
 *	term     definition id + value -> term id, number of postings
 *	posting  term id + object id -> the next object ids of that term (index_postings.h)
 *	meta     journal uuid, taken, next ids, definitions, a row per feed
 *
 * One writer, the processor. Changes are collected per transaction, sorted per database and counted
 * together, then written by index_flush() or index_commit(); flush bounds the memory of a whole
 * list.
 *
 *	index_begin(ix);
 *	index_entry(ix, feed, key, &held)   the version the index holds: its terms are the old ones
 *	index_put(ix, &change); ... index_remove(ix, ...); index_feed_*(); index_set_taken(ix, seq);
 *	index_commit(ix);
 *
 * Readers use the functions below "reading" with a read transaction of index_env(); borrowed bytes
 * live until it is reset or ended.
 */
#ifndef STORE_INDEX_INDEX_H
#define STORE_INDEX_INDEX_H

#include "store/env/env_copy.h"
#include "store/env/home.h"
#include "store/index/entry.h"

#define INDEX_NAMESPACE "namespace" /* built-in definitions of every feed */
#define INDEX_LABEL     "label"
/* longer values are kept as a prefix and a hash, and verified */
#define INDEX_VALUE_MAX 480

struct index_definition {
	uint32_t id; /* never reused */
	uint32_t feed;
	const char *name;
	const char *paths; /* canonical, joined by '\n'; built-ins: "" */
	uint64_t filled;   /* backfilled up to this object id; INDEX_READY: in use */
	bool dropping;
};
#define INDEX_READY UINT64_MAX

struct index_term {
	uint32_t definition;
	struct bytes value; /* any length; whole */
};

#define INDEX_RV_SIZE 64

struct index_feed {
	uint32_t feed;
	uint64_t listed;     /* seq of its first applied LIST_END, 0: not yet */
	uint64_t list_begin; /* seq of the open LIST_BEGIN, 0: none */
	uint64_t objects;
	bool removed;
	char rv[INDEX_RV_SIZE]; /* of the index's state; "": unknown, or too long */
};

struct index_meta {
	uint8_t journal[16]; /* uuid */
	uint64_t taken;      /* the log is in the index up to here */
	bool building;
};

struct index;

struct index_options {
	uint64_t map_bytes; /* 0: 64 GiB */
};

/* Opens the current index for writing, as HOME_PROCESSOR. Returns: 0; NOT_FOUND; errors of
 * generation_open_write(). */
int index_open_write(
	struct home *home, const struct index_options *options, struct index **ret_index);
/* Checks the disk for room for a second index. Returns: 0, also if there is no current index;
 * -ENOSPC. */
int index_require_room(struct home *home);
/* Creates a generation for JOURNAL and commits {taken, building} in it; index_publish() makes it
 * the current one. */
int index_create(struct home *home, const struct index_options *options, const uint8_t journal[16],
	uint64_t taken, struct index **ret_index);
/* Ends the building: CURRENT names this index, and all other generations are removed. */
int index_publish(struct index *index, struct home *home);
/* Opens the current index for reading. Returns: FOUND; NOT_FOUND: there is none yet. */
int index_open_read(struct home *home, struct index **ret_index);
void index_close(struct index **index);
int index_advise(const struct index *index, int r); /* generation_advise(), about an open index */

/*
 * Copies an index entry by entry, without its deleted entries (index_copy.c). PROGRESS gets the
 * bytes copied every few entries; its negative result ends and removes the copy.
 *
 * index_copy() copies FROM, as of TXN, into the store TO, as the index of JOURNAL, a copy with all
 * versions of FROM. index_compact() replaces the current index by a copy, without the leftovers of
 * removed feeds and definitions; the caller is HOME_PROCESSOR, and has not opened it for writing.
 * Return: 0; NOT_FOUND: there is no index; errors (-ENOSPC: nothing has changed).
 */
struct journal;
int index_copy(struct index *from, struct txn *txn, struct journal *journal, struct home *to,
	const struct index_options *options, env_copy_fn *progress, void *arg);
int index_compact(
	struct home *home, const struct index_options *options, env_copy_fn *progress, void *arg);
/* Looks at some entries. Returns: FOUND: their places are in another generation of the journal than
 * GENERATION, so each record is looked up by seq until the index is compacted; NOT_FOUND;
 * errors. */
int index_find_old_places(struct index *index, uint32_t generation);

/* Opens the hints beside the index (hints.h) for JOURNAL. Returns: FOUND, NOT_FOUND. */
struct hints;
int index_open_hints(struct index *index, const uint8_t journal[16], struct hints **ret_hints);

bool index_is_untrusted(const struct index *index); /* generation_is_untrusted() */
struct env *index_env(struct index *index);
uint32_t index_generation(const struct index *index);
int index_check(const struct index *index, const struct home *home,
	bool published); /* generation_check() */

/* ---- writing ------------------------------------------------------------ */

int index_begin(struct index *index);
int index_flush(struct index *index);
int index_commit(struct index *index);
void index_abort(struct index *index);
struct txn *index_txn(struct index *index); /* NULL when none is open; flushed changes only */

/* Gets an object's entry, unflushed changes included. Returns: FOUND, NOT_FOUND. */
int index_entry(
	struct index *index, uint32_t feed, struct bytes key, struct index_entry *ret_entry);

struct index_change {
	uint32_t feed;
	struct bytes key;
	struct index_entry to;        /* the index sets .object */
	const struct index_term *old; /* terms of the version held; none for a new object */
	size_t n_old;
	const struct index_term *new;
	size_t n_new;
};
/* Enters an object's new version. The terms may have any order and duplicates; only differences are
 * written. The backfill adds the terms of a definition not yet filled up to this object. All bytes
 * are copied. */
int index_put(struct index *index, const struct index_change *change);
/* Removes an object. Returns: 0; NOT_FOUND: the index does not have it. */
int index_remove(struct index *index, uint32_t feed, struct bytes key, const struct index_term *old,
	size_t n_old);

int index_set_taken(struct index *index, uint64_t seq);

/* Return a feed's row, or definition number I, with the transaction's changes. NULL: there is none.
 * Borrowed until the next change of a feed or definition. */
const struct index_feed *index_feed_held(struct index *index, uint32_t feed);
const struct index_definition *index_definition_held(const struct index *index, size_t i);

int index_feed_set(struct index *index, const struct index_feed *feed); /* .objects is ignored */
/* Sets the row's RV unless RV is older. Returns whether it has changed. */
bool index_feed_set_rv(struct index_feed *feed, struct bytes rv);
/* Removes a feed: its definitions with their postings, then its objects, then its row, about LIMIT
 * entries a call. Needs no bodies, so it works after the journal has deleted them. Returns: 0;
 * AGAIN: there are more. */
int index_feed_drop(struct index *index, uint32_t feed, size_t limit);

/* Looks at the next LIMIT objects in the order of index_backfill(), and calls FN for those in the
 * definition's feed and not yet in the definition, until it returns non-zero. RET_N: the number of
 * objects passed. Inside a transaction without changes of objects. */
typedef int index_unfilled_fn(void *arg, const struct index_entry *entry);
int index_each_unfilled(struct index *index, uint32_t definition, size_t limit,
	index_unfilled_fn *fn, void *arg, size_t *ret_n);

/* Adds a definition; it is filled (INDEX_READY) at once if the feed has no objects. */
int index_define(
	struct index *index, uint32_t feed, const char *name, const char *paths, uint32_t *ret_id);
/* Enters up to LIMIT objects into a definition; the transaction at the end of all objects makes it
 * ready. FN gives the terms of the version in the index (those of other definitions are ignored),
 * borrowed until its next call; its negative result ends the backfill. Returns: 0; AGAIN: there are
 * more. */
typedef int index_terms_fn(void *arg, const struct index_entry *entry, uint32_t feed,
	struct bytes key, const struct index_term **ret_terms, size_t *ret_n);
int index_backfill(
	struct index *index, uint32_t definition, size_t limit, index_terms_fn *fn, void *arg);
/* Removes at most LIMIT rows of a definition, hidden from readers by then. Returns: 0; AGAIN: there
 * are more. */
int index_undefine(struct index *index, uint32_t definition, size_t limit);

/* The work left, in a transaction: a removed feed, a dropped definition, one to be filled; each 0:
 * none. */
struct index_task {
	uint32_t remove_feed, drop, fill;
};
struct index_task index_find_task(const struct index *index);
/* Removes about LIMIT entries of the feed, or else of the dropped definition. Returns as
 * index_feed_drop(). */
int index_drop_leftover(struct index *index, const struct index_task *task, size_t limit);

/* ---- reading; TXN of index_env(), or index_txn() ------------------------ */

int index_meta(struct index *index, struct txn *txn, struct index_meta *ret_meta);
int index_feed(struct index *index, struct txn *txn, uint32_t feed, struct index_feed *ret_feed);

/* Walks over the feeds or the definitions, by id, or over a definition's values with PREFIX, in
 * byte order: CLEANUP(index_rows_release) struct index_rows rows = {txn}. Texts are borrowed from
 * TXN. */
struct index_rows {
	struct txn *txn;
	/* For values: */
	uint32_t definition;
	struct bytes prefix;   /* borrowed until the end of the walk */
	struct cursor *cursor; /* the walk's own */
};
struct index_term_row {
	struct bytes value; /* WHOLE false: the stored beginning of one above INDEX_VALUE_MAX */
	bool whole;
	uint64_t term, count; /* index_term_postings() walks its postings */
};
/* FOUND, END. */
int index_next_feed(struct index_rows *rows, struct index_feed *ret_feed);
int index_next_definition(struct index_rows *rows, struct index_definition *ret_definition);
int index_next_value(struct index_rows *rows, struct index_term_row *ret_row);
void index_rows_release(struct index_rows *rows);

int index_get(struct index *index, struct txn *txn, uint32_t feed, struct bytes key,
	struct index_entry *ret_entry); /* FOUND, NOT_FOUND */
int index_object(struct index *index, struct txn *txn, uint64_t object, uint32_t *ret_feed,
	struct bytes *ret_key, struct index_entry *ret_entry);

/* Walks a feed's names with PREFIX in key order, from FROM on (inclusive). FROM may be longer than
 * any key: the string after a key is the key and a NUL. A walk over all names of a feed, or over
 * postings, ends with ERR_CORRUPT instead of END if their number differs from the index's count: a
 * damaged tree can lack rows and look sound. */
struct index_walk;
int index_names(struct index *index, struct txn *txn, uint32_t feed, struct bytes prefix,
	struct bytes from, struct index_walk **ret_walk);
/* Walks the objects with a term, by object id; RET_WALK NULL: only counts them. For a value longer
 * than INDEX_VALUE_MAX they are candidates with the same beginning and hash: the caller checks each
 * body (terms.h). Returns: FOUND; NOT_FOUND: no object has the value. */
int index_postings(struct index *index, struct txn *txn, uint32_t definition, struct bytes value,
	uint64_t *ret_count, struct index_walk **ret_walk);
int index_walk_next(struct index_walk *walk, struct bytes *ret_key, struct index_entry *ret_entry);
/* For a walk over postings: gives only the next object's id, and the row of an id.
 * index_walk_next() is both. */
int index_walk_next_id(struct index_walk *walk, uint64_t *ret_object);
int index_walk_object(struct index_walk *walk, uint64_t object, struct bytes *ret_key,
	struct index_entry *ret_entry);
void index_walk_close(struct index_walk **walk);
/* Checks whether OBJECT has the term. Returns: FOUND (a long value: perhaps, as above),
 * NOT_FOUND. */
int index_has(struct index *index, struct txn *txn, uint32_t definition, struct bytes value,
	uint64_t object);

int index_term_postings(
	struct index *index, struct txn *txn, uint64_t term, struct index_walk **ret_walk);

/* Adds a part to a compound value: parts are joined by commas, their own backslashes and commas
 * escaped by a backslash, as typed on the command line (kinf(1)). */
struct buf;
void index_compound_add(struct buf *value, struct bytes part, bool first);

/* Returns the number of a compound value's parts; an empty value is one empty part. */
size_t index_compound_parts(struct bytes value);

#endif
