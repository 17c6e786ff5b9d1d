/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal: the log of all changes of all feeds, in order, with every version of every object
 * stored once. Index, rings and cursors only point into it. Layout in FORMAT.md.
 *
 *	log   seq -> record           head  feed + object key -> newest version
 *	feed  definitions and checkpoints   meta  uuid, next seq, horizon, cluster
 *
 * One writer, the reflector. Records, heads and checkpoints change in one transaction:
 *
 *	journal_begin(j);                      (does nothing if one is open)
 *	journal_append(j, &record, &seq); ...  journal_checkpoint(j, feed, phase, rv);
 *	journal_commit(j);                     (then publish on the ring)
 *
 * A failed commit stores nothing: the caller goes back to the last committed checkpoints and asks
 * the API server again.
 *
 * The journal keeps its own rules only: seq order, the chain of previous versions, heads, list
 * brackets, trimming. The meaning of the API server's answers is the reflector's.
 *
 * Functions that read take a transaction: a read transaction of journal_env() (txn_begin_read),
 * or the open write transaction (journal_txn). Records borrow from the map until the transaction is
 * reset, renewed or ended, in a write transaction until the next write.
 */
#ifndef STORE_JOURNAL_JOURNAL_H
#define STORE_JOURNAL_JOURNAL_H

#include "common/buf.h"
#include "common/moment.h"
#include "common/value/path.h"
#include "store/env/env.h"
#include "store/env/home.h"

#define JOURNAL_KEY_MAX 507 /* of an object key: feed id + key fit an LMDB key */

enum record_type {
	RECORD_ADDED = 1,
	RECORD_MODIFIED,
	RECORD_DELETED,
	RECORD_LIST_BEGIN,
	RECORD_LIST_END,
	RECORD_FEED_ADDED,
	RECORD_FEED_REMOVED,
	RECORD_TYPE_MAX
};

/* ADDED and MODIFIED carry a version of an object. */
static inline bool record_is_version(uint8_t type)
{
	return type == RECORD_ADDED || type == RECORD_MODIFIED;
}

static inline bool record_is_change(uint8_t type)
{
	return record_is_version(type) || type == RECORD_DELETED;
}

enum record_flags {
	RECORD_FINAL_STATE_UNKNOWN = 1u << 0, /* DELETED found by a list: no body, rv of the list */
	RECORD_ABANDONED = 1u << 1,           /* LIST_END of an abandoned list */
};

struct record {
	uint64_t seq;
	uint64_t prev;    /* previous version of this object, 0: none. LIST_END: its LIST_BEGIN */
	uint64_t time_ns; /* CLOCK_REALTIME; of an appended one 0: now */
	uint32_t feed;
	uint8_t type;     /* enum record_type */
	uint8_t flags;    /* enum record_flags */
	struct bytes key; /* "namespace/name" or "name"; empty for LIST_*, FEED_* */
	struct bytes uid;
	struct bytes rv;     /* of the object; LIST_END: of the list; LIST_BEGIN: before it */
	struct bytes body;   /* msgpack; empty where there is none */
	struct bytes stored; /* bytes in the log; set by reads only */
};

const char *record_type_name(uint8_t type);

struct head {
	uint64_t seq;
	struct bytes uid;
	struct bytes rv;
};

/* The stored part of a feed's state. Readers compute `live` and `stale` from the daemons' status
 * pages. */
enum feed_phase {
	FEED_LISTING, /* no list has ended yet */
	FEED_SYNCED,  /* listed; watching or trying to */
	FEED_FORBIDDEN,
	FEED_GONE, /* the server no longer has the resource */
	FEED_ERROR,
	FEED_REMOVED,
	FEED_PHASE_MAX
};
const char *feed_phase_name(uint32_t phase);

/* Suffix of a new feed's name while the feed to be replaced still has the name. */
#define FEED_NEXT "~next"

/* A feed's identity: any change makes a new feed. Texts are NUL-terminated; NULL is written as "",
 * and read as such. feed_definition.def lists them all. */
struct feed_definition {
	uint32_t id;
	const char *name;       /* of the configuration entry; not part of the identity */
	const char *aliases;    /* singular and short names, each followed by a blank; likewise */
	const char *categories; /* that the resource is in, such as "all", likewise */
	const char *columns;    /* additionalPrinterColumns of a custom resource, a line each
				 (FORMAT.md); likewise */
	const char *group, *version, *resource, *kind;
	const char *list_kind;
	const char *namespace_;                      /* "": all, or cluster-scoped */
	const char *label_selector, *field_selector; /* canonical */
	const char *drop;                            /* canonical paths, sorted, joined by '\n' */
	bool namespaced;
	bool metadata_only;
	uint64_t resync_ns; /* default period of informers, 0: none; no part of the identity either
			     */
};

