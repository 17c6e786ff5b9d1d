/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The internal header of the libkinf group (kinf.c, get.c, feeds.c, list.c, indexes.c, wait.c,
 * object.c, history.c, who.c): the handles of kinf.h, the last error, and the feeds of a name in
 * one snapshot.
 */
#ifndef READER_KINF_INTERNAL_H
#define READER_KINF_INTERNAL_H

#include "common/buf.h"
#include "common/check.h"
#include "common/stats.h"
#include "reader/kinf.h"
#include "store/read/snapshot.h"

#define KINF_MAGIC          0x6b696e66u
#define KINF_SNAPSHOT_MAGIC 0x6b736e61u
#define KINF_LIST_MAGIC     0x6b6c6973u

struct kinf {
	uint32_t magic;
	unsigned forks; /* forks_count() when it was opened: a child of fork must not use it */
	bool check;
	struct store *store; /* NULL when opening failed: only kinf_error() works then */
	/* it was copied while daemons ran, or after they were killed: it was checked */
	bool is_untrusted;
	bool is_damaged;  /* the check found faults */
	char damage[600]; /* the sentence about them */
	char *directory;
	uint64_t index_wait_ns; /* limit of snapshot_renew_at() */
};

/* The feeds of a name; found once while the same ones are chosen. Texts of their definitions are
 * borrowed from the set of all feeds. */
struct feed_set {
	char *name; /* NULL: all feeds */
	struct snapshot_feed *feeds;
	size_t n;
	uint64_t state;  /* of the store, as the snapshot counts them */
	struct buf text; /* resourceVersions, if they were renewed */
};

/* Identifies one committed state of the store: while it is unchanged, so are the feeds. */
struct store_state {
	uint8_t journal[16];
	uint64_t index_txn, journal_txn, taken;
	uint32_t index_generation, journal_generation;
};

/* Gets each fault of an untrusted store. */
typedef void kinf_fault_fn(void *arg, const char *sentence);
/* As kinf_open(), but also opens a damaged copy (is_damaged). IS_COMMAND: checksums are compared
 * (kinf_set_check()), and findings about a copy are remembered (checked.h); a library leaves no
 * files in its user's home. */
int kinf_open_checked(const char *store, kinf_fault_fn *fault, void *arg, bool is_command,
	struct kinf **ret_kinf);

struct kinf_snapshot {
	uint32_t magic;
	struct kinf *kinf;
	struct snapshot *snapshot;
	bool held;              /* taken and not reset */
	uint64_t taken_as;      /* counts renewals: lists of an earlier one are over */
	struct feed_set **sets; /* separate allocations: a reading callback may add one */
	size_t n_sets, sets_room;
	struct store_state store; /* of the last renewal */
	uint64_t state;           /* counts its changes */
	uint64_t sets_hash;       /* snapshot_feeds_hash() at SETS_STATE */
	uint64_t sets_state;
	uint64_t at_event;  /* the state as of it is shown (past.h); 0: the newest */
	struct as_of *past; /* the state of the feed PAST_FEED; NULL: none was read */
	uint32_t past_feed;
	char past_reason[400]; /* why there is none: GONE, AGAIN */
};

/* If CODE is an error, keeps its sentence for kinf_error(). Returns CODE. */
int kinf_result(struct kinf *kinf, int code);
/* Does the same with the result of reading SNAPSHOT, and returns KINF_SNAPSHOT_EXPIRED instead if
 * the result may be wrong. */
int kinf_result_of(struct kinf_snapshot *snapshot, int code);
/* Why this thread's last feed_set_get() gave AGAIN: TEXT names the feed and its state, for
 * kinf_result(), until it is forgotten. */
void kinf_say_unlisted(const struct kinf *kinf, const char *text);
void kinf_forget_unlisted(void);
bool kinf_has_unlisted(const struct kinf *kinf);

/* Sets the sentence of the outcome CODE. Returns CODE. */
int kinf_outcome(struct kinf *kinf, int code, const char *text);

/* Checks the size that a caller gave a structure of the API. Returns: 0; ERR_UNSUPPORTED. */
int kinf_check_size(const char *structure, uint32_t given, size_t known);

