/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One feed at work. A session carries out the decisions of the state machine (machine.h): it sends
 * the request, cuts the answer into items and events (list.h, watch.h), records them (record.h) and
 * reports the outcome to the machine. All of this happens inside http_poll() and in the calls
 * below; nothing blocks. The set of feeds (feeds.h) owns the sessions and calls them in each turn
 * of the loop.
 *
 * The session group:
 *
 *	session.c       life, the machine's actions, the feed's error and status row
 *	session_call.c  one request: its answer taken apart, and how it ended
 *	session_work.c  ending a list, dropping a gone resource, consistency
 *	session_progress.c  progress on demand
 */
#ifndef REFLECTOR_FEED_SESSION_H
#define REFLECTOR_FEED_SESSION_H

#include "common/timer_queue.h"
#include "reflector/cluster/discovery.h"
#include "reflector/feed/machine.h"
#include "reflector/net/http.h"
#include "reflector/net/pace.h"
#include "reflector/record/record.h"

struct session;

/* Failures of the network concern all feeds at once: the log gets the first ones, `kinf status`
 * all. */
#define SESSION_OUTAGE_LINES 3
struct session_outage {
	unsigned failing; /* feeds with a logged failure */
};

/* Remembers the API server's Warning headers, repeated with every answer: the log gets each text
 * once. */
#define WARNINGS_MAX 64 /* texts: a server with ever new ones can't fill the log */
struct warnings {
	uint64_t said[WARNINGS_MAX]; /* hashes: two texts with one hash cost a line in the log */
	size_t n;
};

/* Shared by the sessions of one reflector. Callbacks come from inside http_poll or session_work. */
struct session_shared {
	struct http *http;
	struct discovery *discovery;
	struct recorder *recorder;
	struct stats *stats;
	struct config_policy policy; /* may change between two turns */
	struct pace *pace;
	struct warnings *warnings;
	/* a session touches it when session_work or session_settle has to do */
	struct timer_queue *timers;
	struct session_outage *outage; /* NULL: each feed's failures are logged */
	size_t *queued, *listing;      /* sessions waiting for FEED_ON_TURN; listing */
	void *arg;
	/* The server could not be reached, or lacks the resource: it may be another cluster by
	 * now. */
	void (*on_failure)(void *arg, struct session *session, enum failure_kind kind);
	/* A failed feed gets answers again. */
	void (*on_well)(void *arg, struct session *session);
	/* The server's newest state is older than the journal's: its etcd was restored. */
	void (*on_etcd_rollback)(void *arg, struct session *session);
	void *list_arg;
	/* Adds to the transaction of the LIST_END just recorded. Returns an error of the
	 * journal. */
	int (*on_list_end)(void *list_arg, struct session *session);
};

/* Copies DEFINITION and CHECKPOINT; borrows SHARED. */
int session_new(const struct session_shared *shared, const struct feed_definition *definition,
	const struct feed_checkpoint *checkpoint, uint32_t page_size, struct session **ret_session);
void session_free(struct session **session);

/* Its texts live as long as the session, except those that these change. */
const struct feed_definition *session_definition(const struct session *session);
int session_rename(struct session *session, const char *name);
int session_set_aliases(struct session *session, const char *aliases, const char *categories);

/* Notes that the open transaction sets this resync. */
void session_set_resync(struct session *session, uint64_t resync_ns);

/* Sets the page size of the next list, and whether a gone resource's objects are deleted (whenGone:
 * drop). */
void session_tune(struct session *session, uint32_t page_size, bool drop_gone);

/* Ends requests for good: the feed's removal is in the open transaction, and no record may follow
 * it. Only session_rewind undoes it. */
void session_stop(struct session *session);
/* Goes back to the checkpoint because the batch failed, with the sentence WHY as the feed's error,
 * and waits for FEED_ON_RESUME. */
int session_rewind(struct session *session, const char *why);

/* Discovery has learnt something, or failed with RESULT. */
void session_discovered(struct session *session, int result);
/* Passes on an event from outside: FEED_ON_START (begin at the checkpoint), FEED_ON_RESUME,
 * FEED_ON_RELIST (list again), or FEED_ON_TURN (begin the queued list). */
void session_on(struct session *session, enum feed_on on);
/* Lists again if an object was skipped for its size and the larger maxObjectSize may admit it. */
void session_list_what_fits(struct session *session);
/* Asks the server for the feed's RV, at most once a second: a reader waits for WANTED, and the
 * feed may not reach it by itself. */
void session_progress(struct session *session, uint64_t wanted);
/* Begins a consistency check, or the renewal of a quiet feed's RV. */
void session_check_start(struct session *session);

/* Does the work without network: goes on after a pause, and takes one slice of longer work.
 * Returns: 0, AGAIN if there is more to do, or an error of the journal. */
int session_work(struct session *session);
/* Writes the status row if it changed and puts the next time limit into the timer queue.
 * Returns true if session_work has more to do. */
bool session_settle(struct session *session);

/* Closes a relist's bracket open for more than LIMIT_NS. */
int session_abandon_old(struct session *session, uint64_t limit_ns);

/* ---- questions ---------------------------------------------------------- */

/* The feed after the open transaction: whether a list has ended (`listed`) or it is removed
 * (`phase`), and its open list bracket. */
const struct record_feed *session_record(const struct session *session);
/* Returns: 1 if the resource is gone and no object of it is stored, 0, or an error of the
 * journal. */
int session_is_void(struct session *session);
/* Returns the obstacle to a due list, NULL: none known. */
const char *session_obstacle(const struct session *session);
bool session_is_queued(const struct session *session);
/* Returns the number of events that came by watches, bookmarks not counted. */
uint64_t session_changes(const struct session *session);
/* Returns the place of a queued session: the smallest goes first. Feeds in use come before new
 * ones; after a list without a timely answer a feed comes last. Nobody waits for ever. */
uint64_t session_place(const struct session *session);
/* Returns whether the last request of a list was not answered in time. */
bool session_is_mute(const struct session *session);
bool session_is_listing(const struct session *session);
/* Monotonic time at which the server of the running list counts as silent; UINT64_MAX: never. */
uint64_t session_silent_at(const struct session *session);
/* Monotonic time of the next one, UINT64_MAX: none is due, or one is under way. */
uint64_t session_check_at(struct session *session);
bool session_is_checking(const struct session *session);

#endif