enum {
#define TEXT(member, key, identity) FEED_TEXT_##member,
#include "store/journal/feed_definition.def"
#undef TEXT
	FEED_TEXTS
};

/* Returns the place of the text I of all FEED_TEXTS. */
const char **feed_definition_text(struct feed_definition *definition, size_t i);

/* Returns whether NAME means the feed's resource, as kubectl takes it: plural, kind, singular or
 * short name, in any case, alone, with .group, the beginning of a group, .version or
 * .version.group. */
bool feed_definition_is_called(const struct feed_definition *definition, const char *name);
/* Returns whether the feed's resource is in CATEGORY. */
bool feed_definition_is_in(const struct feed_definition *definition, const char *category);
/* Returns the size of the name in the configuration: without FEED_NEXT. */
size_t feed_definition_name_size(const struct feed_definition *definition);
/* Compares two feeds called NAME. Negative: A goes first, as in kubectl: its full name before a
 * short one, then by ORDER (journal_order()), the core group first. 0: NAME means both. */
int feed_definition_compare(const struct feed_definition *a, const struct feed_definition *b,
	const char *name, struct bytes order);

struct feed_checkpoint {
	uint32_t phase;      /* enum feed_phase */
	uint64_t list_begin; /* seq of the open LIST_BEGIN, 0: none. Open means list again */
	/* begin of the open or abandoned list; not 0: list again before the next watch */
	uint64_t list_ns;
	uint64_t first_list;     /* seq of the first LIST_END, 0: none yet */
	uint64_t trimmed;        /* its last trimmed seq */
	struct bytes trimmed_rv; /* newest RV among those; empty: none had one */
	uint64_t last;           /* seq of its newest record */
	struct moment contact;   /* arrival of the newest stored event, bookmark or complete list */
	struct bytes rv;         /* watch on from here; empty: list */
};

#define FEED_PASSED_MAX 64 /* objects listed by name */

/* Objects of the server missing in the feed, or older in it, because the reflector could not store
 * them (reflector/README.md). */
struct feed_passed {
	size_t n;
	bool more; /* there may be others */
	struct passed_object {
		struct bytes name; /* "namespace/name" */
		struct bytes why;  /* words for people */
		uint64_t limit;    /* maxObjectSize in bytes if the object exceeds it, else 0 */
	} objects[FEED_PASSED_MAX];
};

/* The identity of an imported journal begins so. */
#define JOURNAL_IMPORTED "uid:imported-"

struct journal_meta {
	uint8_t uuid[16];
	uint64_t next_seq;  /* of the next record; the log ends at next_seq - 1 */
	uint64_t horizon;   /* history above it is complete */
	uint64_t history;   /* bytes of the log's records above the horizon */
	char cluster[256];  /* identity of the mirrored cluster, "" before the first contact */
	uint32_t next_feed; /* the id of the next feed */
};

struct journal;

struct journal_options {
	uint64_t map_bytes; /* 0: 64 GiB */
	bool durable;
};

/* Opens the current journal for the writer, the holder of HOME_REFLECTOR. If it is missing,
 * damaged, untrusted or of another format, makes a new one with a new uuid, names it in CURRENT,
 * and puts the reason into REASON ("": the old one was opened). ERR_LOCKED: another process is
 * opening it; try again. */
int journal_open_write(struct home *home, const struct journal_options *options, char reason[256],
	struct journal **ret_journal);

/* Stores the sentence of damage just met beside the journal. The reflector ends then, and its next
 * journal_open_write() makes another one. Returns ERR_CORRUPT, with the sentence. */
int journal_note_damage(struct home *home);

/* Begins a new, empty journal of a new uuid in place of this one (another cluster). The old one
 * stays for readers while the current index belongs to it. -ENOSPC: no room for both
 * (generation_require_room); nothing has changed. */
int journal_begin_anew(
	struct journal **journal, struct home *home, const struct journal_options *options);

/* Removes the journals named neither by CURRENT nor by the index in use. Returns how many. Opening
 * for writing does it as well; the writer calls it again after the index has moved to a new
 * journal. */
int journal_remove_old(struct home *home);

/* Opens a journal for reading: the one of this UUID (NOT_FOUND: it is gone), or with NULL the
 * current one (ERR_NO_STORE: there is none yet). A read-only store is read without lock, and
 * refused (ERR_LOCKED) while a reflector runs on it. */
