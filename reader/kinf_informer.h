/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client-go's informer without threads of its own: each handler gets every existing object as
 * on_add with `initial` set, on_sync, then exactly the later changes, in order for each object.
 *
 *	struct kinf_informer_options options = {.size = sizeof(options), .cursor = "my-controller"};
 *	kinf_informer_new(k, "pods", &options, &informer);
 *	struct kinf_handler_options pods = {.size = sizeof(pods), .on_add = ..., .on_update = ...};
 *	kinf_informer_add_handler(informer, &pods, &handler);
 *	kinf_informer_run(informer, stop_fd);       (or poll kinf_informer_fd, and dispatch)
 *	kinf_informer_free(&informer);
 *
 * Callbacks run inside kinf_informer_dispatch and nowhere else, one at a time. Their arguments are
 * borrowed until they return. A snapshot taken or renewed in a callback shows at least the reported
 * change; the call waits for the index if it is behind (kinf_snapshot_open). A callback may add and
 * remove handlers, and stop or free the informer; it may not dispatch or commit, nor close the
 * struct kinf: the dispatch still needs it.
 *
 * Each handler has its own position in the log: a slow one delays the other handlers of its
 * informer and costs no memory. It gets on_lapped when its position is not kept any more
 * (reader/README.md). Use one informer for each thread that must not wait for others.
 *
 * An informer and its handlers are used by one thread at a time (except kinf_informer_stop), and
 * closed before their struct kinf. kinf.h includes this header.
 */
#ifndef KINF_INFORMER_H
#define KINF_INFORMER_H

#include <stdint.h>

#ifndef KINF_API
#define KINF_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct kinf;
struct kinf_feed_info;
struct kinf_object;
struct kinf_query;
struct kinf_informer;
struct kinf_handler;

enum kinf_informer_flags {
	/* After a lapse the handler gets the differences instead of on_lapped and all objects:
	 * on_add, on_update (old is NULL) for objects with another version, on_delete (final state
	 * unknown, the key alone) for removed objects. Costs some 30 bytes and the key for each
	 * object. on_lapped and all objects still come if the library does not know the objects
	 * given before: by an earlier process, if its cursor (or FROM) has lapsed, and after
	 * KINF_SNAPSHOT_EXPIRED. */
	KINF_TRACK_KEYS = 1,
	/* Only kinf_informer_commit writes the cursor, not each dispatch. */
	KINF_COMMIT_BY_HAND = 2,
	/* resync_ms counts even if it is 0: no resync, for any `resync` in kinf.yaml. */
	KINF_OWN_DEFAULT_RESYNC = 4
};

struct kinf_informer_options {
	uint32_t size; /* sizeof(struct kinf_informer_options) */
	uint32_t flags;
	/* Name of a cursor: handlers added before the first dispatch continue after the last
	 * position committed under this name, by this process or another one. NULL: they begin with
	 * the initial state. At least once: an uncommitted event comes again. One informer at a
	 * time for each name. */
	const char *cursor; /* one follower at a time has a cursor: else KINF_LOCKED */
	/* They continue after this event number, without an initial state; 0: with one. Not
	 * together with a cursor, since a cursor also knows the number's journal. A number from
	 * before the first list of the present feed, or after the newest event, is a lapse. */
	uint64_t from;
	/* Resync: on_update(same, same) for every object, from the cache. This is the period of
	 * handlers without one of their own, and the period of the checks for due handlers;
	 * handlers added before the first dispatch can make it shorter. 0: `resync` of the feed in
	 * kinf.yaml; a change of it counts a second later. At least 1000. */
	uint64_t resync_ms;
	/* Each check is delayed by up to this share of its period. 0: not delayed, but by 10 if
	 * the period is the feed's, since a change of it reaches all programs of the machine at
	 * once. */
	uint32_t resync_jitter_percent;
	uint32_t reserved;
	/* Gets the state of each feed of the name first, then whenever it has changed. */
	void (*on_state)(void *arg, const struct kinf_feed_info *status);
	void *arg;
};

enum kinf_handler_flags {
	KINF_OWN_RESYNC = 1 /* resync_ms counts, also when it is 0: none for this handler */
};

