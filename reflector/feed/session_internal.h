/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the session share; others use session.h.
 *
 *	session.c        the machine's actions, life, what the loop asks for
 *	session_call.c   one request: the answer taken apart, and how it ended
 *	session_check.c  the consistency check
 *	session_stream.c a list that comes as a stream and goes on as the watch
 *	session_drop.c   whenGone: drop
 *	session_probe.c  whether the server knows the RV that is watched from
 */
#ifndef REFLECTOR_FEED_SESSION_INTERNAL_H
#define REFLECTOR_FEED_SESSION_INTERNAL_H

#include "reflector/feed/consistency.h"
#include "reflector/feed/guard.h"
#include "reflector/feed/list.h"
#include "reflector/feed/session.h"
#include "reflector/wire/fetch.h"

#define SESSION_MAGIC 0x53455353u

/* Our own end of a call, given to http as the result of on_body. */
#define SESSION_STOP 1

struct session {
	uint32_t magic;
	const struct session_shared *shared;
	struct feed_definition definition;
	struct feed_machine feed;
	struct record_feed record;
	struct feed_action action; /* what is being done */
	struct buf list_rv;        /* finishing: the list is as of this */
	bool finishing;
	bool stopped;              /* until it is freed or rewound */
	struct guard guard;
	bool drop_gone;
	bool resync_open;          /* its resync is another one in the open transaction */
	bool dropping;             /* the resource has gone, and what is stored goes */
	bool troubled;             /* row.error counts until session_say_well, */
	bool failing;              /* and was said in the log */
	uint32_t said_kinds;       /* failures of these kinds are in the log */
	uint64_t passed_said; /* of record.passed_over, in the feed's error */
	uint64_t queued_ns;

	struct fetch *probe;
	struct consistency *check;
	uint64_t check_ns;     /* the next one's time; planned with ... */
	uint64_t check_period; /* ... this period, 0: not yet */

	struct http_call *call;
	struct list *list;
	struct watch *watch;
	struct buf error_body;
	bool refused;    /* the answer is no success: its body says why */
	bool unreadable; /* the call ended for an object that can't be read */
	bool has_next;   /* the machine wants something else: after the call */
	struct feed_action next;
	bool has_status; /* an ERROR event ended the stream */
	struct status status;
	uint64_t retry_after_ns;

	struct buf held; /* came behind a stream's end mark, while the list is being finished */
	bool over;       /* the stream ended meanwhile */

	struct stats_feed row;
	bool row_changed;
};

/* Tells the machine; the action is the caller's to do, or done at once. */
void session_step(struct session *session, struct feed_input in, struct feed_action *ret_action);
void session_step_and_do(struct session *session, struct feed_input in);
void session_perform(struct session *session, const struct feed_action *action);

/* The feed's error until session_say_well; a feed with an error is not live. */
void session_set_error(struct session *session, const char *text);
/* A failure into log, row and counters. */
void session_say_failed(struct session *session, const struct status *status);
void session_say_well(struct session *session);
/* What the watch passes over, and when that is over: a line in the log, the feed's error. */
void session_say_passed(struct session *session);
/* Says it and tells the machine. */
void session_fail(struct session *session, const struct status *status);
void session_fail_with(struct session *session, enum failure_kind kind, const char *text);

/* session_call.c: what cuts answers into items and events; sends the request of ACTION. */
int session_call_init(struct session *session);
void session_call_start(struct session *session, const struct feed_action *action);

/* Takes events; 0, STOP when the call is to end, or an error. */
int session_call_take(struct session *session, struct bytes bytes);
/* What follows from a call's end; RESULT and CODE are those of on_done. */
void session_call_end(struct session *session, int result, int code);
/* The end of an object that could not be read. */
int session_call_unreadable(struct session *session, const char *what);

/* session_check.c: a slice of a check, AGAIN while there is more. */
int session_check_work(struct session *session);

/* session_stream.c */
int session_stream_event(struct session *session, const struct watch_event *event);
/* BYTES have to wait until the list is finished; finishes it when too much would have to. */
int session_stream_hold(struct session *session, struct bytes bytes);
/* The list is finished: its stream goes on as the watch. */
void session_stream_go_on(struct session *session);

/* session_drop.c: a slice of it, AGAIN while there is more. */
void session_drop_begin(struct session *session);
int session_drop_work(struct session *session);

/* session_probe.c */
void session_probe_start(struct session *session);

#endif
