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
 * Nothing is decoded or copied: an object is msgpack bytes in a read-only mapping, and what points to
 * it (text, size) is not NUL-terminated unless said. Borrowed bytes live until the snapshot is
 * renewed, reset or closed. Writing through them is a SIGSEGV at the guilty line.
 *
 * Results: negative is an error (an errno value negated or enum kinf_code) and kinf_error() has the
 * sentence; 0 is success; positive is an outcome to switch on (enum kinf_outcome). Nothing prints,
 * nothing aborts, nothing sleeps unless its name says wait.
 *
 * Threads: one thread at a time per snapshot and what is read from it; several threads may use one
 * struct kinf, each with snapshots of its own, and wait with it. After fork the child opens its own
 * struct kinf; using the parent's gives KINF_FORKED. A process that reads takes a slot in each
 * database's reader table and writes nothing else; it can never delay a writer. Hold snapshots
 * briefly: pages freed meanwhile pile up behind them, one held for over 60 s is reported by the
 * daemons.
 *
 * Callbacks may read from the snapshot they come from, but not renew, reset or close it.
 *
 * Structures that begin with `size` are filled by the caller with sizeof, so that later versions of
 * the library know which fields there are.
 */
#ifndef KINF_H
#define KINF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
/* kinf_list is a function and a structure, as stat is; g++ -Wshadow minds where it is declared. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
extern "C" {
#endif

#define KINF_API __attribute__((visibility("default")))

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
struct kinf_list;

/* ---- the store ---- */

/* STORE: its directory; NULL: $KINF_STORE, else $XDG_STATE_HOME/kinf, ~/.local/state/kinf, for root
 * /var/lib/kinf. On failure *ret_kinf is still a handle when there was memory, for kinf_error(). */
KINF_API int kinf_open(const char *store, struct kinf **ret_kinf);
KINF_API void kinf_close(struct kinf **kinf);

/* The sentence of the calling thread's last error, when it was on this handle, or for NULL one of the
 * kinf_object_ functions, which know no handle; also why a call gave KINF_AGAIN or KINF_GONE. Never
 * NULL. Valid until the thread's next one. */
KINF_API const char *kinf_error(const struct kinf *kinf);
KINF_API const char *kinf_strerror(int code);
KINF_API const char *kinf_version(void);

/* Every record's checksum is verified before it is given out (off, the default: LMDB's own structure,
 * the seq, the feed and the key are checked). Before the first snapshot. */
KINF_API int kinf_set_check(struct kinf *kinf, int on);

/* 1: nobody can write this store now (a copy, a read-only mount); reads take no locks. */
KINF_API int kinf_is_copy(const struct kinf *kinf);

/* ---- snapshots ---- */

/* 0; KINF_AGAIN when no processor has made an index yet (kinf_error says so too). */
KINF_API int kinf_snapshot_open(struct kinf *kinf, struct kinf_snapshot **ret_snapshot);
/* Takes the newest state instead; what was borrowed is gone, open lists are over. As
 * kinf_snapshot_open; after a failure there is nothing to read until it is renewed. */
KINF_API int kinf_snapshot_renew(struct kinf_snapshot *snapshot);
/* Gives the pages back but keeps the slot; kinf_snapshot_renew goes on. KINF_SNAPSHOT_EXPIRED: what
 * was read since the last renewal may be wrong (only for a copy that somebody wrote). */
KINF_API int kinf_snapshot_reset(struct kinf_snapshot *snapshot);
KINF_API void kinf_snapshot_close(struct kinf_snapshot **snapshot);

/* The event number up to which this snapshot is complete. */
KINF_API uint64_t kinf_snapshot_event(const struct kinf_snapshot *snapshot);

/* ---- objects ---- */

struct kinf_object {
	const char *key; /* "namespace/name" or "name" */
	const char *uid;
	const char *resource_version;
	const void *body; /* msgpack */
	uint32_t key_size, uid_size, resource_version_size, body_size;
	uint64_t event; /* number of the record that holds this version */
	uint32_t feed;  /* id of the feed it is of */
	uint32_t reserved;
};

/* FEED: a configured feed's name or its resource. NAMESPACE: NULL or "" for cluster-scoped kinds.
 * KINF_FOUND, KINF_NOT_FOUND, KINF_AGAIN (a feed that may hold it has not been listed yet). */
