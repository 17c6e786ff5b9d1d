/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set of feeds: gives the journal the feeds of the configuration. Feeds are added and removed
 * while the others run.
 *
 * A stored feed goes on without asking discovery first: a restart works while the API server is
 * away. Discovery is asked all the same, and if the name means another resource by now, the feed is
 * replaced. The replacement lists first, under the name with "~next" at its end; in the transaction
 * of its last LIST_END the names move and the old feeds are removed. So a reader by name never sees
 * a part of the list; it gets AGAIN until the processor has applied the list.
 *
 * A wildcard entry becomes one feed for each resource of discovery (wildcard.c).
 *
 * The feeds group:
 *
 *	feeds.c       life, turns, time limits, commits; lists again on demand
 *	configured.c  entries of the configuration, matched with the journal's feeds
 *	resolve.c     asks discovery for an entry's resource; finds or adds its feed
 *	replace.c     moves names, removes old feeds, replaces feeds of a restored etcd
 *	columns.c     columns of custom resources
 *	wildcard.c    entries for many resources
 */
#ifndef REFLECTOR_FEED_FEEDS_H
#define REFLECTOR_FEED_FEEDS_H

#include "common/config/config.h"
#include "common/daemon/control.h"
#include "reflector/feed/session.h"

struct feeds;

/* Borrows JOURNAL and the pointers of SHARED. The caller sets, in SHARED, the members up to
 * `policy`, arg, on_failure, on_well and on_etcd_rollback; the set of feeds sets the others. */
int feeds_new(
	struct journal *journal, const struct session_shared *shared, struct feeds **ret_feeds);
void feeds_free(struct feeds **feeds);

/* Takes over the feeds of CONFIG, borrowed until the next call. Errors are the journal's, or
 * -ENOMEM. */
int feeds_configure(struct feeds *feeds, const struct config *config);

/* HOLD: removes no feed missing in the configuration, because the file may be half written. */
void feeds_hold_removals(struct feeds *feeds, bool hold);

/* Writes changed resync times into the journal, where informers read them. Needs no API server.
 * Errors are the journal's. */
int feeds_write_resyncs(struct feeds *feeds);

/* Starts all feeds, once the journal is known to be this cluster's. */
void feeds_start(struct feeds *feeds);

/* Lists again all feeds called NAME, or of the resource NAME. RET_TEXT gets the result, or the
 * obstacle. Returns: 0; ERR_NO_FEED. */
int feeds_relist(struct feeds *feeds, const char *name, char ret_text[CONTROL_SIZE]);

/* Shows WHY, a trouble of the cluster, in the status rows of entries without a feed. */
void feeds_show_obstacle(struct feeds *feeds, const char *why);

/* Discovery has learnt something, or failed with RESULT. */
void feeds_discovered(struct feeds *feeds, int result);
/* Asks discovery again for every resource. */
void feeds_rediscover(struct feeds *feeds);

/* From on_etcd_rollback. Returns: true if the whole cluster is rolled back; false if only SESSION's
 * feed is: it is then listed into a new feed. */
bool feeds_take_etcd_rollback(struct feeds *feeds, struct session *session);

/* Does the work without network: time limits, turns to list, slices of work, moving names. Returns:
 * 0, AGAIN if there is more, or an error of the journal. */
int feeds_work(struct feeds *feeds);
/* Ends a turn: writes changed rows of the status page and takes note of new time limits. */
void feeds_settle(struct feeds *feeds);
/* Monotonic time of the next time limit, UINT64_MAX: none. */
uint64_t feeds_until(const struct feeds *feeds);

/* A reader waits for RV of the feed with that id (session_progress()). */
void feeds_progress(struct feeds *feeds, uint32_t feed, uint64_t rv);
/* Returns true while a consistency check runs; it may hold a transaction of the journal. */
bool feeds_is_checking(const struct feeds *feeds);

/* The open batch is committed. */
void feeds_committed(struct feeds *feeds);
/* The batch failed with the sentence WHY: all feeds go back to their checkpoints, until
 * feeds_resume. */
int feeds_rewind(struct feeds *feeds, const char *why);
void feeds_resume(struct feeds *feeds);

/* Closes relists open for more than LIMIT_NS. */
int feeds_abandon_old(struct feeds *feeds, uint64_t limit_ns);
/* Seq of the oldest open relist's LIST_BEGIN, UINT64_MAX: none is open. */
uint64_t feeds_list_begin(const struct feeds *feeds);

#endif
