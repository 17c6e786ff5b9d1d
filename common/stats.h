/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's status page: a small file in the runtime folder, mapped shared, that the process
 * writes and anybody may read. It holds the counters of stats.def, what the process is doing, its
 * last error, a heartbeat, and one row per feed. It is a report, never the truth: nothing is decided
 * by it. Layout in store/FORMAT.md, Status pages.
 *
 * One writing process (who holds the role's lock); in it, counters may be added from any thread,
 * everything else is one thread's. Numbers are relaxed atomics; a text, and a feed's whole row, are
 * copied under a sequence number of their own (odd while being written); readers retry, and take a
 * row that a dead writer left half-written for absent. Functions for the writer accept a NULL page
 * and then do nothing, so modules can count without knowing whether anybody listens.
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

#define STATS_FEEDS_MAX 1024
#define STATS_TEXT      240

struct stats;

/* Writer: creates or takes over DIRECTORY_FD/NAME (mode 0640), start time and pid set, counters 0.
 * Taken over in place: readers that have it mapped see the new process. The file's blocks are
 * allocated here, so a full runtime directory is -ENOSPC now and no SIGBUS later. */
int stats_create(int directory_fd, const char *name, struct stats **ret_stats);
/* Reader: maps it read-only. -ENOENT, ERR_FORMAT (also for a page that is just being made). */
int stats_open(int directory_fd, const char *name, struct stats **ret_stats);
/* A page in private memory, for tests. */
int stats_new(struct stats **ret_stats);
void stats_close(struct stats **stats);

void stats_add(struct stats *stats, enum counter counter, uint64_t n);
uint64_t stats_get(const struct stats *stats, enum counter counter);
const char *stats_name(enum counter counter);

void stats_heartbeat(struct stats *stats);
/* What the process is doing ("running", "waiting for disk space"); last error in words. */
void stats_set_state(struct stats *stats, const char *state);
void stats_set_error(struct stats *stats, const char *error);

/* A process without a heartbeat for this long hangs: each sets one a second at least. */
#define STATS_HEARTBEAT_LIMIT_NS (5 * UINT64_C(1000000000))

struct stats_process {
	int32_t pid;
	uint64_t start_ns;     /* CLOCK_REALTIME */
	uint64_t heartbeat_ns; /* proc_monotonic_ns() of the last heartbeat */
	bool responding;       /* that is less than STATS_HEARTBEAT_LIMIT_NS ago */
	bool alive;            /* the pid exists and is the process that made the page */
	char state[STATS_TEXT];
	char error[STATS_TEXT];
	char check[STATS_TEXT]; /* the failed check, when it died of one */
};
int stats_process(const struct stats *stats, struct stats_process *ret_process);

/* Where check_note_into() may write; NULL without a page. */
char *stats_check_text(struct stats *stats, size_t *ret_size);

/* The journal whose feeds the rows are of: another one than a reader's snapshot while a new journal is
 * being filled. */
void stats_set_journal(struct stats *stats, const uint8_t uuid[16]);
/* False while none is known. */
bool stats_journal(const struct stats *stats, uint8_t ret_uuid[16]);

/* An id with this bit is no feed's: the row is of an entry of the configuration that has none yet, for
 * instance since the server has no such resource. Its error reads "NAME: why"; a name has no colon. */
#define STATS_PENDING 0x80000000u

/* Per feed, by slot; a slot is found by feed id or newly taken (NULL page or full: -1). */
struct stats_feed {
	uint32_t feed;
	uint32_t phase;           /* enum feed_phase of store/journal/journal.h */
	uint64_t last_contact_ns; /* CLOCK_REALTIME of the last byte of an answer that was no refusal */
	uint64_t lists, watches, events, bytes, retries;
	uint64_t list_done;       /* objects of the running list so far */
	uint64_t list_total;      /* done + remainingItemCount, 0: unknown */
	char error[STATS_TEXT];   /* last error in words, "" when the feed is well */
};
int stats_feed_set(struct stats *stats, const struct stats_feed *feed);
/* FOUND, NOT_FOUND. */
int stats_feed_remove(struct stats *stats, uint32_t feed);
/* FOUND, NOT_FOUND. */
int stats_feed_get(const struct stats *stats, uint32_t feed, struct stats_feed *ret_feed);
/* The I-th row: FOUND, NOT_FOUND (not in use), END (there are no more). */
int stats_feed_at(const struct stats *stats, uint32_t i, struct stats_feed *ret_feed);

#endif