KINF_API int kinf_get(struct kinf_snapshot *snapshot, const char *feed, const char *namespace_,
	const char *name, struct kinf_object *ret_object);

/* Text of the first scalar at a field path such as "spec.nodeName" or
 * "metadata.labels['a/b']". KINF_FOUND, KINF_NOT_FOUND (absent, or a map or list). Strings are
 * borrowed; numbers and booleans are in a per-thread buffer until the next call. */
KINF_API int kinf_object_path(const struct kinf_object *object, const char *path,
	const char **ret_text, size_t *ret_size);

/* The first value at a field path, a map or list too, as an object of its own: its body is that value,
 * all else is OBJECT's and what was borrowed stays so. Paths, JSON and copies of it begin there.
 * KINF_FOUND, KINF_NOT_FOUND. */
KINF_API int kinf_object_part(const struct kinf_object *object, const char *path,
	struct kinf_object *ret_part);

/* FN is called for each value at a path with [*] in it; its non-zero result ends the walk and is the
 * result. PART is valid until it returns, its body as long as OBJECT's. */
typedef int kinf_part_fn(void *arg, const struct kinf_object *part);
KINF_API int kinf_object_each(const struct kinf_object *object, const char *path, kinf_part_fn *fn,
	void *arg);

/* JSON of the object, INDENT spaces a level (0: one line), NUL-terminated; free() it. */
KINF_API int kinf_object_json(const struct kinf_object *object, int indent, char **ret_json,
	size_t *ret_size);

/* A copy that lives until free(): all its bytes lie in the one block. */
KINF_API int kinf_object_copy(const struct kinf_object *object, struct kinf_object **ret_copy);

/* ---- lists ---- */

struct kinf_term {
	const char *index; /* name of an index of the feed */
	const char *value; /* compound: parts joined by commas, escaped by backslashes */
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
	uint64_t limit;                /* 0: no limit */
	const char *continue_token;    /* of the page before, NULL: from the start */
	const char *sort_by;           /* a field path; NULL: by key */
};

/* Objects in the order of their keys; memory does not grow with the result. KINF_SYNTAX,
 * KINF_NO_FEED, KINF_NO_INDEX name what there is; KINF_AGAIN: a feed is still being listed for the
 * first time, or an index filled. Close lists before their snapshot.
 *
 * SORT_BY orders as kubectl's --sort-by: objects without the field first, then quantities and numbers
 * (9, 10, 500Mi, 1Gi), then texts in natural order (pod-9, pod-10); equal ones by key. Give a limit:
 * all that a page may hold is kept in memory, and an index of that very path makes it quick. The
 * pages of one walk are in the order of its first page, whatever changes meanwhile; objects that came
 * later are not among them. KINF_GONE: the continue token is older than the store's history, list
 * again without it. */
KINF_API int kinf_list(struct kinf_snapshot *snapshot, const struct kinf_query *query,
	struct kinf_list **ret_list);
/* KINF_FOUND, KINF_END. The object's fields are borrowed from the snapshot. */
KINF_API int kinf_list_next(struct kinf_list *list, struct kinf_object *ret_object);
/* After KINF_END of a limited list: the token for the next page, NULL when there is none. Borrowed
 * from the list. Objects that live through the whole walk come exactly once, whatever changes. */
KINF_API const char *kinf_list_continue(struct kinf_list *list);
/* How the list is computed, in words ("term 'node-1', 120 postings sorted by key; filter on the body:
 * label selector"). Of a sorted list it is complete after the first kinf_list_next. */
KINF_API const char *kinf_list_plan(struct kinf_list *list);
/* The feed's resourceVersion in this snapshot ("" when several feeds take part). Borrowed from the
 * list. */
KINF_API const char *kinf_list_resource_version(struct kinf_list *list);
KINF_API void kinf_list_close(struct kinf_list **list);

/* One term of one index: kinf_list with nothing else. */
KINF_API int kinf_by_index(struct kinf_snapshot *snapshot, const char *feed, const char *index,
	const char *value, struct kinf_list **ret_list);

/* ---- indexes ---- */

