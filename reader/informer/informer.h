/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The internal header of the informer group:
 *
 *	informer.c         the handles: handlers come and go, dispatch, run, stop
 *	informer_feeds.c   the feeds that an informer's name stands for, and their states
 *	informer_cursor.c  the position that survives the process
 *	informer_resync.c  which resync period counts, and which handlers are due
 *	informer_wake.c    the descriptor to poll
 *	informer_handler.c one handler: its walk (store/read/follow.h) and its callbacks
 *
 * handler_keys (KINF_TRACK_KEYS) and resync (the arithmetic of periods) have headers of their
 * own.
 */
#ifndef READER_INFORMER_H
#define READER_INFORMER_H

#include <sys/epoll.h>

#include "common/buf.h"
#include "reader/filter.h"
#include "reader/handle.h"
#include "reader/informer/resync.h"
#include "store/read/cursor_claim.h"
#include "store/read/follow.h"

#define KINF_INFORMER_MAGIC 0x6b696e72u
#define KINF_HANDLER_MAGIC  0x6b68616eu
#define WAKE_EVENTS         4

struct kinf_handler {
	uint32_t magic;
	struct kinf_informer *informer;
	struct kinf_handler *next;
	struct kinf_handler_options options; /* without the filter; it is the caller's */
	struct filter filter;
	bool filtered;         /* there is a filter */
	bool has_indexes;      /* the filter knows the indexes of the present feeds */
	bool removed;          /* freed when the dispatch ends */
	bool early;            /* added before the first dispatch: begins where the cursor says */
	struct follow *follow; /* its walk; NULL: not begun */
	bool informed;         /* it was given something, so a lapse has to be reported */
	bool lapse_owed;       /* to be reported before anything else */
	/* KINF_TRACK_KEYS, else NULL. */
	struct handler_keys *keys;
	/* keys has all objects given to the handler. False after the handler continued from a
	 * position: then a resync fills keys while changes come */
	bool keys_known;
	/* a resync is under way; the handler gets nothing of it */
	bool filling;
	bool replay;      /* a lapse is being reported as differences */
	bool reconciling; /* objects missing from the replay are being reported as deleted */
	size_t reconcile_at;
	bool sync_owed; /* it continues from a position: on_sync comes first, without objects */
	uint8_t journal[16]; /* of the seqs in keys, and of: */
	/* an index with this applied seq shows all events given to the handler */
	uint64_t newest;
	struct resync_handler resync;
	bool resync_owed;
	int error;         /* why its walk can't begin; 0: it can */
	uint64_t retry_ns; /* it is not tried before this time (monotonic) */
	bool failed;       /* in this dispatch: it gets no more turns */
};

/* The descriptor to poll: an epoll of the reflector's doorbell, a timer, and the stop. */
struct wake {
	int epoll, timer, stop, bell;
	uint64_t tried_ns; /* to connect to the doorbell */
	uint64_t pause_ns; /* before the next attempt */
	uint64_t armed_ns; /* the timer fires then (monotonic); 0: it does not */
	struct epoll_event ready[WAKE_EVENTS]; /* result of wake_wait(), for wake_read() */
	int n_ready;
};

struct kinf_informer {
	uint32_t magic;
	struct kinf *kinf;
	char *feed;
	uint32_t flags;
	/* Atomic: other threads may set it. It does not lie beside flags of the informer's thread,
	 * because the compiler reads several of those at once. */
	uint32_t stopped;
	uint64_t from;
	void (*on_state)(void *arg, const struct kinf_feed_info *status);
	void *arg;
	struct kinf_handler *first; /* in the order they were added */
	struct resync resync;
	bool own_resync, own_jitter; /* the caller's, not the feed's */
	bool started, dispatching, running, freed;
	/* FREED before an event of its position was given: the cursor stays */
	bool left_out;
	struct wake wake;
	/* The feeds of the name. */
	struct kinf_snapshot *snapshot;
	uint32_t *feeds; /* NULL: to be found */
	size_t n_feeds;
	uint8_t journal[16];
	uint64_t last; /* the log's last event number when they were found */
	/* the event number with all of them listed; UINT64_MAX: not yet */
	uint64_t listed;
	uint64_t checked_ns;
	struct kinf_feed_info *states; /* as they were reported last */
	size_t n_states, states_room;
	/* The cursor. */
	char *cursor; /* its name, NULL: none */
	struct cursor_claim claim;
	struct cursor_file begin; /* its positions when the informer was made; n 0: none */
	struct follow_position *saved, *now;
	size_t n_saved, saved_room, now_room;
	uint64_t saved_ns, written_ns; /* the last check and the last write */
	bool handed_out;               /* callbacks ran since it was written */
};

/* ---- handler ------------------------------------------------------------ */

int handler_new(struct kinf_informer *informer, const struct kinf_handler_options *options,
	struct kinf_handler **ret_handler);