int journal_open_read(struct home *home, const uint8_t *uuid, struct journal **ret_journal);
void journal_close(struct journal **journal);

struct env *journal_env(struct journal *journal);
const uint8_t *journal_uuid(const struct journal *journal);
uint32_t journal_generation(const struct journal *journal);
bool journal_is_untrusted(const struct journal *journal); /* generation_is_untrusted() */
int journal_check(const struct journal *journal, const struct home *home); /* generation_check() */
int journal_check_damage(const struct journal *journal); /* generation_check_damage() */

/* ---- writing ------------------------------------------------------------ */

int journal_begin(struct journal *journal);
int journal_commit(struct journal *journal);
void journal_abort(struct journal *journal);
struct txn *journal_txn(struct journal *journal); /* NULL when none is open */

/*
 * Appends RECORD; the journal sets its seq and prev, and a time of 0. By type: ADDED and MODIFIED
 * become the head. DELETED removes the head; its prev is the last state. LIST_BEGIN opens the
 * feed's list (none may be open). LIST_END closes it, sets first_list if it is the feed's first,
 * and phase and RV unless the list was abandoned. FEED_REMOVED closes an open list as well. Only
 * journal_add_feed() writes FEED_ADDED. ERR_TOO_LARGE (key, uid, RV or body) leaves the transaction
 * as it was; other errors are sticky in it. RECORD's bytes may borrow from this transaction's
 * heads.
 */
int journal_append(struct journal *journal, const struct record *record, uint64_t *ret_seq);

/* Adds a feed (FEED_ADDED with it); the id in DEFINITION is ignored and given. */
int journal_add_feed(
	struct journal *journal, const struct feed_definition *definition, uint32_t *ret_feed);
/* New values of a feed's definition, each unless it is NULL. The feed stays the same one. */
struct feed_change {
	const char *name, *aliases, *categories, *columns;
	const uint64_t *resync_ns;
};
/* Returns: 0; END: all are stored already; errors. */
int journal_change_feed(struct journal *journal, uint32_t feed, const struct feed_change *change);

/* Replaces the definition of the feed DEFINITION->id, also its identity: for a journal that nobody
 * has read yet. */
int journal_define_feed(struct journal *journal, const struct feed_definition *definition);

/* Returns whether FEED has an open list, begun in this transaction or before. */
bool journal_list_is_open(const struct journal *journal, uint32_t feed);

/* Moves the checkpoint; list_begin, list_ns, first_list, trimmed, last and the contact stay as they
 * are. */
int journal_checkpoint(struct journal *journal, uint32_t feed, uint32_t phase, struct bytes rv);

/* Sets the time of the API server's last word on the feed. */
int journal_set_contact(struct journal *journal, uint32_t feed, const struct moment *contact);

/* Replaces FEED's passed-over objects; NULL: none. It is no record: followers do not see it. */
int journal_set_passed(struct journal *journal, uint32_t feed, const struct feed_passed *passed);

int journal_set_cluster(struct journal *journal, const char *cluster);
/* Stores the order of discovery: a line `version` or `group/version` for each. Returns: 0; END:
 * it is stored already; errors. */
int journal_set_order(struct journal *journal, struct bytes order);
/* Reads it, borrowed from TXN; empty: none is stored, or it is damaged. */
int journal_order(struct journal *journal, struct txn *txn, struct bytes *ret_order);

/*
 * Moves the horizon towards TARGET by at most LIMIT log records, in its own transaction (none may
 * be open). A feed removed at or below the new horizon loses its heads and versions, likewise in
 * slices. TARGET must not be above the index's applied seq (docs/architecture.md, Snapshot and
 * rebuild). Returns: 0: the horizon is at TARGET; AGAIN: there is more to do.
 */
int journal_trim(struct journal *journal, uint64_t target, size_t limit, uint64_t *ret_trimmed);

/* A goal of trimming: to TARGET in any case, and beyond it while there are more than MOST bytes of
 * history, but never beyond BOUND. */
struct trim_goal {
	uint64_t target, bound, most;
};
/* Does the same as journal_trim(), towards GOAL. */
int journal_trim_towards(
	struct journal *journal, const struct trim_goal *goal, size_t limit, uint64_t *ret_trimmed);

/* Returns the writer's journal_meta.history, records of the open transaction included. */
uint64_t journal_history(const struct journal *journal);

/* ---- reading; TXN is a read transaction of journal_env() or journal_txn() --- */