/* Called until it returns non-zero, which is then the result. */
typedef int kinf_value_fn(void *arg, const char *value, size_t size, uint64_t count);
/* Values in byte order, summed over the feeds behind the name. */
KINF_API int kinf_index_values(struct kinf_snapshot *snapshot, const char *feed, const char *index,
	const char *prefix, kinf_value_fn *fn, void *arg);

/* PATHS: canonical, joined by newlines; "" for the built-in ones. READY 0: still being filled. An
 * index that several feeds behind the name have is one, its values counted once. */
typedef int kinf_index_fn(void *arg, const char *name, const char *paths, uint64_t values,
	uint64_t entries, int ready);
KINF_API int kinf_index_list(struct kinf_snapshot *snapshot, const char *feed, kinf_index_fn *fn,
	void *arg);

/* ---- feeds ---- */

struct kinf_feed_status {
	uint32_t size; /* sizeof(struct kinf_feed_status) */
	uint32_t feed; /* id */
	char name[128];
	char resource[256]; /* plural[.group] */
	char kind[128];
	char namespace_[64];
	char state[16]; /* listing, live, stale, offline, forbidden, gone, error */
	char resource_version[64];
	char last_error[240];
	uint64_t objects;
	uint64_t event; /* visible up to this event */
	uint64_t lag;   /* records in the journal that are not visible yet */
	uint64_t lists, watches, events;
	uint64_t list_done, list_total; /* of the list in progress; total 0: unknown */
	double last_contact_seconds;    /* negative: never, or no reflector runs */
	uint8_t synced;                 /* an initial state can be read */
	uint8_t namespaced;
	uint8_t reserved[6];
	uint64_t retries; /* failed attempts */
	uint64_t bytes;   /* of answers read */
	uint64_t resync_ms; /* of informers that do not say their own; 0: none */
};

/* The feeds behind a name, or all (NULL): FN is called for each; its non-zero result ends the walk. */
typedef int kinf_feed_fn(void *arg, const struct kinf_feed_status *status);
KINF_API int kinf_feed_status(struct kinf_snapshot *snapshot, const char *feed, kinf_feed_fn *fn,
	void *arg);

/* Waits until every feed named has been listed once, or TIMEOUT_MS passed (KINF_TIMEOUT; negative:
 * forever). Feeds that do not exist yet are waited for. */
KINF_API int kinf_wait_synced(struct kinf *kinf, const char *const *feeds, size_t n, int timeout_ms);

/* Waits until the feed holds everything up to RESOURCE_VERSION (read your writes). */
KINF_API int kinf_wait_rv(struct kinf *kinf, const char *feed, const char *resource_version,
	int timeout_ms);

/* ---- work queues ---- */

/*
 * client-go's work queue: what was added is handed out in order, once however often it was added
 * meanwhile, and never to two workers at once. Keys are byte strings of any kind; "namespace/name" of
 * an object is the usual one. Workers loop:
 *
 *	while (kinf_queue_get(queue, -1, &key, &size) == KINF_FOUND) {
 *		if (reconcile(key, size) == 0)
 *			kinf_queue_forget(queue, key, size);
 *		else
 *			kinf_queue_add_rate_limited(queue, key, size);
 *		kinf_queue_done(queue, key, size);
 *	}
 *
 * Any number of threads may use one queue, one limiter, one clock. There is no thread inside: whoever
 * waits in kinf_queue_get also keeps the time of what was added for later. Queues need no store; they
 * survive a fork only in the child that lets go of them unused.
 */
struct kinf_queue;
struct kinf_limiter;
struct kinf_clock;

/* A clock that stands still until it is stepped, for tests of programs that wait. Begins at 0.
 * Outlives the queues and limiters that use it. Where a clock may be given, NULL is the machine's
 * (CLOCK_MONOTONIC). */
KINF_API int kinf_clock_new(struct kinf_clock **ret_clock);
KINF_API void kinf_clock_step(struct kinf_clock *clock, uint64_t ns);
KINF_API uint64_t kinf_clock_now(const struct kinf_clock *clock);
KINF_API void kinf_clock_free(struct kinf_clock **clock);

/* In which order keys are handed out; a queue without one is first in, first out. Called under the
 * queue's lock: call nothing of the queue. A key is the queue's, and at one place until it is popped. */
