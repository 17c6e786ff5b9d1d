/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the records and checkpoints of one batch in the journal's open transaction, commits
 * them, and publishes the records on the delta ring.
 *
 *	recorder_append(recorder, &record, &seq)    a record
 *	recorder_touch(recorder, feed)              the feed's checkpoint is to be written
 *	recorder_flush(recorder)                    commit, publish, one wake
 *
 * A full batch is flushed by recorder_bound(), so a transaction is bounded. After a failure nothing
 * of the batch is in the journal: every call returns that error until recorder_recover(), and the
 * feeds go back to their checkpoints.
 */
#ifndef REFLECTOR_RECORD_RECORDER_H
#define REFLECTOR_RECORD_RECORDER_H

#include "common/stats.h"
#include "common/value/json.h"
#include "common/value/path.h"
#include "store/journal/journal.h"
#include "store/ring/doorbell.h"
#include "store/ring/ring.h"

#define RECORDER_RECORDS_MAX 4096
#define RECORDER_BYTES_MAX   (8u << 20)

struct recorder;

/* An object passed over. */
struct passed {
	char *name; /* "namespace/name"; empty: it could not be read */
	size_t name_size;
	const char *why; /* in the memory of NAME */
	uint64_t limit;  /* maxObjectSize, if exceeded; else 0 */
};

/* A feed being recorded: its next checkpoint, and its running list. record_feed_init() makes it. */
struct record_feed {
	struct recorder *recorder;
	uint32_t id;
	bool namespaced;
	char kind[72]; /* for items without one */
	char api_version[320];
	struct path **drop;
	size_t n_drop, drop_room;

	enum feed_phase phase; /* of the checkpoint, as it will be committed */
	struct buf rv;
	bool deletion;         /* the RV read from the checkpoint is that of a deletion */
	bool listed;           /* first_list of the checkpoint is set */
	struct moment contact; /* of the checkpoint; record_contact() sets it */
	bool touched;          /* the batch writes the checkpoint */
	bool attempt;          /* a list is being taken */
	uint64_t list_begin;   /* of the open bracket, 0: none */
	uint64_t list_ns; /* when it was opened, CLOCK_REALTIME; stays when it is abandoned, because
			     the feed still needs a list. 0: it does not */
	uint64_t list_mono_ns; /* the same, monotonic: the age of a bracket does not follow clock
				  steps */
	uint64_t items;        /* of this attempt */
	uint64_t added;        /* of them, those without a head */
	uint64_t item_max;     /* maxObjectSize of the running call; the session sets it */
	/* an object of another kind or scope came; for the session to reset */
	bool wrong_kind;
	/* the objects passed over, FEED_PASSED_MAX at most; during a list: since the attempt
	 * began */
	struct passed *passed;
	size_t n_passed, passed_room;
	bool passed_more; /* others also, or others were: only a list tells */
	/* the last known one has gone, but passed_more is set; for the session to reset */
	bool passed_unsure;
	uint64_t passed_changes; /* counts changes of these */
	bool passed_stored;      /* the journal has a row of them */
	/* first seq written by this attempt, UINT64_MAX: none. Heads from there on are of seen
	 * objects */
	uint64_t attempt_seq;
	uint64_t *seen; /* seqs of the heads of the list's unchanged objects */
	size_t n_seen, seen_room;
	bool sorted;             /* `seen` is */
	struct buf reconcile_at; /* reconciling goes on with this key */
};

/* Borrows all three; RING and STATS may be NULL. */
int recorder_new(struct journal *journal, struct ring *ring, struct stats *stats,
	struct recorder **ret_recorder);
/* Rings polling followers after each publish. NULL: there is no doorbell. Borrowed. */
void recorder_set_doorbell(struct recorder *recorder, struct doorbell *doorbell);
void recorder_free(struct recorder **recorder);

/* Commits the open transaction, if it holds anything, then publishes it. */
int recorder_flush(struct recorder *recorder);
/* Flushes if the batch is full. */
int recorder_bound(struct recorder *recorder);
/* Returns until when the batch may stay open for more, monotonic: it holds a small part of a list,
 * useless to readers before its end. 0: it has to be committed. */
uint64_t recorder_gathers_until(const struct recorder *recorder);
/* Flushes a single record after a millisecond without a commit: a change that comes alone need not
 * wait for the end of the loop's turn. A burst's changes after the first share a commit. */
int recorder_flush_first(struct recorder *recorder);
/* Returns the failed batch's error, 0: it has not failed; *RET_TEXT is its sentence. */
int recorder_error(const struct recorder *recorder, const char **ret_text);
/* Takes records again after a failure. */
void recorder_recover(struct recorder *recorder);
/* Makes the batch fail with ERROR of the journal and its sentence, and aborts the transaction.
 * Returns ERROR. */
int recorder_fail(struct recorder *recorder, int error);

/* Opens the transaction unless it is open, for direct writers. */
int recorder_begin(struct recorder *recorder);
/* Ends such a writer's change beside records and checkpoints, of result R: the batch has changed
 * (0), has not (END), or fails (an error). Returns: 0; R. */
int recorder_changed(struct recorder *recorder, int r);
int recorder_change_feed(
	struct recorder *recorder, uint32_t feed, const struct feed_change *change);
/* Publishes with the batch such a writer's records, from seq FIRST on. */
int recorder_publish_from(struct recorder *recorder, uint64_t first);

/* Appends RECORD. Returns: 0; ERR_TOO_LARGE, the record's own fault: nothing was done and the batch
 * goes on; other errors: the batch has failed. */
int recorder_append(struct recorder *recorder, const struct record *record, uint64_t *ret_seq);
/* Makes the body of OBJECT; it lives until the next call or flush. Returns: 0; -ENOMEM: the batch
 * has failed; an error of json_parse(). */
int recorder_parse(struct recorder *recorder, struct bytes object,
	const struct json_options *options, struct bytes *ret_body);
/* Copies RV, of at most RV_MAX bytes. The copy lives until the next call. */
struct bytes recorder_keep_rv(struct recorder *recorder, struct bytes rv);
/* Writes FEED's checkpoint with this batch. */
void recorder_touch(struct recorder *recorder, struct record_feed *feed);
/* Forgets FEED before its release. */
void recorder_leave(struct recorder *recorder, struct record_feed *feed);
/* Wakes one reader ahead of the batch's change (ring.h). Does nothing once the batch has begun.
 * Lists are not announced: readers see them at the end. */
void recorder_announce(struct recorder *recorder);

struct journal *recorder_journal(struct recorder *recorder);
struct stats *recorder_stats(struct recorder *recorder);

#endif
