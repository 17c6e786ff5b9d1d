/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One feed at work: does what the state machine (feed.h) says with HTTP, takes the answers apart
 * (list.h, watch.h), records them (record.h) and tells the machine what came of it. All of it
 * happens inside http_poll and in the calls below; nothing waits.
 */
#ifndef REFLECTOR_FEED_SESSION_H
#define REFLECTOR_FEED_SESSION_H

#include "reflector/cluster/discovery.h"
#include "reflector/feed/machine.h"
#include "reflector/wire/http.h"
#include "reflector/wire/warnings.h"
#include "reflector/wire/pace.h"
#include "reflector/record/record.h"

struct session;

/* What sessions share. The callbacks come from inside http_poll or session_work. */
struct session_shared {
	struct http *http;
	struct discovery *discovery;
	struct recorder *recorder;
	struct stats *stats;
	struct config_policy policy; /* may change between two turns */
	struct pace *pace;           /* of all sessions together */
	struct warnings *warnings;   /* of the server, to all of them */
	void *arg;
	/* The server could not be reached, or has not got the resource: is it still the same one? */
	void (*on_doubt)(void *arg, struct session *session, enum failure_kind kind);
	/* The server is in another past. */
	void (*on_forget)(void *arg, struct session *session);
	void *list_arg;
	/* A list is about to end: what belongs into the same transaction as its LIST_END. Negative:
	 * an error of the journal. */
	int (*on_list_end)(void *list_arg, struct session *session);
};

/* DEFINITION and CHECKPOINT are copied; SHARED is borrowed. */
int session_new(const struct session_shared *shared, const struct feed_definition *definition,
	const struct feed_checkpoint *checkpoint, uint32_t page_size, struct session **ret_runner);
void session_free(struct session **session);

/* The definition's texts live as long as the session; its name may change with session_rename. */
const struct feed_definition *session_definition(const struct session *session);
int session_rename(struct session *session, const char *name);
/* The journal's open transaction has this resync now. When that fails it is not known which one the
 * journal has: SESSION_NO_RESYNC in the definition. session_committed: it has not failed. */
#define SESSION_NO_RESYNC UINT64_MAX
void session_set_resync(struct session *session, uint64_t resync_ns);
void session_committed(struct session *session);
/* What counts from the next list on; whether the objects go when the resource has gone (whenGone). */
void session_tune(struct session *session, uint32_t page_size, bool drop_gone);
/* The server has no such resource any more, nor is there anything stored of it: GONE, and no objects.
 * 1, 0, or an error of the journal's. */
int session_is_void(struct session *session);
bool session_is_listed(const struct session *session);
/* The checkpoint that it went back to says that the feed is removed. */
bool session_is_removed(const struct session *session);

/* Its removal is in the open transaction: nothing may be written of it behind that, until session_rewind. */
void session_stop(struct session *session);

void session_start(struct session *session);
/* Time has passed; discovery has learnt something. */
void session_tick(struct session *session);
void session_discovered(struct session *session, int result);
/* A slice of what is to be done without waiting for the network: AGAIN, 0, or an error of the
 * journal's. */
int session_work(struct session *session);

/* Monotonic time at which session_tick is wanted, UINT64_MAX: not at all. */
uint64_t session_until(const struct session *session);
/* It stands in the queue for a list since that time, 0: it does not. */
uint64_t session_queued(const struct session *session);
void session_take_turn(struct session *session);
/* It is listing. */
bool session_is_listing(const struct session *session);

/* Monotonic time at which its next consistency check is due, UINT64_MAX: none is, or one is under way. */
uint64_t session_check_at(struct session *session);
void session_check_start(struct session *session);
bool session_is_checking(const struct session *session);

/* The journal's batch failed for the reason WHY, which is the feed's error until it is well again:
 * back to the checkpoint, and stop until session_resume. */
int session_rewind(struct session *session, const char *why);
void session_resume(struct session *session);
void session_relist(struct session *session);
/* What is too large may not be so any more: lists, if something was passed over. */
void session_retry_passed(struct session *session);

/* Closes a relist's bracket that was opened more than LIMIT_NS ago. */
int session_abandon_old(struct session *session, uint64_t limit_ns);
/* Seq before which an open relist's bracket begins, UINT64_MAX: none. */
uint64_t session_list_begin(const struct session *session);

/* Puts its row into the statistics when something changed. */
void session_report(struct session *session);

#endif
