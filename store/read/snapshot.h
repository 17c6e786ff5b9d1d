/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot: a reader's consistent view of index and journal at one instant. The store is its
 * handle on the files.
 *
 *	store_open(dir, &options, &store);
 *	snapshot_open(store, &snap);             (two read transactions, slots kept)
 *	... snapshot_get(), snapshot_list() ...  (borrowed records, valid until reset or renew)
 *	snapshot_reset(snap); ... snapshot_renew(snap); ... snapshot_close(&snap);
 *
 * It takes the index transaction first, the journal transaction second, and then checks that
 * horizon <= visible(feed) for each listed feed. If not, it begins again. If the index belongs to
 * another journal than the open one, or CURRENT names another index, it opens both again
 * (docs/architecture.md, Snapshot and rebuild). With that check every version that the index points
 * to, and all history above the horizon, exists for as long as the snapshot is held.
 *
 * visible(feed) is `taken`; `begin - 1` while a list of the feed is open; 0 before its first
 * LIST_END was applied.
 *
 * A store that no process can write now (a copy, a read-only mount) is opened without locks.
 * Snapshots then compare the transaction ids when they end and return ERR_SNAPSHOT_EXPIRED instead
 * of wrong data. Once the store's daemons run, no further snapshot is taken: ERR_LOCKED.
 *
 * One thread at a time per snapshot; several threads may each use a snapshot of one store.
 */
#ifndef STORE_READ_SNAPSHOT_H
#define STORE_READ_SNAPSHOT_H

#include "store/index/index.h"
#include "store/journal/journal.h"

/* The remedy for damage: building an index reads all current objects of the journal. */
#define STORE_REMEDY \
	"'kinf rebuild-index' builds another index, or has all listed again if the journal is " \
	"damaged"
/* In the sentence about a feed of a store without any. */
#define SNAPSHOT_NO_FEEDS "nothing is watched yet"

struct store;
struct snapshot;

struct store_options {
	bool check;     /* verify each record's checksum before it is given out */
	bool unchecked; /* open a store that is not trusted; the caller checks it (verify_store())
			   if store_is_untrusted(), and says what its snapshots lack if they are torn */
};

/* ERR_NO_STORE, ERR_UNTRUSTED, ERR_FORMAT, ERR_LOCKED, ... each with a remedy. A store without an
 * index can be opened; its snapshots return AGAIN. */
int store_open(
	const char *directory, const struct store_options *options, struct store **ret_store);
void store_close(struct store **store);
struct home *store_home(struct store *store);
bool store_is_copy(const struct store *store);
/* Returns whether the store is a copy of one whose daemons ran or were killed, or the machine
 * stopped. */
bool store_is_untrusted(struct store *store);

/* Writes why index and journal of this store did not go together in its last snapshot, which was
 * refused with AGAIN or is torn: "" if there is no index. */
#define STORE_MISMATCH_SIZE 256
void store_mismatch(struct store *store, char *text, size_t size);

/* Returns: 0; AGAIN: there is no index for the journal yet (no processor has run, or it is building
 * one); errors. Snapshots may outlive store_close(). */
int snapshot_open(struct store *store, struct snapshot **ret_snapshot);
int snapshot_renew(struct snapshot *snapshot);
/* Renews the snapshot when the index has taken SEQ of the journal UUID (NULL: of the present one),
 * for at most LIMIT_NS, and not for long while no processor runs. A snapshot of another journal is
 * not waited for. Returns: as snapshot_renew(); AGAIN: the index has not taken it, GONE: SEQ is
 * after the end of the present journal, so it is another one's; in both cases the snapshot is
 * reset. */
int snapshot_renew_at(
	struct snapshot *snapshot, const uint8_t uuid[16], uint64_t seq, uint64_t limit_ns);

/* For followers: a snapshot of the journal alone, whatever the index is doing. It costs half, and
 * shows records that the index has not taken yet. A function below may be called with it only if
 * its comment says so; snapshot_renew() makes it a whole one. Returns as above; AGAIN: no index has
 * been there yet to name the journal. */
