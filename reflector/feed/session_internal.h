/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the session group (session.h). */
#ifndef REFLECTOR_FEED_SESSION_INTERNAL_H
#define REFLECTOR_FEED_SESSION_INTERNAL_H

#include "reflector/feed/consistency.h"
#include "reflector/feed/list.h"
#include "reflector/feed/session.h"
#include "reflector/net/fetch.h"

#define SESSION_MAGIC 0x53455353u
/* A living server sends the first bytes of a page much sooner, unless connecting takes as long. */
#define SESSION_SILENT UINT64_C(500000000)

/* The check of an ended list (holdMassDelete). */
struct list_doubt {
	bool looked;      /* this list was counted */
	bool held;        /* a list was held, so the next one passes */
	struct buf at;    /* the count goes on after this key */
	uint64_t heads;   /* counted so far, the list's new objects included */
	uint64_t missing; /* those of them missing in the list */
	uint64_t known;   /* objects before the list */
};

struct session {
	uint32_t magic;
	const struct session_shared *shared;
	struct timer_queue_item item;
	struct feed_definition definition;
	struct feed_machine machine;
	struct record_feed record;
	struct feed_action action; /* being carried out */
	uint64_t queued_ns;        /* since then waiting for FEED_ON_TURN; 0: not */
	bool stopped;              /* until it is freed or rewound */
	bool drop_gone;

	/* Work in slices. */
	bool finishing;     /* a list is being ended, */
	struct buf list_rv; /* as of this */
	struct list_doubt doubt;
	bool dropping; /* the resource is gone, and its objects are being deleted */
	struct consistency *check;
	uint64_t check_ns;     /* when the next one is due; */
	uint64_t check_period; /* planned with this period, 0: not planned */
	/* time to renew the RV unless it moves before; 0: not planned */
	uint64_t renew_ns;
	bool renewing; /* the check is for that */

	/* The request. */
	struct http_call *call;
	struct list *list;
	struct watch_stream *watch;
	struct buf error_body;
	bool refused;    /* the status is not 200: the body says why */
	bool unreadable; /* the call ended at an unreadable object */
	bool has_next; /* NEXT was decided inside a callback of the call, and is done when that ends
			*/
	struct feed_action next;
	bool has_status; /* an ERROR event ended the watch */
	struct status status;
	uint64_t retry_after_ns;
	uint64_t heard_ns; /* of a list: its last bytes; at first the request */
	bool mute;         /* the last request of a list was not answered in time */
	struct buf held;   /* came after a stream's end mark, while the list is being finished */
	struct moment held_at; /* when its first byte came */
	struct moment arrived; /* arrival of the present bytes */
	struct moment list_at; /* when the first page of the running list began to come */
	bool over;             /* the stream ended meanwhile */
	struct fetch *probe;
	bool spoke;       /* the watch has sent an event or a bookmark: its server knows the RV */
	uint64_t ends_ns; /* when the server ends the watch in good order */
	/* when a watch that spoke ended so; 0: another end or a failure came since */
	uint64_t vouched_ns;
	struct feed_progress *progress; /* NULL: none runs */
	uint64_t wanted;                /* the RV a reader waits for; 0: none */
	uint64_t progress_ns;           /* none is begun before this */

	uint64_t changes; /* events of watches */

	/* The status row and the log. */
	struct stats_feed row;
	bool row_changed;
	bool troubled; /* row.error counts until session_set_well */
	bool failing;
	bool counted; /* in session_outage.failing */
	/* the last watch was accepted and sent nothing of use: another acceptance is not enough */
	bool useless_watch;
	uint64_t well_ns; /* when a watch after a useless one has lived long enough; 0: none
			     runs */
	/* failures of these kinds are in the log; FAILURE_KIND_MAX: a held list */
	uint32_t logged_kinds;
	uint64_t passed_shown;  /* record.passed_changes as of row.error */
	bool lacking;           /* the log has the feed's skipped objects */
	uint64_t wrong_kind_ns; /* no question for an object of a wrong kind before this */
};

/* ---- session.c ---------------------------------------------------------- */

/* The row is to be written, and session_work or session_settle to be called. */
void session_touch(struct session *session);

/* Passes an event to the machine. The caller carries out the action, or session_step_and_do
 * does. */
void session_step(struct session *session, struct feed_input in, struct feed_action *ret_action);
void session_step_and_do(struct session *session, struct feed_input in);
void session_perform(struct session *session, const struct feed_action *action);

/* The watch is accepted, or a list has ended: this run has heard of the feed. */
void session_set_heard(struct session *session);
/* Sets the feed's error until session_set_well; a feed with an error is not live. */
void session_set_error(struct session *session, const char *text);
/* Ends the feed's error, unless its last watch was useless. */
void session_set_well(struct session *session);
/* Shows skipped objects, and their end, in error and log. */
void session_show_passed(struct session *session);
/* Reports a failure to log, row and machine. */
void session_fail(struct session *session, const struct status *status);
void session_fail_with(struct session *session, enum failure_kind kind, const char *text);

/* ---- session_call.c ----------------------------------------------------- */

int session_call_init(struct session *session);
/* Sends the request of ACTION. */
void session_call_start(struct session *session, const struct feed_action *action);
/* Counts the accepted list or watch of the present action. */
void session_count_accepted(struct session *session);
/* Goes on with a finished list's stream as the watch. */
void session_stream_go_on(struct session *session);

/* ---- session_work.c ----------------------------------------------------- */

/* Goes on with the machine's order to end a list, as of RV. */
void session_finish_begin(struct session *session, const char *rv);

/* Plans the next renewal: the feed's RV is new now. */
void session_plan_renewal(struct session *session, uint64_t now_ns);

/* Begins to delete a gone resource's objects, if whenGone says so. */
void session_drop_begin(struct session *session);

/* ---- session_progress.c ------------------------------------------------- */

/* Monotonic time of the next progress request, UINT64_MAX: none. */
uint64_t session_progress_at(const struct session *session);
void session_progress_start(struct session *session);
void progress_cancel(struct feed_progress **progress);

/* Returns whether the feed watches and its journal is still at FROM. If it is and RV is newer,
 * moves on to RV: nothing of the feed has changed between. */
bool session_move_on(struct session *session, struct bytes from, struct bytes rv);

#endif