struct kinf_queue_order {
	uint32_t size; /* sizeof(struct kinf_queue_order) */
	uint32_t reserved;
	/* A key that waits already was added again. NULL: nothing happens then. */
	void (*touch)(void *arg, const char *key, size_t size);
	/* 0, or an error, which is that of the call that added the key. */
	int (*push)(void *arg, const char *key, size_t size);
	/* The very pointer that was pushed. Only called when there is one. */
	const char *(*pop)(void *arg);
	void *arg;
};

struct kinf_queue_options {
	uint32_t size; /* sizeof(struct kinf_queue_options) */
	uint32_t reserved;
	struct kinf_limiter *limiter; /* of kinf_queue_add_rate_limited; the queue's from now on. NULL:
					 as kinf_limiter_default_controller */
	struct kinf_clock *clock;     /* NULL: the machine's */
	const struct kinf_queue_order *order; /* copied; NULL: first in, first out */
};

/* OPTIONS NULL: all as by default. On failure the limiter stays the caller's. */
KINF_API int kinf_queue_new(const struct kinf_queue_options *options,
	struct kinf_queue **ret_queue);
/* No thread may be in a call of it. What waits is dropped. */
KINF_API void kinf_queue_free(struct kinf_queue **queue);

/* 0, also when KEY waits already (it comes once) or is being worked on (it comes again after
 * kinf_queue_done). KINF_END: the queue is shutting down, KEY is not taken. */
KINF_API int kinf_queue_add(struct kinf_queue *queue, const void *key, size_t size);
/* Adds KEY when DELAY_NS have passed, at once when it is not positive. Of several delays of one key
 * the earliest counts. What is added for later is dropped by a shutdown. As kinf_queue_add. */
KINF_API int kinf_queue_add_after(struct kinf_queue *queue, const void *key, size_t size,
	int64_t delay_ns);
/* After the delay that the queue's limiter says. */
KINF_API int kinf_queue_add_rate_limited(struct kinf_queue *queue, const void *key, size_t size);
/* KEY is well again: the limiter begins anew with it. kinf_queue_done is due all the same. */
KINF_API void kinf_queue_forget(struct kinf_queue *queue, const void *key, size_t size);
/* How often KEY was added rate-limited since it was forgotten. */
KINF_API uint64_t kinf_queue_num_requeues(struct kinf_queue *queue, const void *key, size_t size);

/* Waits for a key up to TIMEOUT_MS (0: does not wait, negative: without end). KINF_FOUND; KINF_AGAIN:
 * the time is over; KINF_END: shut down, and all was handed out. *ret_key is NUL-terminated (the NUL
 * is not part of it) and borrowed until its kinf_queue_done. */
KINF_API int kinf_queue_get(struct kinf_queue *queue, int timeout_ms, const char **ret_key,
	size_t *ret_size);
/* Work on KEY has ended: if it was added meanwhile it waits again. KINF_NOT_FOUND: nobody works on
 * it, nothing changed. */
KINF_API int kinf_queue_done(struct kinf_queue *queue, const void *key, size_t size);
/* Milliseconds, rounded up, until a key can be had: 0 now, -1 nothing is there. For programs that
 * wait in poll() and then call kinf_queue_get with timeout 0. */
KINF_API int64_t kinf_queue_next_ms(struct kinf_queue *queue);

/* Keys that wait; not those being worked on, nor those for later. */
KINF_API size_t kinf_queue_len(struct kinf_queue *queue);

/* Nothing more is taken; what waits is still handed out, then kinf_queue_get gives KINF_END. */
KINF_API void kinf_queue_shut_down(struct kinf_queue *queue);
/* The same, and waits until nobody works on a key any more (not for what waits: go on calling
 * kinf_queue_get in other threads). Keys added while they were worked on are handed out once more. A
 * kinf_queue_shut_down ends the waiting. */
KINF_API void kinf_queue_shut_down_with_drain(struct kinf_queue *queue);
KINF_API int kinf_queue_shutting_down(struct kinf_queue *queue);

#define KINF_HISTOGRAM_BUCKETS 10
/* Seconds; buckets[i] counts what took up to 10^(i - 8) seconds, as client-go's; not cumulative, what
 * took longer is only in count and sum. */
struct kinf_histogram {
	uint64_t count;
	double sum;
	uint64_t buckets[KINF_HISTOGRAM_BUCKETS];
};