int snapshot_open_log(struct store *store, struct snapshot **ret_snapshot);
int snapshot_renew_log(struct snapshot *snapshot);
/* Likewise, for a caller that knows of a record of the same journal: while the open file has
 * SEQ, CURRENT is not examined (two system calls). */
int snapshot_renew_log_to(struct snapshot *snapshot, uint64_t seq);
/* Ends the transactions, keeps the slots. ERR_SNAPSHOT_EXPIRED: data that was read may be wrong:
 * of a copy, or of files that were given up (former.h). */
int snapshot_reset(struct snapshot *snapshot);
/* Returns: 0, ERR_SNAPSHOT_EXPIRED as above. */
int snapshot_check(const struct snapshot *snapshot);
/* The same; ERR_SNAPSHOT_EXPIRED also if the program has closed the files by which it says that
 * it reads: for the snapshots of other people's programs. Two system calls. */
int snapshot_check_pins(const struct snapshot *snapshot);
int snapshot_reset_pins(struct snapshot *snapshot);
/* Returns R, the result of reading, or ERR_SNAPSHOT_EXPIRED if that comes of files that were
 * given up or, for an error, of files that the program has closed; for a copy, instead of
 * ERR_CORRUPT only. */
int snapshot_result(const struct snapshot *snapshot, int r);
/* R: the result of making text or the like of what was read. Returns R, or ERR_SNAPSHOT_EXPIRED:
 * what was made may be wrong, and is not to be given out. */
int snapshot_made(const struct snapshot *snapshot, int r);
void snapshot_close(struct snapshot **snapshot);

/* Returns whether the index is of another moment than the journal, as in a copy that was made
 * while daemons wrote. Only a store that is not trusted is read so (store_options.unchecked):
 * each object that it shows is the one of snapshot_taken(), and others are missing or can't be
 * read. States of before that moment, and what came after it, can't be told from it. */
bool snapshot_is_torn(const struct snapshot *snapshot);

uint64_t snapshot_taken(const struct snapshot *snapshot);
uint64_t snapshot_visible(struct snapshot *snapshot, uint32_t feed);

/* Also of a snapshot of the journal alone. */
uint64_t snapshot_horizon(const struct snapshot *snapshot);
uint64_t snapshot_last(const struct snapshot *snapshot);       /* seq of the log's newest record */
const uint8_t *snapshot_uuid(const struct snapshot *snapshot); /* of the journal */
/* Returns visible(feed) as the journal has it, from the feed's checkpoint in this snapshot. The
 * index may not have come so far. */
uint64_t snapshot_log_visible(
	const struct snapshot *snapshot, const struct feed_checkpoint *checkpoint);
/* Nanoseconds since it was taken. */
uint64_t snapshot_age_ns(const struct snapshot *snapshot);

/* The two halves, for dump, verify and follow. */
struct index *snapshot_index(struct snapshot *snapshot);
struct txn *snapshot_index_txn(struct snapshot *snapshot);
/* Also of a snapshot of the journal alone. */
struct journal *snapshot_journal(struct snapshot *snapshot);
struct txn *snapshot_journal_txn(struct snapshot *snapshot);

/* Opens a walk over the log above the horizon, from the record FROM on, that notices what the
 * log lacks (journal_walk_open_checked()). Also of a snapshot of the journal alone. */
int snapshot_open_walk(struct snapshot *snapshot, uint64_t from, struct journal_walk **ret_walk);

/* Makes the directory PATH, which must not exist, a store of its own with the state and history
 * that the snapshot shows, but no cursors (snapshot_copy.c). PROGRESS gets the bytes copied and,
 * until it is over, about how many there are; its negative result ends the copy. After errors
 * the directory is there, incomplete.
 * Returns: 0; errors. */
typedef int snapshot_copy_fn(void *arg, uint64_t bytes, uint64_t total);
int snapshot_copy(
	struct snapshot *snapshot, const char *path, snapshot_copy_fn *progress, void *arg);
/* Returns about how many bytes the copy will have. */
int snapshot_copy_size(struct snapshot *snapshot, uint64_t *ret_bytes);