/* NULL callbacks are not called. */
struct kinf_handler_options {
	uint32_t size; /* sizeof(struct kinf_handler_options) */
	uint32_t flags;
	void *arg;
	/* INITIAL: the object is part of the handler's initial state. */
	void (*on_add)(void *arg, const struct kinf_object *object, int initial);
	/* OLD is the state before; in a resync the same object; NULL if it is not known any more
	 * (KINF_TRACK_KEYS). Another uid: the object was deleted and created again in between. */
	void (*on_update)(
		void *arg, const struct kinf_object *old, const struct kinf_object *object);
	/* The last known state. FINAL_STATE_UNKNOWN: a list found the object missing, so the
	 * last changes before the deletion may be unknown; the body is NULL if no state is
	 * retained. */
	void (*on_delete)(void *arg, const struct kinf_object *object, int final_state_unknown);
	/* The initial state is complete: the first one, and the one after each lapse. */
	void (*on_sync)(void *arg);
	/* The position is no longer retained, or the name stands for other feeds: all objects
	 * follow as initial ones, then on_sync. Objects missing in it no longer exist. */
	void (*on_lapped)(void *arg);
	/* The handler can't go on, e.g. KINF_NO_INDEX: its filter's index was removed. TEXT says
	 * why. Called once for a cause; when it is gone the handler begins again with a lapse.
	 * Other handlers are not concerned. NULL: kinf_informer_dispatch returns the error,
	 * after the other handlers had their turns. */
	void (*on_error)(void *arg, int error, const char *text);
	/* NULL: all objects. Its feed, limit, order, token and event are ignored. If a change
	 * makes an object enter the filter, the handler gets an add; if it leaves it, a delete
	 * with the last state inside. */
	const struct kinf_query *filter;
	uint64_t resync_ms; /* with KINF_OWN_RESYNC; at least 1000 */
};

/* FEED is the same as in kinf_get. With KINF_NO_FEED kinf_error() names the line to add to
 * kinf.yaml. The feed need not be listed yet. */
KINF_API int kinf_informer_new(struct kinf *kinf, const char *feed,
	const struct kinf_informer_options *options, struct kinf_informer **ret_informer);
KINF_API void kinf_informer_free(struct kinf_informer **informer);

/* Adds a handler, at any time before the informer stops (-ECANCELED). The handle is valid until
 * it is removed or the informer freed. The same callbacks may be added many times, each as
 * another handler. */
KINF_API int kinf_informer_add_handler(struct kinf_informer *informer,
	const struct kinf_handler_options *options, struct kinf_handler **ret_handler);
/* Removes a handler: none of its callbacks begins after this returns. KINF_NOT_FOUND: it is not,
 * or no longer, one of this informer's. Forget the handle then: a later handler may get its
 * address. */
KINF_API int kinf_informer_remove_handler(
	struct kinf_informer *informer, struct kinf_handler *handler);

/* Returns 1 when on_add has returned for all objects of the initial state; 0 from a lapse to its
 * on_sync. */
KINF_API int kinf_handler_synced(const struct kinf_handler *handler);
/* Returns the last event number examined by the handler; 0 before it has begun. */
KINF_API uint64_t kinf_handler_event(const struct kinf_handler *handler);

/* Returns a descriptor, readable whenever there may be something to dispatch, resyncs included; for
 * poll and the like, never to be read. It is the same one for the informer's life. */
KINF_API int kinf_informer_fd(struct kinf_informer *informer);

/* Runs at most MAX callbacks (0: as many as there is work for), not counting on_state and on_error.
 * One more runs if a handler continuing from a position gets on_sync. Returns how many ran, or an
 * error; the next call continues. KINF_NO_FEED: the feed was removed from the configuration.
 * KINF_SNAPSHOT_EXPIRED: the copy was written meanwhile, or a callback took so many minutes that
 * the daemons took its snapshot's space back, so the last callbacks may have got wrong data; the
 * next dispatch begins with a lapse. */
KINF_API int kinf_informer_dispatch(struct kinf_informer *informer, int max);

/* Dispatches and sleeps until STOP_FD (-1: none) is readable or kinf_informer_stop was called.
 * Returns 0, or the first error, -EBADF if STOP_FD is not open; but after KINF_SNAPSHOT_EXPIRED
 * it goes on with the lapse, unless a copy is read. */
KINF_API int kinf_informer_run(struct kinf_informer *informer, int stop_fd);

/* Stops the informer for good; from any thread, callback or signal handler. Handlers can still
 * be removed. Does nothing in the child of a fork. */
KINF_API void kinf_informer_stop(struct kinf_informer *informer);

enum kinf_phase {
	KINF_INFORMER_NEW = 0, /* nothing was dispatched yet */
	KINF_INFORMER_STARTED = 1,
	KINF_INFORMER_STOPPED = 2
};
KINF_API int kinf_informer_phase(const struct kinf_informer *informer);

/* Writes the cursor: everything handed out so far counts as handled. Returns: 0; KINF_AGAIN: a
 * handler is not synced, so there is no position to continue from yet; -EBUSY inside a callback. */
KINF_API int kinf_informer_commit(struct kinf_informer *informer);

#ifdef __cplusplus
}
#endif

#endif