/* The workqueue_* metrics of a controller, as of the time of asking. */
struct kinf_queue_metrics {
	uint32_t size; /* sizeof(struct kinf_queue_metrics) */
	uint32_t reserved;
	uint64_t depth;                       /* accepted and not yet handed out */
	uint64_t adds;                        /* accepted: those that were not there already */
	uint64_t retries;                     /* calls that add for later, rate-limited ones included */
	struct kinf_histogram queue_duration; /* first add to get */
	struct kinf_histogram work_duration;  /* get to done */
	double unfinished_work_seconds;       /* ages of what is being worked on, added up */
	double longest_running_processor_seconds;
	uint64_t processing;                  /* keys being worked on */
	uint64_t delayed;                     /* keys for later */
};
KINF_API int kinf_queue_metrics(struct kinf_queue *queue, struct kinf_queue_metrics *ret_metrics);

/* ---- rate limiters ---- */

/* A limiter of your own. All but when() may be NULL. Called by several threads at once. */
struct kinf_limiter_operations {
	uint32_t size; /* sizeof(struct kinf_limiter_operations) */
	uint32_t reserved;
	/* 0 and how long KEY waits now, or an error. */
	int (*when)(void *arg, const void *key, size_t size, int64_t *ret_ns);
	void (*forget)(void *arg, const void *key, size_t size);
	uint64_t (*num_requeues)(void *arg, const void *key, size_t size);
	void (*release)(void *arg);
};
KINF_API int kinf_limiter_new(const struct kinf_limiter_operations *operations, void *arg,
	struct kinf_limiter **ret_limiter);
KINF_API void kinf_limiter_free(struct kinf_limiter **limiter);

/* BASE_NS, doubled with each failure of the key, up to MAX_NS. */
KINF_API int kinf_limiter_item_exponential_failure(int64_t base_ns, int64_t max_ns,
	struct kinf_limiter **ret_limiter);
/* FAST_NS for a key's first N_FAST times, then SLOW_NS. */
KINF_API int kinf_limiter_item_fast_slow(int64_t fast_ns, int64_t slow_ns, uint64_t n_fast,
	struct kinf_limiter **ret_limiter);
/* A bucket of BURST tokens, filled with QPS a second, for all keys together. -EINVAL when one is not
 * positive. */
KINF_API int kinf_limiter_bucket(double qps, uint32_t burst, struct kinf_clock *clock,
	struct kinf_limiter **ret_limiter);
/* The longest delay and the highest count of N limiters, which are the new one's from now on (on
 * failure they stay the caller's). */
KINF_API int kinf_limiter_max_of(struct kinf_limiter *const *limiters, size_t n,
	struct kinf_limiter **ret_limiter);
/* What LIMITER says, up to MAX_NS. LIMITER as above. */
KINF_API int kinf_limiter_with_max_wait(struct kinf_limiter *limiter, int64_t max_ns,
	struct kinf_limiter **ret_limiter);
/* The longer of 5 ms to 1000 s for each key and a bucket of 10 a second, 100 at once, for all. */
KINF_API int kinf_limiter_default_controller(struct kinf_clock *clock,
	struct kinf_limiter **ret_limiter);
/* 1 ms to 1000 s for each key. */
KINF_API int kinf_limiter_default_item_based(struct kinf_limiter **ret_limiter);

KINF_API int kinf_limiter_when(struct kinf_limiter *limiter, const void *key, size_t size,
	int64_t *ret_ns);
KINF_API void kinf_limiter_forget(struct kinf_limiter *limiter, const void *key, size_t size);
KINF_API uint64_t kinf_limiter_num_requeues(struct kinf_limiter *limiter, const void *key,
	size_t size);

/* ---- the same for many ---- */

typedef int kinf_piece_fn(void *arg, size_t piece);
/* Calls FN for the pieces 0 to PIECES - 1, each once, CHUNK of them at a time (0: 1), by up to
 * WORKERS threads, the calling one among them. The first non-zero result ends it: no piece is begun
 * after that, and it is returned when all threads have ended. Without memory for as many threads it
 * is done by fewer. */
KINF_API int kinf_parallelize(unsigned workers, size_t pieces, size_t chunk, kinf_piece_fn *fn,
	void *arg);