/* FOUND: *RET_PASSED, its texts borrowed from TXN; NOT_FOUND: nothing is passed over; errors. */
int journal_passed(
	struct journal *journal, struct txn *txn, uint32_t feed, struct feed_passed *ret_passed);
int journal_meta(struct journal *journal, struct txn *txn, struct journal_meta *ret_meta);
/* Returns true for the journal of an imported dump, which no reflector keeps current. */
bool journal_is_imported(const struct journal_meta *meta);
int journal_get(struct journal *journal, struct txn *txn, uint64_t seq, struct record *ret_record);
int journal_head(struct journal *journal, struct txn *txn, uint32_t feed, struct bytes key,
	struct head *ret_head);

/* Reads the record at PLACE: FOUND, NOT_FOUND. Compares no checksum; the caller checks its seq. */
int journal_at(struct journal *journal, struct txn *txn, uint64_t place, struct record *ret_record);
/* Reads record SEQ at PLACE (txn_place()) without comparing checksums; if it is not there, looks it
 * up in the log. */
int journal_get_at(struct journal *journal, struct txn *txn, uint64_t seq, uint64_t place,
	size_t size, struct record *ret_record);
/* Returns place and size of record SEQ for journal_get_at(); place 0 when it has none. */
int journal_place(struct journal *journal, struct txn *txn, uint64_t seq, uint64_t *ret_place,
	uint32_t *ret_size);

/* Compares the whole record's checksum (FORMAT.md). Returns: 0, ERR_CORRUPT. */
int record_check(const struct record *record);
/* Compares the header's checksum; for records of journal_at() and journal_get_at(). */
int record_check_header(const struct record *record);

/* Walks the log from the first record with seq >= FROM. FOUND, END. */
struct journal_walk;
int journal_walk_open(struct txn *txn, uint64_t from, struct journal_walk **ret_walk);
/* Opens a checked walk: records missing between HORIZON and END (horizon and next_seq of the
 * journal's meta), or out of order, are ERR_CORRUPT. */
int journal_walk_open_checked(struct txn *txn, uint64_t from, uint64_t horizon, uint64_t end,
	struct journal_walk **ret_walk);
/* FOUND; END; ERR_CORRUPT: a record is unreadable, its header is damaged, or a checked walk lacks
 * it, and goes no further. */
int journal_walk_next(struct journal_walk *walk, struct record *ret_record);
/* Steps to the next readable record. FOUND; END; ERR_CORRUPT: there is none. */
int journal_walk_next_sound(struct journal_walk *walk, struct record *ret_record);
/* Returns the seq of the last step's record, an unreadable one (ERR_CORRUPT) included. The next
 * step goes on after it. */
uint64_t journal_walk_seq(const struct journal_walk *walk);
void journal_walk_close(struct journal_walk **walk);

/* Walks a feed's heads in key order. FOUND, END. */
struct head_walk;
int head_walk_open(struct txn *txn, uint32_t feed, struct bytes from, struct head_walk **ret_walk);
int head_walk_next(struct head_walk *walk, struct bytes *ret_key, struct head *ret_head);
void head_walk_close(struct head_walk **walk);

/* Walks over the feeds by id: CLEANUP(feed_walk_release) struct feed_walk walk = {journal, txn}. */
struct feed_walk {
	struct journal *journal;
	struct txn *txn;
	/* The feed; lives until the next step. */
	struct feed_definition definition;
	struct feed_checkpoint checkpoint;
	/* The walk's own: */
	struct cursor *cursor;
	struct buf texts;
};
/* FOUND, END. */
int feed_walk_next(struct feed_walk *walk);
void feed_walk_release(struct feed_walk *walk);
/* Reads the definition of FEED, its texts into TEXTS. FOUND, NOT_FOUND. */
int journal_feed_definition(
	struct txn *txn, uint32_t feed, struct buf *texts, struct feed_definition *ret_definition);
/* Returns a hash of all feeds' definitions, and of which feeds are removed; equal hashes mean that
 * both are equal. */
int journal_definitions_hash(struct txn *txn, uint64_t *ret_hash);
/* FOUND, NOT_FOUND. */
int journal_feed_checkpoint(struct journal *journal, struct txn *txn, uint32_t feed,
	struct feed_checkpoint *ret_checkpoint);

/* Compares two resourceVersions by KEP-5504. Returns: -1, 0 or 1; RV_NOT_COMPARABLE: they differ
 * and one of them is no well-formed number. */
#define RV_NOT_COMPARABLE 2
int rv_compare(struct bytes a, struct bytes b);

#endif