/* Returns whether this process is a child of KINF's. Signal handlers may call it. */
bool kinf_is_forked(const struct kinf *kinf);
/* Returns: 0; ERR_FORKED; ERR_NO_STORE. */
int kinf_alive(struct kinf *kinf);
/* Returns: 0; ERR_FORKED; -EINVAL: it was reset or could not be renewed, so there is nothing to
 * read. */
int kinf_held(struct kinf_snapshot *snapshot);

/* Renews *SNAPSHOT, or opens it if it is NULL, for the library itself: it does not wait for the
 * event of the calling thread. Returns: the same as kinf_snapshot_open(). */
int kinf_snapshot_take(struct kinf *kinf, struct kinf_snapshot **snapshot);

/* Finds the feeds of NAME; NULL: all feeds. Returns: FOUND; AGAIN: none of them has been listed
 * yet; ERR_NO_FEED. Borrowed from the snapshot until it is renewed, reset or closed. */
int feed_set_get(struct kinf_snapshot *snapshot, const char *name, const struct feed_set **ret_set);
/* Does the same for calls with a mandatory feed. Returns also: -EINVAL: NAME is NULL. */
int feed_set_get_named(
	struct kinf_snapshot *snapshot, const char *name, const struct feed_set **ret_set);

/* Keeps for kinf_error() the state of FEED, never listed: why a call gives AGAIN. */
void feed_explain_unlisted(struct kinf_snapshot *snapshot, const struct snapshot_feed *feed);

/* Finds the object KEY in the feeds of SET. Returns: FOUND; NOT_FOUND; AGAIN: it is in none of
 * them, but a feed for such objects was never listed. */
int feed_set_find(struct kinf_snapshot *snapshot, const struct feed_set *set, struct bytes key,
	struct record *ret_record);

/* Does the same as kinf_wait_rv(), only for feeds with objects of NAMESPACE_; NULL: for all. */
int wait_rv_in(struct kinf *kinf, const char *feed, const char *namespace_,
	const char *resource_version, int timeout_ms);

void feed_sets_release(struct kinf_snapshot *snapshot);

/* Writes "namespace/name" into KEY, or "name" if NAMESPACE_ is NULL or "". Returns: 0;
 * NOT_FOUND: it is longer than any object's; -EINVAL: NAME is NULL. */
int key_join(
	const char *namespace_, const char *name, char key[JOURNAL_KEY_MAX], struct bytes *ret_key);

/* Returns the index to add for LIST, now ended (advice.c); "" if none would help. Borrowed from the
 * list. */
const char *list_advice(struct kinf_listing *list);

/* Gives each retained change of the feeds of FEED (NULL: of all) from event *FROM on, in the order
 * of events, with the version before it (NULL: there was none; always for a feed's first list). A
 * result of FN other than 0 ends the walk and is returned; so does AGAIN after LIMIT records of the
 * log, which go on at *FROM. */
typedef int history_log_fn(void *arg, const struct snapshot_feed *feed,
	const struct kinf_change *change, const struct kinf_object *before);
int history_log(struct kinf_snapshot *snapshot, const char *feed, uint64_t *from, size_t limit,
	history_log_fn *fn, void *arg);

/* A daemon as a reader sees it at one moment. */
struct daemon_view {
	struct stats *page; /* NULL: there is none, or it belongs to the original of this copy */
	struct stats_process process; /* of the page */
	bool alive;
	bool responding; /* alive, and its heartbeat is fresh */
};
/* Returns why a dead process ended, or could not start, by its PAGE; "": it was stopped or
 * killed. */
const char *process_failure(const struct stats_process *page);
/* Returns process_failure(), or the remedy for a dead daemon. */
const char *daemon_view_remedy(const struct daemon_view *daemon);
/* Fills VIEW, all zeroes before. */
void daemon_view_take(const struct home *home, enum home_role role, struct daemon_view *view);
/* The same of a process with the status page PAGE and a lock of known HOLDER: its pid, 0: none,
 * negative: a holder without its pid on the page. */
void daemon_view_take_page(
	const struct home *home, const char *page, int holder, struct daemon_view *view);
void daemon_view_release(struct daemon_view *view);

void object_from_record(const struct record *record, struct kinf_object *ret_object);

#endif
