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
 * It takes the index transaction first, the journal transaction second, and then checks horizon <=
 * visible(feed) for each listed feed. If not, it begins again. If the index belongs to another
 * journal than the open one, or CURRENT names another index, it opens both again
 * (docs/architecture.md, Snapshot and rebuild). So every version named by the index, and all
 * history above the horizon, exists while the snapshot is held.
 *
 * visible(feed) is `taken`; `begin - 1` while a list of the feed is open; 0 before its first
 * LIST_END was applied.
 *
 * A store without a possible writer (a copy, a read-only mount) is opened without locks. Snapshots
 * then compare the transaction ids when they end and return ERR_SNAPSHOT_EXPIRED instead of wrong
 * data. Once the store's daemons run, no further snapshot is taken: ERR_LOCKED.
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
	bool check; /* verify each record's checksum before it is given out */
	/* open an untrusted store; the caller runs verify_store() if store_is_untrusted(), and
	 * reports the gaps of torn snapshots */
	bool unchecked;
};

/* ERR_NO_STORE, ERR_UNTRUSTED, ERR_FORMAT, ERR_LOCKED, ... each with a remedy. A store without an
 * index can be opened; its snapshots return AGAIN. */
int store_open(
	const char *directory, const struct store_options *options, struct store **ret_store);
void store_close(struct store **store);
struct home *store_home(struct store *store);
bool store_is_copy(const struct store *store);
/* Returns true if the store is a copy of a running or killed one, or the machine stopped. */
bool store_is_untrusted(struct store *store);

/* Writes why index and journal did not match in the store's last snapshot, refused with AGAIN or
 * torn; "": there is no index. */
#define STORE_MISMATCH_SIZE 256
void store_mismatch(struct store *store, char *text, size_t size);

/* Returns: 0; AGAIN: there is no index for the journal yet (no processor has run, or it is building
 * one); errors. Snapshots may outlive store_close(). */
int snapshot_open(struct store *store, struct snapshot **ret_snapshot);
int snapshot_renew(struct snapshot *snapshot);
/* Renews the snapshot once the index has applied SEQ of the journal UUID (NULL: of the present
 * one), for at most LIMIT_NS, and not for long while no processor runs. Does not wait for a
 * snapshot of another journal. Returns: as snapshot_renew(); AGAIN: the index is not there yet;
 * GONE: SEQ is after the end of the present journal, so it is another one's. AGAIN and GONE reset
 * the snapshot. */
int snapshot_renew_at(
	struct snapshot *snapshot, const uint8_t uuid[16], uint64_t seq, uint64_t limit_ns);

/* Sleeps until the index may have moved, a signal comes, or MS are over; or attaches *TAKEN, the
 * caller's, which it detaches at its end. The index is to be read again after any of it. */
struct taken_reader;
void store_wait_index(struct store *store, struct taken_reader **taken, int ms);

/* For followers: a snapshot of the journal alone. It costs half, and shows records not yet in the
 * index. Only functions marked so below may be called with it; snapshot_renew() makes it a whole
 * one. Returns as above; AGAIN: no index has named a journal yet. */
int snapshot_open_log(struct store *store, struct snapshot **ret_snapshot);
int snapshot_renew_log(struct snapshot *snapshot);
/* Ends the transactions, keeps the slots. ERR_SNAPSHOT_EXPIRED: data read may be wrong, of a copy,
 * or of files given up (replaced.h). */
int snapshot_reset(struct snapshot *snapshot);
/* Returns: 0, ERR_SNAPSHOT_EXPIRED as above. */
int snapshot_check(const struct snapshot *snapshot);
/* The same; ERR_SNAPSHOT_EXPIRED also if the program has closed its pin files: for snapshots of
 * other people's programs. Two system calls. */
int snapshot_check_pins(const struct snapshot *snapshot);
int snapshot_reset_pins(struct snapshot *snapshot);
/* Returns R, the result of reading. ERR_SNAPSHOT_EXPIRED instead: the files were given up, or R is
 * an error and the program has closed its pin files; of a copy: R is ERR_CORRUPT, and it was
 * written. */
int snapshot_result(const struct snapshot *snapshot, int r);
/* Returns R, the result of formatting data read, or ERR_SNAPSHOT_EXPIRED: the output may be wrong,
 * and must not be given out. */
int snapshot_made(const struct snapshot *snapshot, int r);
void snapshot_close(struct snapshot **snapshot);

/* Returns true if the index is of another moment than the journal, as in a copy made while daemons
 * wrote. Only an untrusted store is read so (store_options.unchecked): objects shown are those of
 * snapshot_taken(), others are missing or unreadable, and earlier and later states can't be
 * read. */
bool snapshot_is_torn(const struct snapshot *snapshot);

uint64_t snapshot_taken(const struct snapshot *snapshot);
uint64_t snapshot_visible(struct snapshot *snapshot, uint32_t feed);

/* Also of a snapshot of the journal alone. */
uint64_t snapshot_horizon(const struct snapshot *snapshot);
uint64_t snapshot_last(const struct snapshot *snapshot);       /* seq of the log's newest record */
const uint8_t *snapshot_uuid(const struct snapshot *snapshot); /* of the journal */
/* Returns the journal's visible(feed), from the feed's checkpoint in this snapshot. The index may
 * be behind. */
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

