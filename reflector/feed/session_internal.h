/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the runner share; others use runner.h.
 *
 *	runner.c        the machine's actions, life, what the loop asks for
 *	runner_call.c   one request: the answer taken apart, and how it ended
 *	runner_check.c  the consistency check
 *	runner_stream.c a list that comes as a stream and goes on as the watch
 *	runner_drop.c   whenGone: drop
 *	runner_probe.c  whether the server knows the RV that is watched from
 */
#ifndef REFLECTOR_FEED_SESSION_INTERNAL_H
#define REFLECTOR_FEED_SESSION_INTERNAL_H

#include "reflector/feed/consistency.h"
#include "reflector/feed/guard.h"
#include "reflector/feed/list.h"
#include "reflector/feed/session.h"
#include "reflector/wire/fetch.h"

#define RUNNER_MAGIC 0x52554e52u

/* Our own end of a call, given to http as the result of on_body. */
#define RUNNER_STOP 1

struct runner {
	uint32_t magic;
	const struct runner_shared *shared;
	struct feed_definition definition;
	struct feed feed;
	struct record_feed record;
	struct feed_action action; /* what is being done */
	struct buf list_rv;        /* finishing: the list is as of this */
	bool finishing;
	bool stopped;              /* until it is freed or rewound */
	struct guard guard;
	bool drop_gone;
	bool resync_open;          /* its resync is another one in the open transaction */
	bool dropping;             /* the resource has gone, and what is stored goes */
	bool troubled;             /* row.error counts until runner_say_well, */
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
void runner_step(struct runner *runner, struct feed_input in, struct feed_action *ret_action);
void runner_step_and_do(struct runner *runner, struct feed_input in);
void runner_perform(struct runner *runner, const struct feed_action *action);

/* The feed's error until runner_say_well; a feed with an error is not live. */
void runner_set_error(struct runner *runner, const char *text);
/* A failure into log, row and counters. */
void runner_say_failed(struct runner *runner, const struct status *status);
void runner_say_well(struct runner *runner);
/* What the watch passes over, and when that is over: a line in the log, the feed's error. */
void runner_say_passed(struct runner *runner);
/* Says it and tells the machine. */
void runner_fail(struct runner *runner, const struct status *status);
void runner_fail_with(struct runner *runner, enum failure_kind kind, const char *text);

/* runner_call.c: what cuts answers into items and events; sends the request of ACTION. */
int runner_call_init(struct runner *runner);
void runner_call_start(struct runner *runner, const struct feed_action *action);

/* Takes events; 0, STOP when the call is to end, or an error. */
int runner_call_take(struct runner *runner, struct bytes bytes);
/* What follows from a call's end; RESULT and CODE are those of on_done. */
void runner_call_end(struct runner *runner, int result, int code);
/* The end of an object that could not be read. */
int runner_call_unreadable(struct runner *runner, const char *what);

/* runner_check.c: a slice of a check, AGAIN while there is more. */
int runner_check_work(struct runner *runner);

/* runner_stream.c */
int runner_stream_event(struct runner *runner, const struct watch_event *event);
/* BYTES have to wait until the list is finished; finishes it when too much would have to. */
int runner_stream_hold(struct runner *runner, struct bytes bytes);
/* The list is finished: its stream goes on as the watch. */
void runner_stream_go_on(struct runner *runner);

/* runner_drop.c: a slice of it, AGAIN while there is more. */
void runner_drop_begin(struct runner *runner);
int runner_drop_work(struct runner *runner);

/* runner_probe.c */
void runner_probe_start(struct runner *runner);

#endif
