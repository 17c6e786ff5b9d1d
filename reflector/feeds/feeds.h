/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All feeds: what the configuration wants against what the journal has. Feeds are added and removed
 * while the others run.
 *
 * A feed that the configuration still means goes on, without asking discovery first, so that a
 * restart works while the API server is away; discovery is asked all the same, and if the resource
 * turns out to be another one, the feed is replaced. What replaces a feed of the same name lists
 * first, under the name with "~next" behind it; in the transaction of the last LIST_END of the new
 * ones their names move and the old ones are removed, so whoever reads by name never sees less.
 *
 * An entry that stands for many resources becomes one of each that discovery has (wildcard.c).
 */
#ifndef REFLECTOR_FEEDS_FEEDS_H
#define REFLECTOR_FEEDS_FEEDS_H

#include "common/config/config.h"
#include "reflector/feed/session.h"

struct feeds;

/* Borrows all of them; ON_DOUBT and ON_FORGET of SHARED are the caller's, the rest is filled in. */
int feeds_new(struct journal *journal, const struct session_shared *shared,
	struct feeds **ret_feeds);
void feeds_free(struct feeds **feeds);

/* Takes the configuration's feeds over (again). CONFIG is borrowed until the next call. Errors are the journal's, or -ENOMEM. */
int feeds_configure(struct feeds *feeds, const struct config *config);

/* What the configuration says to readers goes into the journal, where it says something else: resyncs.
 * Needs no API server. Errors are the journal's. */
int feeds_tell(struct feeds *feeds);

/* The journal was found to be of this cluster: feeds may begin. */
int feeds_start(struct feeds *feeds);

/* Discovery has learnt something, or failed. */
int feeds_discovered(struct feeds *feeds, int result);
/* What was resolved is to be asked again. */
void feeds_doubt(struct feeds *feeds);

/* RUNNER's server is in another past. True: all of the cluster is; else that feed alone is listed anew,
 * into a new feed. From ON_FORGET. */
bool feeds_take_etcd_rollback(struct feeds *feeds, struct session *session);

/* All that can be done without the network: time limits, places among the lists, slices of sweeps,
 * replacing. AGAIN: there is more. Errors are the journal's. */
int feeds_work(struct feeds *feeds);
/* Monotonic time of the next time limit, UINT64_MAX: none. */
uint64_t feeds_until(const struct feeds *feeds);

/* The batch that was open is committed; or failed for the reason WHY, and all go back to their
 * checkpoints. */
void feeds_committed(struct feeds *feeds);
int feeds_rewind(struct feeds *feeds, const char *why);
void feeds_resume(struct feeds *feeds);

int feeds_abandon_old(struct feeds *feeds, uint64_t limit_ns);
uint64_t feeds_list_begin(const struct feeds *feeds);
void feeds_report(struct feeds *feeds);
size_t feeds_count(const struct feeds *feeds);

#endif
