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

struct runner;

/* What runners share. The callbacks come from inside http_poll or runner_work. */
struct runner_shared {
	struct http *http;
	struct discovery *discovery;
	struct recorder *recorder;
	struct stats *stats;
	struct config_policy policy; /* may change between two turns */
	struct pace *pace;           /* of all runners together */
	struct warnings *warnings;   /* of the server, to all of them */
	void *arg;
	/* The server could not be reached, or has not got the resource: is it still the same one? */
	void (*on_doubt)(void *arg, struct runner *runner, enum failure_kind kind);
	/* The server is in another past. */
	void (*on_forget)(void *arg, struct runner *runner);
	void *list_arg;
	/* A list is about to end: what belongs into the same transaction as its LIST_END. Negative:
	 * an error of the journal. */
	int (*on_list_end)(void *list_arg, struct runner *runner);
};

/* DEFINITION and CHECKPOINT are copied; SHARED is borrowed. */
int runner_new(const struct runner_shared *shared, const struct feed_definition *definition,
	const struct feed_checkpoint *checkpoint, uint32_t page_size, struct runner **ret_runner);
void runner_free(struct runner **runner);

/* The definition's texts live as long as the runner; its name may change with runner_rename. */
const struct feed_definition *runner_definition(const struct runner *runner);
int runner_rename(struct runner *runner, const char *name);
/* The journal's open transaction has this resync now. When that fails it is not known which one the
 * journal has: RUNNER_NO_RESYNC in the definition. runner_committed: it has not failed. */
#define RUNNER_NO_RESYNC UINT64_MAX
void runner_set_resync(struct runner *runner, uint64_t resync_ns);
void runner_committed(struct runner *runner);
/* What counts from the next list on; whether the objects go when the resource has gone (whenGone). */
void runner_tune(struct runner *runner, uint32_t page_size, bool drop_gone);
/* The server has no such resource any more, nor is there anything stored of it: GONE, and no objects.
 * 1, 0, or an error of the journal's. */
int runner_is_void(struct runner *runner);
bool runner_is_listed(const struct runner *runner);
/* The checkpoint that it went back to says that the feed is removed. */
bool runner_is_removed(const struct runner *runner);

/* Its removal is in the open transaction: nothing may be written of it behind that, until runner_rewind. */
void runner_stop(struct runner *runner);

void runner_start(struct runner *runner);
/* Time has passed; discovery has learnt something. */
void runner_tick(struct runner *runner);
void runner_discovered(struct runner *runner, int result);
/* A slice of what is to be done without waiting for the network: AGAIN, 0, or an error of the
 * journal's. */
int runner_work(struct runner *runner);

/* Monotonic time at which runner_tick is wanted, UINT64_MAX: not at all. */
uint64_t runner_until(const struct runner *runner);
/* It stands in the queue for a list since that time, 0: it does not. */
uint64_t runner_queued(const struct runner *runner);
void runner_take_turn(struct runner *runner);
/* It is listing. */
bool runner_is_listing(const struct runner *runner);

/* Monotonic time at which its next consistency check is due, UINT64_MAX: none is, or one is under way. */
uint64_t runner_check_at(struct runner *runner);
void runner_check_start(struct runner *runner);
bool runner_is_checking(const struct runner *runner);

/* The journal's batch failed for the reason WHY, which is the feed's error until it is well again:
 * back to the checkpoint, and stop until runner_resume. */
int runner_rewind(struct runner *runner, const char *why);
void runner_resume(struct runner *runner);
void runner_relist(struct runner *runner);
/* What is too large may not be so any more: lists, if something was passed over. */
void runner_retry_passed(struct runner *runner);

/* Closes a relist's bracket that was opened more than LIMIT_NS ago. */
int runner_abandon_old(struct runner *runner, uint64_t limit_ns);
/* Seq before which an open relist's bracket begins, UINT64_MAX: none. */
uint64_t runner_list_begin(const struct runner *runner);

/* Puts its row into the statistics when something changed. */
void runner_report(struct runner *runner);

#endif