/* Opens a checked walk over the log above the horizon, from the record FROM on
 * (journal_walk_open_checked()). Also of a snapshot of the journal alone. */
int snapshot_open_walk(struct snapshot *snapshot, uint64_t from, struct journal_walk **ret_walk);

/* Copies the snapshot's state and history, without cursors, into a new store PATH; it must not
 * exist (snapshot_copy.c). PROGRESS gets the bytes copied and, until the end, about how many there
 * are; its negative result ends the copy. After errors the directory is left incomplete. Returns:
 * 0; errors. */
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

/* Returns the newest known resourceVersion not newer than the feed's objects in the snapshot, or
 * empty. Borrowed from FEED. */
struct bytes snapshot_feed_rv(const struct snapshot_feed *feed);

/*
 * Finds the feeds of NAME, in the order of namespace + "/". NAME is a configured name or a form for
 * --watch (pods, po, pod, Pod, deployments.apps). If two feeds share name and namespace (a
 * definition just changed), the newest listed one is taken, else the newest. NAME NULL: all feeds
 * but removed ones, by name. The caller frees RET_FEEDS, one allocation. If resources share a name,
 * the first in the order of discovery is meant, as in kubectl. ERR_NO_FEED: no feed, or several
 * configured names for the resource; the error lists the feeds.
 */
int snapshot_feeds(struct snapshot *snapshot, const char *name, struct snapshot_feed **ret_feeds,
	size_t *ret_n);
/* Does the same from ALL, the N feeds that snapshot_feeds() gave for NULL: quicker for many names.
 * The texts are ALL's. */
int snapshot_feeds_among(struct snapshot *snapshot, const struct snapshot_feed *all, size_t n,
	const char *name, struct snapshot_feed **ret_feeds, size_t *ret_n);
/* Returns a hash of what snapshot_feeds() chooses by: while it is equal, a later snapshot has the
 * same feeds. */
int snapshot_feeds_hash(struct snapshot *snapshot, uint64_t *ret_hash);
/* Reads what else SNAPSHOT has of the N feeds, of an earlier one with that hash; they keep their
 * definitions. Their resourceVersions are TEXT's then. After errors they can only be renewed. */
int snapshot_feeds_renew(
	struct snapshot *snapshot, struct snapshot_feed *feeds, size_t n, struct buf *text);

/* Gets an object's version in the snapshot. Returns: FOUND, NOT_FOUND, ERR_CORRUPT. */
int snapshot_get(
	struct snapshot *snapshot, uint32_t feed, struct bytes key, struct record *ret_record);

/* Reads the version of an index entry. ERR_CORRUPT: it is not of the object, so a wrong pointer
 * never becomes wrong data. ERR_NO_FEED: the journal has removed the feed since. */
int snapshot_record(struct snapshot *snapshot, uint32_t feed, struct bytes key,
	const struct index_entry *entry, struct record *ret_record);

/*
 * Gets the next objects of a walk over the postings of a term of FEED: several at once, to load
 * their memory together. Keys live while the snapshot is held. Returns: how many; 0: the end;
 * errors.
 */
#define SNAPSHOT_OBJECTS_MAX 32
struct snapshot_object {
	struct bytes key;
	struct index_entry entry;
};
int snapshot_walk_objects(struct snapshot *snapshot, uint32_t feed, struct index_walk *walk,
	struct snapshot_object ret_objects[SNAPSHOT_OBJECTS_MAX]);

/* Gets the objects of N keys, at most SNAPSHOT_OBJECTS_MAX: several at once, to load their memory
 * together. Each result is as of snapshot_get(); the sentence of an error is the last one's. */
struct snapshot_key {
	struct bytes key;
	int result;
	struct record record;
};
void snapshot_get_batch(
	struct snapshot *snapshot, uint32_t feed, struct snapshot_key **keys, size_t n);

/* Returns true if the object's hints lead to its version in the index, or nowhere; for verify. */
bool snapshot_hints_agree(struct snapshot *snapshot, uint32_t feed, struct bytes key,
	const struct index_entry *entry);

/* Starts to load the entry's version from memory, for a snapshot_record() soon after. */
void snapshot_prefetch(struct snapshot *snapshot, const struct index_entry *entry);

/* Returns whether ENTRY says where the version lies in the snapshot's journal. */
bool snapshot_has_place(const struct snapshot *snapshot, const struct index_entry *entry);

/* Gets any version from the horizon on by its seq, also with a snapshot of the journal alone.
 * Returns: FOUND, NOT_FOUND. */
int snapshot_version(struct snapshot *snapshot, uint64_t seq, struct record *ret_record);

/* Checks a record of the log, if the store was opened with `check`, and gets the version before it.
 * Returns FOUND, also with seq 0 if there is none; errors. */
int snapshot_before(
	struct snapshot *snapshot, const struct record *record, struct record *ret_before);

/* Gives the feed's definitions by id. All are read once for each snapshot, and live while it is
 * held. */
int snapshot_definitions(struct snapshot *snapshot, uint32_t feed,
	const struct index_definition **ret_definitions, size_t *ret_n);

/* Finds a definition in use by name; its texts point into the snapshot. Returns: FOUND; AGAIN: it
 * is being filled; NOT_FOUND (the caller lists the names). */
int snapshot_definition(struct snapshot *snapshot, uint32_t feed, const char *name,
	struct index_definition *ret_definition);

#endif
