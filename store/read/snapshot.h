/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader's handle on the whole store, and its consistent view of index and journal at one
 *instant.
 *
 *	store_open(dir, &options, &store);
 *	snapshot_open(store, &snap);             (two read transactions, slots kept)
 *	... snapshot_get(), snapshot_list() ...  (borrowed records, valid until reset or renew)
 *	snapshot_reset(snap); ... snapshot_renew(snap); ... snapshot_close(&snap);
 *
 * Taking one: index transaction first, journal transaction second, then horizon <= the smallest
 * visible(feed) of the listed feeds; if not, again; if the index names another journal than the one
 * open, or CURRENT another index, both are opened anew (docs/architecture.md, Snapshot and
 * rebuild). With that, every version the index points to, and all history above the horizon, is there.
 *
 * visible(feed): `taken`, or `begin - 1` while a list of the feed is open; 0 before its first
 * LIST_END was applied.
 *
 * A store that no process can write now (a copy, a read-only mount) is opened without locks;
 * snapshots compare the transaction ids at the end then: ERR_SNAPSHOT_EXPIRED, never wrong data. Once
 * its daemons run, no further one is taken: ERR_LOCKED.
 * One thread at a time per snapshot; several snapshots of a store may be used by several threads.
 */
#ifndef STORE_READ_SNAPSHOT_H
#define STORE_READ_SNAPSHOT_H

#include "store/index/index.h"
#include "store/journal/journal.h"

struct store;
struct snapshot;

struct store_options {
	bool check; /* verify each record's checksum before it is given out */
};

/* ERR_NO_STORE, ERR_UNTRUSTED, ERR_FORMAT, ERR_LOCKED, ... each with what to do. A store whose
 * index does not exist yet opens; its snapshots say AGAIN. */
int store_open(
	const char *directory, const struct store_options *options, struct store **ret_store);
void store_close(struct store **store);
struct home *store_home(struct store *store);
bool store_is_copy(const struct store *store);

/* 0; AGAIN when there is no index that goes with the journal yet (no processor has run, or it is
 * building one). Snapshots may outlive store_close(). */
int snapshot_open(struct store *store, struct snapshot **ret_snapshot);
int snapshot_renew(struct snapshot *snapshot);
/* Gives the pages back, keeps the slots. ERR_SNAPSHOT_EXPIRED: what was read may be wrong (COPY).
 */
int snapshot_reset(struct snapshot *snapshot);
/* 0, or ERR_SNAPSHOT_EXPIRED: likewise, and nobody but a copy's reader can get it. */
int snapshot_check(const struct snapshot *snapshot);
void snapshot_close(struct snapshot **snapshot);

uint64_t snapshot_taken(const struct snapshot *snapshot);
uint64_t snapshot_horizon(const struct snapshot *snapshot);
const uint8_t *snapshot_uuid(const struct snapshot *snapshot); /* of the journal */
uint64_t snapshot_visible(struct snapshot *snapshot, uint32_t feed);
/* Nanoseconds since it was taken. */
uint64_t snapshot_age_ns(const struct snapshot *snapshot);

/* The two halves, for those that look deeper (dump, verify, follow). */
struct index *snapshot_index(struct snapshot *snapshot);
struct txn *snapshot_index_txn(struct snapshot *snapshot);
struct journal *snapshot_journal(struct snapshot *snapshot);
struct txn *snapshot_journal_txn(struct snapshot *snapshot);

/* A feed as this snapshot sees it. Texts live as long as the array. */
struct snapshot_feed {
	struct feed_definition definition;
	struct feed_checkpoint checkpoint;
	struct index_feed index; /* zeros when the index does not know it yet */
	uint64_t visible;
};

/* Returns the newest resourceVersion that is not newer than the feed's objects in the snapshot; empty
 * when none is known. Borrowed from FEED. */
struct bytes snapshot_feed_rv(const struct snapshot_feed *feed);

/*
 * The feeds that NAME stands for, in the order of namespace + "/": NAME is a configured name, or
 * what --watch accepts (pods, po, pod, Pod, deployments.apps).
 * Of two feeds with the same name and namespace (a definition just changed) the newest listed one,
 * else the newest. NAME NULL: all feeds that are not removed, by name. RET_FEEDS is an array the
 * caller frees; ERR_NO_FEED names those there are, also when NAME is the resource of several
 * configured names.
 */
int snapshot_feeds(struct snapshot *snapshot, const char *name, struct snapshot_feed **ret_feeds,
	size_t *ret_n);

/* The version of an object that the snapshot sees: FOUND, NOT_FOUND, ERR_CORRUPT. */
int snapshot_get(
	struct snapshot *snapshot, uint32_t feed, struct bytes key, struct record *ret_record);

/* What an index entry of that object points to. ERR_CORRUPT when it is not a version of that
 * object: a wrong pointer never becomes wrong data. ERR_NO_FEED when the journal has removed its
 * feed since. */
int snapshot_record(struct snapshot *snapshot, uint32_t feed, struct bytes key,
	const struct index_entry *entry, struct record *ret_record);

/*
 * The next objects of a walk over the postings of a term of FEED, at most N of them: how many, 0 at
 * the end, or an error. Several at once, because then their memory is waited for at once. Keys live
 * as long as the snapshot is held.
 */
#define SNAPSHOT_OBJECTS_MAX 32
struct snapshot_object {
	struct bytes key;
	struct index_entry entry;
};
int snapshot_walk_objects(struct snapshot *snapshot, uint32_t feed, struct index_walk *walk,
	struct snapshot_object *ret_objects, size_t n);

/* Whether the hints lead to nothing else than what the index says of an object: for verify. */
bool snapshot_hints_agree(struct snapshot *snapshot, uint32_t feed, struct bytes key,
	const struct index_entry *entry);

/* The version of this entry will be asked for soon: hides the time memory takes. */
void snapshot_prefetch(struct snapshot *snapshot, const struct index_entry *entry);

/* Any version from the horizon on by its seq. FOUND, NOT_FOUND. */
int snapshot_version(struct snapshot *snapshot, uint64_t seq, struct record *ret_record);

/* A definition in use by name: FOUND, NOT_FOUND (the caller says which there are), AGAIN (being
 * filled). */
int snapshot_definition(
	struct snapshot *snapshot, uint32_t feed, const char *name, uint32_t *ret_definition);

#endif