/* ---- informers ---- */

/*
 * client-go's informer without threads of its own: each handler gets every object there is as on_add
 * with `initial` set, on_sync, then exactly what comes after, in order for each object.
 *
 *	struct kinf_informer_options options = {.size = sizeof(options), .cursor = "my-controller"};
 *	kinf_informer_new(k, "pods", &options, &informer);
 *	struct kinf_handler_options pods = {.size = sizeof(pods), .on_add = ..., .on_update = ...};
 *	kinf_informer_add_handler(informer, &pods, &handler);
 *	kinf_informer_run(informer, stop_fd);       (or: poll kinf_informer_fd, kinf_informer_dispatch)
 *	kinf_informer_free(&informer);
 *
 * Callbacks run inside kinf_informer_dispatch and nowhere else, one at a time. What they are given is
 * borrowed until they return; the cache holds at least that change when they run, so a snapshot taken
 * or renewed in one shows it. A callback may add and remove handlers, stop or free the informer; it may
 * not dispatch or commit. Each handler has its own position in the log: a slow one delays those of the
 * same informer, costs no memory, and is told when it has fallen behind what is kept (on_lapped). Use
 * an informer for each thread that shall not wait for others.
 *
 * An informer and its handlers are used by one thread at a time (but kinf_informer_stop), and closed
 * before their struct kinf.
 */
struct kinf_informer;
struct kinf_handler;

enum kinf_informer_flags {
	/* After a lapse the library tells the difference itself, instead of on_lapped and everything
	 * anew: on_add, on_update (old is NULL) for what has another version, on_delete (final state
	 * unknown, the key alone) for what is gone. Costs some 30 bytes and the key for each object. */
	KINF_TRACK_KEYS = 1,
	/* The cursor is written by kinf_informer_commit alone, not after each dispatch. */
	KINF_COMMIT_BY_HAND = 2,
	/* resync_ms counts, also when it is 0: none, whatever kinf.yaml says of the feed. */
	KINF_OWN_DEFAULT_RESYNC = 4
};

struct kinf_informer_options {
	uint32_t size; /* sizeof(struct kinf_informer_options) */
	uint32_t flags;
	/* Name of a cursor: the handlers that are there before the first dispatch go on after what was
	 * committed under it last, by this process or another; NULL: from the initial state. At least
	 * once: what was handed out and not committed comes again. One informer at a time per name. */
	const char *cursor;
	/* Likewise after this event number, without an initial state. 0: with one. Not with a cursor. One
	 * from before the first list of what the feed is now is a lapse. */
	uint64_t from;
	/* Resync: on_update(same, same) for every object, from the cache. What handlers get that do not
	 * ask; and how often it is looked whose is due, which the handlers before the first dispatch
	 * can make shorter. 0: the feed's `resync` in kinf.yaml, as it is at the time: a change of it
	 * counts a second later. At least 1000. */
	uint64_t resync_ms;
	/* Each look is later by up to this share of its period. 0: none, but 10 where the period is the
	 * feed's, which all programs of the machine are told at once. */
	uint32_t resync_jitter_percent;
	uint32_t reserved;
	/* State of each feed behind the name (kinf_feed_status): at first, then when it is another. */
	void (*on_state)(void *arg, const struct kinf_feed_status *status);
	void *arg;
};

enum kinf_handler_flags {
	KINF_OWN_RESYNC = 1 /* resync_ms counts, also when it is 0: none for this handler */
};

/* Callbacks that are NULL are not called. */
struct kinf_handler_options {
	uint32_t size; /* sizeof(struct kinf_handler_options) */
	uint32_t flags;
	void *arg;
	/* INITIAL: of the state the handler begins with. */
	void (*on_add)(void *arg, const struct kinf_object *object, int initial);
	/* OLD is the state before; the same object in a resync; NULL where it is not known any more
	 * (KINF_TRACK_KEYS). Another uid: deleted and made anew in between. */
	void (*on_update)(void *arg, const struct kinf_object *old, const struct kinf_object *object);
	/* The last state known; FINAL_STATE_UNKNOWN: found missing by a list, changes before that may
	 * not have been seen. Then body is NULL where even the last state is not kept any more. */
	void (*on_delete)(void *arg, const struct kinf_object *object, int final_state_unknown);
	/* The initial state is complete, at first and after each lapse. */
	void (*on_sync)(void *arg);
	/* The position is no longer kept, or the feeds are others: all objects follow as initial ones,
	 * then on_sync; what did not come again is gone. */
	void (*on_lapped)(void *arg);
	/* NULL: all objects. Its feed, limit, order and token mean nothing here. A change that crosses it
	 * is an add, or a delete with the last state inside. */
	const struct kinf_query *filter;
	uint64_t resync_ms; /* with KINF_OWN_RESYNC; at least 1000 */
};