/* A feed as this snapshot sees it. Texts live as long as the array. */
struct snapshot_feed {
	struct feed_definition definition;
	struct feed_checkpoint checkpoint;
	struct index_feed index; /* zeros if the index does not know it yet */
	uint64_t visible;
};

/* Returns the newest resourceVersion that is not newer than the feed's objects in the snapshot;
 * empty when none is known. Borrowed from FEED. */
struct bytes snapshot_feed_rv(const struct snapshot_feed *feed);

/*
 * Finds the feeds that NAME stands for, in the order of namespace + "/". NAME is a configured name
 * or a form that --watch accepts (pods, po, pod, Pod, deployments.apps). If two feeds have the same
 * name and namespace (a definition just changed), the newest listed one is taken, else the newest.
 * NAME NULL: all feeds that are not removed, by name. The caller frees RET_FEEDS, one allocation.
 * The first in the order of discovery is meant if resources have a name in common, as for kubectl.
 * ERR_NO_FEED: no feed, or several configured names for the resource; the error lists the feeds.
 */
int snapshot_feeds(struct snapshot *snapshot, const char *name, struct snapshot_feed **ret_feeds,
	size_t *ret_n);

/* Gets the version of an object that the snapshot sees. Returns: FOUND, NOT_FOUND, ERR_CORRUPT. */
int snapshot_get(
	struct snapshot *snapshot, uint32_t feed, struct bytes key, struct record *ret_record);

/* Reads the version that an index entry of the object points to. ERR_CORRUPT: it is not a version
 * of that object, so a wrong pointer never becomes wrong data. ERR_NO_FEED: the journal has removed
 * the feed since. */
int snapshot_record(struct snapshot *snapshot, uint32_t feed, struct bytes key,
	const struct index_entry *entry, struct record *ret_record);

/*
 * Gives the next objects of a walk over the postings of a term of FEED, at most N: several at once,
 * so that their memory is loaded together. Keys live as long as the snapshot is held. Returns: how
 * many; 0: the end; errors.
 */
#define SNAPSHOT_OBJECTS_MAX 32
struct snapshot_object {
	struct bytes key;
	struct index_entry entry;
};
int snapshot_walk_objects(struct snapshot *snapshot, uint32_t feed, struct index_walk *walk,
	struct snapshot_object *ret_objects, size_t n);

/* Gets the objects of N keys, at most SNAPSHOT_OBJECTS_MAX: several at once, so that their
 * memory is loaded together. The result of each is the same as snapshot_get() returns; the
 * sentence of an error is the last one's. */
struct snapshot_key {
	struct bytes key;
	int result;
	struct record record;
};
void snapshot_get_batch(
	struct snapshot *snapshot, uint32_t feed, struct snapshot_key **keys, size_t n);

/* Checks, for verify, that the hints of an object lead to the version that the index names, or
 * nowhere. */
bool snapshot_hints_agree(struct snapshot *snapshot, uint32_t feed, struct bytes key,
	const struct index_entry *entry);

/* Starts to load the version of this entry from memory, for a snapshot_record() that follows
 * soon. */
void snapshot_prefetch(struct snapshot *snapshot, const struct index_entry *entry);

/* Returns whether ENTRY says where the version lies in the snapshot's journal. */
bool snapshot_has_place(const struct snapshot *snapshot, const struct index_entry *entry);

/* Gets any version from the horizon on by its seq, also with a snapshot of the journal alone.
 * Returns: FOUND, NOT_FOUND. */
int snapshot_version(struct snapshot *snapshot, uint64_t seq, struct record *ret_record);

/* Checks a record of the log that the caller has read in SNAPSHOT, if the store was opened with
 * `check`. Returns: 0; ERR_CORRUPT. */
int snapshot_check_record(struct snapshot *snapshot, const struct record *record);

/* Finds a definition in use by name; its texts point into the snapshot. Returns: FOUND;
 * NOT_FOUND (the caller lists the names); AGAIN: it is being filled. */
int snapshot_definition(struct snapshot *snapshot, uint32_t feed, const char *name,
	struct index_definition *ret_definition);

#endif
