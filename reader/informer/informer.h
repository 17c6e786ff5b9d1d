/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files behind the informers of kinf.h share.
 *
 *	informer         the handles: handlers come and go, dispatch, run, stop
 *	informer_feeds   which feeds stand behind the name, and how they are
 *	informer_cursor  the position that survives the process
 *	informer_resync  whose period counts, and who is due
 *	informer_wake    the descriptor to poll
 *	handler          one handler: its walk (store/read/follow.h), what of it becomes which callback
 *	handler_keys     what it was told, for KINF_TRACK_KEYS
 *	resync           when everything is told once more
 */
#ifndef READER_INFORMER_H
#define READER_INFORMER_H

#include "reader/filter.h"
#include "reader/handle.h"
#include "reader/informer/handler_keys.h"
#include "reader/informer/resync.h"
#include "store/read/follow.h"

#define KINF_INFORMER_MAGIC 0x6b696e72u
#define KINF_HANDLER_MAGIC  0x6b68616eu

struct kinf_handler {
	uint32_t magic;
	struct kinf_informer *informer;
	struct kinf_handler *next;
	struct kinf_handler_options options; /* its filter: not the caller's any more */
	struct filter filter;
	bool filtered, has_indexes;
	bool removed;      /* lives on until no dispatch is under way */
	bool early;        /* was there before the first dispatch: begins where the cursor says */
	struct follow *follow; /* NULL: not begun */
	bool informed;     /* it was given something, so a lapse has to be reported */
	bool lapse_owed;
	/* KINF_TRACK_KEYS, else NULL. */
	struct handler_keys *keys;
	bool keys_known;   /* they are all it was told; false: it went on from a position, and they are
	                      filled beside the changes */
	bool replay;       /* a lapse is being told as differences */
	bool sweep;        /* what the replay has not shown is being told as deleted */
	size_t sweep_at;
	bool filling;      /* the keys, by a resync that is not told */
	bool sync_owed;    /* it goes on from a position: nothing but on_sync comes first */
	uint8_t journal[16]; /* that its seqs are of */
	struct resync_handler resync;
	bool resync_owed;
	int error;         /* why its walk can't begin; 0: it can */
	uint64_t retry_ns; /* it is not tried before this time (monotonic) */
	bool failed;       /* in this dispatch: it gets no more turns */
};

/* The descriptor to poll: an epoll of the processor's doorbell, a timer, and the stop. */
struct wake {
	int epoll, timer, stop, bell;
	uint64_t tried_ns; /* to connect to the doorbell */
	uint64_t pause_ns; /* before the next attempt */
	uint64_t armed_ns; /* the timer fires then (monotonic); 0: it does not */
};

struct informer_state {
	struct kinf_feed_info status;
	bool seen;
};

struct kinf_informer {
	uint32_t magic;
	struct kinf *kinf;
	char *feed;
	uint32_t flags;
	uint64_t from;
	void (*on_state)(void *arg, const struct kinf_feed_info *status);
	void *arg;
	struct kinf_handler *first; /* in the order they were added */
	struct resync resync;
	bool own_resync, own_jitter; /* the caller has said it: the feed's does not count */
	bool started, dispatching, running, freed;
	bool stopped; /* atomic: other threads may set it */
	struct wake wake;
	/* The feeds behind the name. */
	struct kinf_snapshot *snapshot;
	uint32_t *feeds; /* NULL: to be looked up */
	size_t n_feeds;
	uint8_t journal[16];
	uint64_t taken;  /* the event number when they were looked up */
	uint64_t listed; /* of the last of their first lists; UINT64_MAX: one is still to come */
	uint64_t checked_ns;
	struct informer_state *states;
	size_t n_states, states_room;
	/* The cursor. */
	char *cursor; /* its name, NULL: none */
	struct cursor_file begin; /* what it said; n 0: nothing */
	struct follow_position *saved, *now;
	size_t n_saved, saved_room, now_room;
	uint64_t saved_ns, written_ns; /* looked whether it is to be written, did so */
	bool handed_out; /* something, since it was written */
};

/* ---- handler ---- */

int handler_new(struct kinf_informer *informer, const struct kinf_handler_options *options,
	struct kinf_handler **ret_handler);
void handler_free(struct kinf_handler **handler);
/* Looks its filter's indexes up, when that was not done for these feeds. 0, AGAIN, ERR_NO_INDEX,
 * ERR_NO_FEED. */
int handler_find_indexes(struct kinf_handler *handler);
/* The feeds are known and its filter is has_indexes: makes its walk. */
int handler_begin(struct kinf_handler *handler);
/* All over again, from the initial state: the position is lost, or the feeds are others. */
void handler_lapse(struct kinf_handler *handler);
/* What it was told can't be relied on any more: it lapses, also where that could be told as differences.
 * ERROR. */
int handler_fail(struct kinf_handler *handler, int error);
/* One item of its walk. FOUND: *RET_CALLS callbacks were there for it, two when it is the first after a
 * position that has proved good; AGAIN, GONE, errors. The handler may be removed and the informer freed in the callback, not before this ends. */
int handler_next(struct kinf_handler *handler, int *ret_calls);
bool handler_is_synced(const struct kinf_handler *handler);

/* ---- informer_feeds ---- */

/* 0: the feeds are known; AGAIN: nothing to follow yet; ERR_NO_FEED. */
int informer_find_feeds(struct kinf_informer *informer);
/* Now and then: GONE when another feed has come to stand behind the name. Tells the feeds' states. */
int informer_check_feeds(struct kinf_informer *informer, uint64_t now);
void informer_feeds_release(struct kinf_informer *informer);

/* ---- informer_resync ---- */

void informer_resync_init(struct kinf_informer *informer, const struct kinf_informer_options *options);
/* These feeds stand behind the name now: what the operator says of them is the default, unless the caller
 * has said one. */
void informer_resync_update(struct kinf_informer *informer, const struct feed_set *set);
/* H is about to be one of the handlers. */
void informer_resync_add(struct kinf_informer *informer, struct kinf_handler *h);
void informer_resync_check(struct kinf_informer *informer, uint64_t now);

/* ---- informer_cursor ---- */

int informer_cursor_load(struct kinf_informer *informer);
/* Where an early handler begins. NOT_FOUND: with the initial state; LAPPED: the cursor is of others. */
int informer_cursor_begin(struct kinf_informer *informer, struct follow_options *ret_options);
/* 0; AGAIN: a handler is not synced. */
int informer_cursor_save(struct kinf_informer *informer);
/* After a dispatch. */
int informer_cursor_save_when_due(struct kinf_informer *informer, uint64_t now);
void informer_cursor_release(struct kinf_informer *informer);

/* ---- informer_wake ---- */

int wake_open(struct wake *wake);
void wake_close(struct wake *wake);
/* Takes what has come. True: stop. */
bool wake_read(struct wake *wake);
/* Connects to the processor's doorbell when there is none. Before looking for what to do, so that what
 * comes after the look rings. Attempts that fail come after 1, 2, 4 .. 16 s. */
void wake_connect(struct wake *wake, int runtime_fd, uint64_t now);
/* The descriptor is readable at AT_NS (monotonic) at the latest; sooner when an earlier time was asked
 * for and has not been taken yet: a system call only for a time that comes before that. */
int wake_arm(struct wake *wake, uint64_t at_ns);
bool wake_has_bell(const struct wake *wake);
void wake_stop(struct wake *wake);

#endif