void handler_free(struct kinf_handler **handler);
/* Finds the indexes of its filter, unless done for these feeds. Returns: 0, AGAIN, ERR_NO_INDEX,
 * ERR_NO_FEED, ERR_SYNTAX (query_check_feed()). */
int handler_find_indexes(struct kinf_handler *handler);
/* Begins its walk; the feeds and the indexes of its filter are known. */
int handler_begin(struct kinf_handler *handler);
/* Makes it begin again with the initial state: the position is lost, or the feeds are others. */
void handler_lapse(struct kinf_handler *handler);
/* Makes it lapse after a missed or wrong item, when differences can't be computed. Returns
 * ERROR. */
int handler_fail(struct kinf_handler *handler, int error);
/* Reads one item of its walk and runs its callbacks. Returns: FOUND: *RET_CALLS callbacks ran, two
 * if on_sync came first; AGAIN; GONE; errors. A callback may remove the handler or free the
 * informer: both live until this returns. */
int handler_next(struct kinf_handler *handler, int *ret_calls);
bool handler_is_synced(const struct kinf_handler *handler);

/* ---- informer_feeds ----------------------------------------------------- */

/* Finds the feeds. Returns: 0; AGAIN: there is nothing to follow yet; ERR_NO_FEED. */
int informer_find_feeds(struct kinf_informer *informer);
/* Reports the feeds' states, at most once a second. Returns: 0; GONE: the name stands for another
 * feed now. */
int informer_check_feeds(struct kinf_informer *informer, uint64_t now);

/* ---- informer_resync ---------------------------------------------------- */

void informer_resync_init(
	struct kinf_informer *informer, const struct kinf_informer_options *options);
/* Takes the default period from the definitions of these feeds, unless the caller has given one. */
void informer_resync_update(struct kinf_informer *informer, const struct feed_set *set);
/* Computes the period of a new handler. */
void informer_resync_add(struct kinf_informer *informer, struct kinf_handler *h);
void informer_resync_check(struct kinf_informer *informer, uint64_t now);

/* ---- informer_cursor ---------------------------------------------------- */

/* Finds where an early handler begins. Returns: FOUND: at RET_OPTIONS; NOT_FOUND: with the initial
 * state; LAPPED: the cursor is of other feeds. */
int informer_cursor_begin(struct kinf_informer *informer, struct follow_options *ret_options);
/* Returns: 0; AGAIN: a handler is not synced. */
int informer_cursor_save(struct kinf_informer *informer);
/* Saves the cursor after a dispatch, if there is a reason to. */
int informer_cursor_save_when_due(struct kinf_informer *informer, uint64_t now);

/* ---- informer_wake ------------------------------------------------------ */

int wake_open(struct wake *wake);
void wake_close(struct wake *wake);
/* Reads all events. Returns whether the informer has to stop. */
bool wake_read(struct wake *wake);
/* Waits until there is something to read, or STOP_FD (-1: none) is readable. Returns: 0; END:
 * STOP_FD is; errors. */
int wake_wait(struct wake *wake, int stop_fd);
/* Connects to the reflector's doorbell unless it is connected. Comes before the search for work:
 * the bell rings for all later changes. Pauses 1, 2, 4 .. 16 s after failed attempts. */
void wake_connect(struct wake *wake, int runtime_fd, uint64_t now);
/* Makes the descriptor readable at AT_NS (monotonic) at the latest. An earlier time stays, so only
 * a still earlier one costs a system call. */
int wake_arm(struct wake *wake, uint64_t at_ns);

void wake_stop(struct wake *wake);

/* ---- informer_keys.c ---------------------------------------------------- */

/* The objects that a handler was given (KINF_TRACK_KEYS), so that after a lapse it can be given the
 * differences: for each object its key and the seq of the version given last. An object costs its
 * key and 23 to 45 bytes: 2 for the key's size, and 21 to 43 of the hash table. A replay marks all
 * objects unseen, handler_keys_put() marks one seen, and the unseen ones at its end no longer
 * exist. */
struct handler_keys;

int handler_keys_new(struct handler_keys **ret_keys);
void handler_keys_free(struct handler_keys **keys);

/* Notes that the object is at version SEQ. Returns: FOUND with the version before (0: of another
 * journal), NOT_FOUND when it is new, -ENOMEM. */
int handler_keys_put(
	struct handler_keys *keys, struct bytes key, uint64_t seq, uint64_t *ret_before);
void handler_keys_remove(struct handler_keys *keys, struct bytes key);

/* Marks all objects unseen. SAME_JOURNAL false: their seqs can't be compared any more. */
void handler_keys_begin_replay(struct handler_keys *keys, bool same_journal);
/* Removes an unseen object. *PLACE begins with 0 and advances. Returns: FOUND with its key,
 * valid until the next call; END. */
int handler_keys_next_unseen(struct handler_keys *keys, size_t *place, struct bytes *ret_key);

void handler_keys_clear(struct handler_keys *keys);

#endif
