/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status page of a process: a small file in the runtime directory, mapped shared, written by
 * the process and readable for every reader of the store. It holds the counters of stats.def, the
 * state of the process in words, its last error, a heartbeat, and one row per feed. It is a report
 * only: readers show it and derive if a feed is live; no daemon reads another's page, and no data
 * depends on it. Layout: store/FORMAT.md, Status pages.
 */
#ifndef COMMON_STATS_H
#define COMMON_STATS_H

#include "common/bytes.h"

enum counter {
#define STAT(symbol, name, text) STAT_##symbol,
#include "common/stats.def"
#undef STAT
	STAT_MAX
};

#define STATS_FEEDS_MAX 4096
#define STATS_TEXT      240

struct stats;

/* For the writer: creates or takes over the file DIRECTORY_FD/NAME (mode 0640), sets start time and
 * pid and zeroes the counters. Takes a file over in place: readers with a map see the new process.
 * Allocates the file's blocks, so a full runtime directory is -ENOSPC now. On a file system without
 * that promise a store on a full disk ends the process (common/daemon/faults.h). */
int stats_create(int directory_fd, const char *name, struct stats **ret_stats);
/* For a writer that can't start: opens the previous process's page, to write the reason into it.
 * The rest stays: readers find a reason between two starts. Errors as of stats_open(). */
int stats_continue(int directory_fd, const char *name, struct stats **ret_stats);
/* For readers: maps the page read-only. -ENOENT; ERR_FORMAT, also during its creation. */
int stats_open(int directory_fd, const char *name, struct stats **ret_stats);
void stats_close(struct stats **stats);

void stats_add(struct stats *stats, enum counter counter, uint64_t n);
uint64_t stats_get(const struct stats *stats, enum counter counter);
const char *stats_name(enum counter counter);

void stats_heartbeat(struct stats *stats);
/* Set the state ("running", "waiting for disk space") and the last error, in words. */
void stats_set_state(struct stats *stats, const char *state);
void stats_set_error(struct stats *stats, const char *error);

/* A process without a heartbeat for this long hangs; each sets at least one a second. */
#define STATS_HEARTBEAT_LIMIT_NS (5 * UINT64_C(1000000000))

struct stats_process {
	int32_t pid;
	uint64_t start_ns;     /* CLOCK_REALTIME */
	uint64_t heartbeat_ns; /* proc_monotonic_ns() of the last heartbeat */
	bool responding;       /* heartbeat_ns is less than STATS_HEARTBEAT_LIMIT_NS ago */
	bool alive;            /* the page's process still runs */
	char state[STATS_TEXT];
	char error[STATS_TEXT];
	char check[STATS_TEXT]; /* the failed check, if it died of one */
};
int stats_process(const struct stats *stats, struct stats_process *ret_process);

/* Returns the buffer for check_note_into(); NULL without a page. */
char *stats_check_text(struct stats *stats, size_t *ret_size);

/* Sets the journal of the rows' feeds. During the filling of a new journal it differs from a
 * reader's snapshot. */
void stats_set_journal(struct stats *stats, const uint8_t uuid[16]);
/* Returns false while no journal is set. */
bool stats_journal(const struct stats *stats, uint8_t ret_uuid[16]);

/* An id with this bit is of no feed, but of an entry of the configuration without a feed yet, for
 * instance because the server lacks the resource. Its error reads "NAME: why"; a name has no
 * colon. */
#define STATS_PENDING 0x80000000u

/* One feed. */
struct stats_feed {
	uint32_t feed;
	uint32_t phase; /* enum feed_phase of store/journal/journal.h */
	/* CLOCK_REALTIME of this process's last completed list or accepted watch; 0: none */
	uint64_t heard_ns;
	uint64_t lists, watches, events, bytes, retries;
	uint64_t list_done;     /* objects of the running list so far */
	uint64_t list_total;    /* done + remainingItemCount, 0: unknown */
	char error[STATS_TEXT]; /* last error in words, "" if none */
};
/* Writes the feed's row, or adds one. Returns its number; -1 if there is no page or no free row. */
int stats_feed_set(struct stats *stats, const struct stats_feed *feed);
/* Return FOUND or NOT_FOUND. */
int stats_feed_remove(struct stats *stats, uint32_t feed);
int stats_feed_get(const struct stats *stats, uint32_t feed, struct stats_feed *ret_feed);
/* Reads row number I. Returns: FOUND, NOT_FOUND (not in use), END (no more rows). */
int stats_feed_at(const struct stats *stats, uint32_t i, struct stats_feed *ret_feed);

#endif
