/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libkinf: the machine's Kubernetes informer cache, read from mapped files.
 *
 *	struct kinf *k;
 *	if (kinf_open(NULL, &k) < 0) puts(kinf_error(k)), exit(1);    (the default store)
 *	struct kinf_snapshot *s;
 *	if (kinf_snapshot_open(k, &s) != 0) puts(kinf_error(k)), exit(1);
 *	struct kinf_object pod;
 *	if (kinf_get(s, "pods", "web", "front-0", &pod) == KINF_FOUND)
 *		kinf_object_path(&pod, "spec.nodeName", &text, &size);
 *	kinf_snapshot_close(&s);
 *	kinf_close(&k);
 *
 * Nothing is decoded or copied: an object is msgpack bytes in a read-only mapping, and its text and
 * size members are not NUL-terminated unless said. Borrowed bytes live until the snapshot is
 * renewed, reset or closed. Writing through them is a SIGSEGV at the guilty line.
 *
 * Results: negative is an error (an errno value negated or enum kinf_code) and kinf_error() has the
 * sentence; 0 is success; positive is an outcome to switch on (enum kinf_outcome). Nothing prints,
 * nothing aborts, nothing sleeps unless its name says wait, or a handler asks for a snapshot.
 *
 * Threads: one thread at a time per snapshot and the data read from it; several threads may use one
 * struct kinf, each with snapshots of its own, and wait with it. After fork(3) the child opens its
 * own struct kinf; using the parent's gives KINF_FORKED. A child of _Fork(3) or clone(2) may only
 * execute a program. A reading process has a small file for each database in the runtime directory,
 * with its pins, and writes nothing else; it can never delay a writer. Hold snapshots briefly:
 * pages freed meanwhile can't be reused, and the daemons report a snapshot held for over 60 s.
 *
 * Callbacks may read from the snapshot they come from, but not renew, reset or close it.
 *
 * The caller fills `size` with sizeof in structures beginning with it: later versions of the
 * library know the fields by it.
 */
#ifndef KINF_H
#define KINF_H

#include <stddef.h>
#include <stdint.h>

#include "kinf_informer.h"
#include "kinf_queue.h"

