/* SPDX-License-Identifier: Apache-2.0 */
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
	/* State of each feed behind the name (kinf_feed_info): at first, then when it is another. */
	void (*on_state)(void *arg, const struct kinf_feed_info *status);
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
	/* The handler can't go on, e.g. KINF_NO_INDEX: its filter's index was removed. TEXT says why.
	 * Called once for a cause; when it is gone the handler begins again with a lapse. Other
	 * handlers are not concerned. NULL: kinf_informer_dispatch returns the error, after the
	 * other handlers had their turns. */
	void (*on_error)(void *arg, int error, const char *text);
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

#ifdef __cplusplus
}
#endif

#endif