/* FEED as in kinf_get. KINF_NO_FEED says what to add to the configuration. A store that has nothing of
 * it yet will do. */
KINF_API int kinf_informer_new(struct kinf *kinf, const char *feed,
	const struct kinf_informer_options *options, struct kinf_informer **ret_informer);
KINF_API void kinf_informer_free(struct kinf_informer **informer);

/* At any time but after the end (-ECANCELED). The handle is valid until it is removed or the informer
 * freed. The same callbacks may be added many times; each is a handler of its own. */
KINF_API int kinf_informer_add_handler(struct kinf_informer *informer,
	const struct kinf_handler_options *options, struct kinf_handler **ret_handler);
/* After it returns no callback of it begins. KINF_NOT_FOUND: it is none of this informer's (any more). */
KINF_API int kinf_informer_remove_handler(struct kinf_informer *informer,
	struct kinf_handler *handler);

/* 1: on_add has returned for all of the initial state. 0 again from a lapse to the next on_sync. */
KINF_API int kinf_handler_synced(const struct kinf_handler *handler);
/* The event number up to which it has examined the feed; 0 before it has begun. */
KINF_API uint64_t kinf_handler_event(const struct kinf_handler *handler);

/* Readable whenever there may be something to dispatch, resyncs included; for poll and its like, never
 * to be read. The same one for the informer's life. */
KINF_API int kinf_informer_fd(struct kinf_informer *informer);

/* Runs at most MAX callbacks (0: as many as there is work for; one more when a handler that goes on
 * from a position is told on_sync) and returns how many, or an error; then calling it again goes on.
 * KINF_NO_FEED: the feed was taken out of the configuration. KINF_SNAPSHOT_EXPIRED: somebody wrote the
 * copy that is read, so what this dispatch has told last may be wrong; the next one begins with a
 * lapse. */
KINF_API int kinf_informer_dispatch(struct kinf_informer *informer, int max);

/* Dispatches and sleeps until STOP_FD (-1: none) is readable or kinf_informer_stop was called: 0; or
 * until an error. */
KINF_API int kinf_informer_run(struct kinf_informer *informer, int stop_fd);

/* Ends it for good; from any thread, callback or signal handler. Handlers can still be removed. In the
 * child of a fork it does nothing. */
KINF_API void kinf_informer_stop(struct kinf_informer *informer);

enum kinf_informer_phase {
	KINF_INFORMER_NEW = 0, /* nothing was dispatched yet */
	KINF_INFORMER_STARTED = 1,
	KINF_INFORMER_STOPPED = 2
};
KINF_API int kinf_informer_phase(const struct kinf_informer *informer);

/* Everything handed out so far counts as handled: writes the cursor. 0; KINF_AGAIN: a handler is not
 * synced, so there is no position to go on from yet; -EBUSY inside a callback. */
KINF_API int kinf_informer_commit(struct kinf_informer *informer);

/* ---- history ---- */

struct kinf_change {
	const char *type;  /* ADDED, MODIFIED, DELETED */
	uint64_t event;
	uint64_t time_ns;  /* CLOCK_REALTIME when it was recorded */
	struct kinf_object object; /* DELETED: the last state */
	int final_state_unknown;
	int reserved;
};

/* What the store keeps of one object's past, oldest first: the state from before the retained events if
 * there was one (its type is what made it), then each change. FN's non-zero result ends the walk and
 * is the result. KINF_NOT_FOUND: nothing is kept of it. Reads the retained log once. */
typedef int kinf_change_fn(void *arg, const struct kinf_change *change);
KINF_API int kinf_history(struct kinf_snapshot *snapshot, const char *feed, const char *namespace_,
	const char *name, kinf_change_fn *fn, void *arg);

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif

#endif