#ifdef __cplusplus
extern "C" {
#endif

enum kinf_outcome {
	KINF_FOUND = 0,
	KINF_NOT_FOUND = 1,
	KINF_END = 2,
	KINF_LAPPED = 3,
	KINF_GONE = 4,
	KINF_AGAIN = 5 /* not yet: nothing has been listed or indexed so far */
};

enum kinf_code {
	KINF_CORRUPT = -1001,
	KINF_FORMAT = -1002,
	KINF_NO_FEED = -1004,
	KINF_SNAPSHOT_EXPIRED = -1005,
	KINF_LOCKED = -1006,
	KINF_NO_STORE = -1007,
	KINF_UNTRUSTED = -1008,
	KINF_SYNTAX = -1009,
	KINF_TOO_LARGE = -1010,
	KINF_READERS_FULL = -1012,
	KINF_NO_INDEX = -1019,
	KINF_FORKED = -1020,
	KINF_MOVED = -1021,
	KINF_TIMEOUT = -1023,
	KINF_UNSUPPORTED = -1024
};

struct kinf;
struct kinf_snapshot;
struct kinf_listing;

/* ---- the store ---------------------------------------------------------- */

/* STORE: its directory; NULL: $KINF_STORE, else $XDG_STATE_HOME/kinf, ~/.local/state/kinf, for root
 * /var/lib/kinf. On failure *ret_kinf is still a handle when there was memory, for kinf_error(). */
KINF_API int kinf_open(const char *store, struct kinf **ret_kinf);
KINF_API void kinf_close(struct kinf **kinf);

/* The sentence of the calling thread's last error on this handle, or for NULL of the functions
 * without a handle (kinf_object_, kinf_queue_, kinf_limiter_, kinf_clock_); also why a call gave
 * KINF_AGAIN or KINF_GONE. Never NULL. Valid until the thread's next one. */
KINF_API const char *kinf_error(const struct kinf *kinf);
KINF_API const char *kinf_strerror(int code);
KINF_API const char *kinf_version(void);

/* Every record's checksum is verified before it is given out (off, the default: LMDB's own
 * structure, the seq, the feed and the key are checked). Before the first snapshot. */
KINF_API int kinf_set_check(struct kinf *kinf, int on);

/* Returns 1 for a store read as a copy: no daemon writes it, and this process can't publish its
 * pins there (an unchecked copy, or no writable directory "pins"). */
KINF_API int kinf_is_copy(const struct kinf *kinf);

/* ---- snapshots ---------------------------------------------------------- */

/* 0; KINF_AGAIN when no processor has made an index yet (kinf_error says so too).
 *
 * Events come from the journal, a moment before the index has them. In a handler, and in a thread
 * with a key from kinf_queue_get, this and kinf_snapshot_renew wait until the cache holds the
 * handler's event: usually not at all, or for microseconds. While kinf-processor is stopped or far
 * behind, the wait ends after 5 s, while it does not run after 1 s, with KINF_AGAIN: try again
 * later. */
KINF_API int kinf_snapshot_open(struct kinf *kinf, struct kinf_snapshot **ret_snapshot);
/* Takes the newest state instead: everything borrowed ends, and so do open lists. Returns the same
 * as kinf_snapshot_open; after a failure there is nothing to read until it is renewed. */
KINF_API int kinf_snapshot_renew(struct kinf_snapshot *snapshot);
/* The same, in any thread: waits until the cache holds EVENT, e.g. one taken from
 * kinf_handled_event by a handler in another thread. KINF_AGAIN as above; KINF_GONE: the journal
 * ends before EVENT, so EVENT is of an earlier journal. */
KINF_API int kinf_snapshot_renew_at(struct kinf_snapshot *snapshot, uint64_t event);
/* Returns the event number a snapshot must reach to show the calling thread's events: the event of
 * its callback, also a deletion, and those of its keys from kinf_queue_get, until it has called
 * kinf_queue_done for all of them; else 0. It is the event's own number, or a later one: a list
 * comes as a whole. */
KINF_API uint64_t kinf_handled_event(void);
/* Gives the pages back but keeps the slot, until kinf_snapshot_renew. KINF_SNAPSHOT_EXPIRED: the
 * data read since the last renewal may be wrong. Either the copy was written meanwhile, or the
 * snapshot was held for minutes while the daemons replaced the files by copies again and again, and
 * they took the old file's space back (the event `snapshot_given_up`); reading says the same. Or
 * this program has closed the library's files, as closefrom(3) does: open the store again then. */
KINF_API int kinf_snapshot_reset(struct kinf_snapshot *snapshot);
/* Returns 0: all data read since the last renewal is right; KINF_SNAPSHOT_EXPIRED: it may be wrong,
 * as above. For a program that uses borrowed bytes for long. Less than a microsecond, except in a
 * copy. */
KINF_API int kinf_snapshot_check(struct kinf_snapshot *snapshot);
KINF_API void kinf_snapshot_close(struct kinf_snapshot **snapshot);

/* The event number this snapshot is complete up to. Numbers are of one journal: if the cluster is
 * another one, or went back in time, a new journal begins with small numbers again. */
KINF_API uint64_t kinf_snapshot_event(const struct kinf_snapshot *snapshot);

/* ---- objects ------------------------------------------------------------ */

struct kinf_object {
	const char *key; /* "namespace/name" or "name" */
	const char *uid;
	const char *resource_version;
	/* msgpack; NULL: no state is kept (on_delete), and nothing is found in it */
	const void *body;
	uint32_t key_size, uid_size, resource_version_size, body_size;
	uint64_t event; /* number of this version's record */
	uint32_t feed;  /* id of the feed it is of */
	uint32_t reserved;
};

/* FEED: a configured feed's name or its resource. NAMESPACE: NULL or "" for cluster-scoped kinds.
 * KINF_FOUND, KINF_NOT_FOUND, KINF_AGAIN (a feed for it has not been listed yet). */
KINF_API int kinf_get(struct kinf_snapshot *snapshot, const char *feed, const char *namespace_,
	const char *name, struct kinf_object *ret_object);

/* Gets N objects of a feed in one call. At a million objects this takes a fraction of the time of
 * single calls, because the memory of up to 32 objects is loaded at the same time. KEYS are
 * "namespace/name", or "name" for cluster-scoped kinds. FN is called for each key in the order of
 * KEYS, with its place I in them and RESULT, kinf_get's result for it: KINF_FOUND, KINF_NOT_FOUND
 * (also for a malformed key) or KINF_AGAIN. OBJECT is NULL unless it is KINF_FOUND, is valid until
 * FN returns, and borrows its bytes from the snapshot. A result of FN other than 0 ends the call
 * and is its result. FN may read from the snapshot but not renew, reset or close it. Returns: 0;
 * what FN returned; KINF_AGAIN if no feed of the name has been listed yet; KINF_NO_FEED;
 * KINF_CORRUPT. */
typedef int kinf_get_fn(void *arg, size_t i, int result, const struct kinf_object *object);
KINF_API int kinf_get_many(struct kinf_snapshot *snapshot, const char *feed,
	const char *const *keys, size_t n, kinf_get_fn *fn, void *arg);

/* Text of the first scalar at a field path such as "spec.nodeName" or
 * "metadata.labels['a/b']". KINF_FOUND, KINF_NOT_FOUND (absent, or a map or list). Strings are
 * borrowed; numbers and booleans are in a per-thread buffer until the next call. */
KINF_API int kinf_object_path(const struct kinf_object *object, const char *path,
	const char **ret_text, size_t *ret_size);

/* The first value at a field path, a map or list too, as an object of its own: its body is the
 * value, all else is OBJECT's and remains borrowed. Paths, JSON and copies of it begin there.
 * KINF_FOUND, KINF_NOT_FOUND. */
KINF_API int kinf_object_part(
	const struct kinf_object *object, const char *path, struct kinf_object *ret_part);

/* FN is called for each value at a path with [*] in it; its non-zero result ends the walk and is
 * the result. PART is valid until it returns, its body as long as OBJECT's. */
typedef int kinf_part_fn(void *arg, const struct kinf_object *part);
KINF_API int kinf_object_each(
	const struct kinf_object *object, const char *path, kinf_part_fn *fn, void *arg);

/* JSON of the object, INDENT spaces a level (0: one line; negative: -EINVAL), NUL-terminated;
 * free() it. "{}" without a body. */
KINF_API int kinf_object_json(
	const struct kinf_object *object, int indent, char **ret_json, size_t *ret_size);

/* A copy with all its bytes in one block, valid until free(). */
KINF_API int kinf_object_copy(const struct kinf_object *object, struct kinf_object **ret_copy);

/* ---- lists -------------------------------------------------------------- */

struct kinf_term {
	const char *index; /* name of an index of the feed */
	/* compound: all its parts, joined by commas, escaped by backslashes; KINF_SYNTAX:
	 * another number */
	const char *value;
};

struct kinf_query {
	uint32_t size; /* sizeof(struct kinf_query) */
	uint32_t reserved;
	const char *feed;
	const char *namespace_;        /* NULL: all */
	const char *prefix;            /* of the object's name; NULL: any */
	const char *label_selector;    /* as kubectl's -l */
	const char *field_selector;    /* any field path */
	const struct kinf_term *terms; /* all must hold */
	uint64_t n_terms;
	uint64_t limit;             /* 0: no limit */
	const char *continue_token; /* of the page before, NULL: from the start */
	const char *sort_by;        /* a field path; NULL: by key */
	uint64_t at_event;          /* the state as of this event; 0: the newest */
};

/* Objects in the order of their keys; memory does not grow with the result. KINF_SYNTAX (also a
 * selector or sort_by for a field dropped by the feed: `objects` and `drop` in kinf.yaml),
 * KINF_NO_FEED, KINF_NO_INDEX name the existing ones; KINF_AGAIN: a feed is still in its first
 * list, no feed for such objects was ever listed, or an index is being filled. Close lists before
 * their snapshot. A continue token goes on with its own query alone (but for the limit). All pages
 * of a list show the state as of the first one, as the API server's do: objects deleted since are
 * still listed, objects created since are not. KINF_GONE: the state is no longer kept (retention in
 * kinf.yaml) or the feed was replaced; list again without the token. AT_EVENT shows the state as
 * of this event; KINF_GONE: it is no longer kept, KINF_AGAIN: there is no such event yet;
 * kinf_error names the existing events. SORT_BY orders as kubectl's --sort-by: objects without the
 * field first, then quantities and numbers (9, 10, 500Mi, 1Gi), then texts in natural order (pod-9,
 * pod-10); equal ones by key. Give a limit: all objects of a page are kept in memory, and an index
 * of this very path makes it quick. */
KINF_API int kinf_list(struct kinf_snapshot *snapshot, const struct kinf_query *query,
	struct kinf_listing **ret_list);
/* KINF_FOUND, KINF_END. The object's fields are borrowed from the snapshot. */
KINF_API int kinf_list_next(struct kinf_listing *list, struct kinf_object *ret_object);
/* After KINF_END of a limited list: the token for the next page, NULL when there is none. Borrowed
 * from the list. */
KINF_API const char *kinf_list_continue(struct kinf_listing *list);
/* Describes how the list is computed ("term 'node-1', 120 postings sorted by key; filter on the
 * body: label selector; 120 objects read for 7"). It is complete when the list has ended. */
KINF_API const char *kinf_list_plan(struct kinf_listing *list);
/* Returns the newest known resourceVersion not newer than the listed objects: a watch from it
 * misses nothing; "" when several feeds take part or none is known. Borrowed from the list. */
KINF_API const char *kinf_list_resource_version(struct kinf_listing *list);
KINF_API void kinf_list_close(struct kinf_listing **list);

/* One term of one index: kinf_list with nothing else. */
KINF_API int kinf_by_index(struct kinf_snapshot *snapshot, const char *feed, const char *index,
	const char *value, struct kinf_listing **ret_list);

/* ---- indexes ------------------------------------------------------------ */

/* Called until its result is non-zero; this is then the result. */
typedef int kinf_value_fn(void *arg, const char *value, size_t size, uint64_t count);
/* Gives the values in byte order, their counts summed over the feeds of the name. KINF_AGAIN: none
 * of them has been listed yet, or the index is being filled. */
KINF_API int kinf_index_values(struct kinf_snapshot *snapshot, const char *feed, const char *index,
	const char *prefix, kinf_value_fn *fn, void *arg);

/* PATHS: canonical, joined by newlines; "" for the built-in ones. READY 0: still being filled. An
 * index of several feeds of the name is given once, its values counted once. */
typedef int kinf_index_fn(void *arg, const char *name, const char *paths, uint64_t values,
	uint64_t entries, int ready);
KINF_API int kinf_index_list(
	struct kinf_snapshot *snapshot, const char *feed, kinf_index_fn *fn, void *arg);

/* ---- feeds -------------------------------------------------------------- */

struct kinf_feed_info {
	uint32_t size;      /* sizeof(struct kinf_feed_info) */
	uint32_t feed;      /* id */
	char name[128];     /* the first 127 bytes of full_name */
	char resource[256]; /* plural[.group] */
	char kind[128];
	char namespace_[64];
	char state[16]; /* listing, live, stale, offline, forbidden, gone, error */
	char resource_version[64];
	char last_error[240];
	uint64_t objects;
	uint64_t event; /* visible up to this event */
	uint64_t lag;   /* records in the journal not visible yet; 0: none of the feed's */
	uint64_t lists, watches, events; /* those accepted by the API server; watch events read */
	uint64_t list_done, list_total;  /* of the list in progress; total 0: unknown */
	/* since the server's last sign about the shown data; negative: unknown */
	double last_contact_seconds;
	uint8_t synced; /* an initial state can be read */
	uint8_t namespaced;
	uint8_t reserved[6];
	uint64_t retries;   /* failed attempts */
	uint64_t bytes;     /* of answers read */
	uint64_t resync_ms; /* of informers without their own; 0: none */
	char full_name[320];
};

/* Calls FN for each feed of a name, or for all feeds (NULL); its non-zero result ends the walk. */
typedef int kinf_feed_fn(void *arg, const struct kinf_feed_info *status);
KINF_API int kinf_feed_status(
	struct kinf_snapshot *snapshot, const char *feed, kinf_feed_fn *fn, void *arg);

/* Waits until every feed named has been listed once, or TIMEOUT_MS passed (KINF_TIMEOUT; negative:
 * forever). Waits for missing feeds too. */
KINF_API int kinf_wait_synced(
	struct kinf *kinf, const char *const *feeds, size_t n, int timeout_ms);

/* Waits until the feed holds everything up to RESOURCE_VERSION (read your writes). */
KINF_API int kinf_wait_rv(
	struct kinf *kinf, const char *feed, const char *resource_version, int timeout_ms);

/* ---- history ------------------------------------------------------------ */

struct kinf_change {
	const char *type; /* ADDED, MODIFIED, DELETED */
	uint64_t event;
	uint64_t time_ns;          /* CLOCK_REALTIME when it was recorded */
	struct kinf_object object; /* DELETED: the last state */
	int final_state_unknown;
	int reserved;
};

/* Gives the retained past of one object, oldest first: its state before the retained events, if
 * there was one (with the type of its event), then each change. FN's non-zero result ends the walk
 * and is the result. KINF_NOT_FOUND: nothing is retained; KINF_AGAIN: nothing is retained, and a
 * feed for the object has not been listed yet. Reads the retained log once. */
typedef int kinf_change_fn(void *arg, const struct kinf_change *change);
KINF_API int kinf_history(struct kinf_snapshot *snapshot, const char *feed, const char *namespace_,
	const char *name, kinf_change_fn *fn, void *arg);

/* ---- who ---------------------------------------------------------------- */

enum kinf_who_when {
	KINF_WHO_NOW,  /* the pods with it now */
	KINF_WHO_LAST, /* if there are none, the pods with it within the retained history */
	KINF_WHO_ALL   /* both */
};

/* Gives the pods behind WHAT: an IP address, a container's id (whole or its first 8 digits at
 * least, with or without containerd://), a pod's uid, or [NODE/]PID, a process of this machine.
 * UNTIL_NS: CLOCK_REALTIME when it lost it, by its deletion or by a change; 0: it has it. Several
 * pods have one address if they are on the network of their node (spec.hostNetwork), or if the
 * address of a finished pod (status.phase) was given to another one. WHEN: enum kinf_who_when.
 *
 * `resolve` in kinf.yaml makes the indexes for it; without them all pods are read. The history is
 * read as a whole. FN's non-zero result ends the walk and is the result. KINF_NOT_FOUND: no such
 * pod or process (kinf_error says which); KINF_SYNTAX: WHAT has another form. */
typedef int kinf_who_fn(void *arg, const struct kinf_object *pod, uint64_t until_ns);
KINF_API int kinf_who(
	struct kinf_snapshot *snapshot, const char *what, int when, kinf_who_fn *fn, void *arg);

#ifdef __cplusplus
}
#endif

#endif
