/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the runner share; others use runner.h.
 *
 *	runner.c        the machine's actions, life, what the loop asks for
 *	runner_call.c   one request: the answer taken apart, and how it ended
 *	runner_check.c  the consistency check
 *	runner_probe.c  whether the server knows the RV that is watched from
 */
#ifndef REFLECTOR_RUNNER_PARTS_H
#define REFLECTOR_RUNNER_PARTS_H

#include "reflector/consistency.h"
#include "reflector/wire/fetch.h"
#include "reflector/guard.h"
#include "reflector/list.h"
#include "reflector/runner.h"

#define RUNNER_MAGIC 0x52554e52u

struct runner {
	uint32_t magic;
	const struct runner_shared *shared;
	struct feed_definition definition;
	struct feed feed;
	struct record_feed record;
	struct feed_action action; /* what is being done */
	struct buf list_rv;        /* finishing: the list is as of this */
	bool finishing;
	struct guard guard;
	bool failing;              /* said so in the log */
	uint32_t said_kinds;       /* failures of these kinds are in the log */
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
/* Says it and tells the machine. */
void runner_fail(struct runner *runner, const struct status *status);
void runner_fail_with(struct runner *runner, enum failure_kind kind, const char *text);

/* runner_call.c: what cuts answers into items and events; sends the request of ACTION. */
int runner_call_init(struct runner *runner);
void runner_call_start(struct runner *runner, const struct feed_action *action);

/* runner_check.c: a slice of a check, AGAIN while there is more. */
int runner_check_work(struct runner *runner);

/* runner_probe.c */
void runner_probe_start(struct runner *runner);

#endif
