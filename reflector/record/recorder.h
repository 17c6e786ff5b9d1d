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

/* An object that was passed over. */
struct passed {
	char *name; /* "namespace/name"; empty: it could not be read */
	size_t name_size;
	const char *why; /* in the memory of NAME */
	uint64_t limit;  /* maxObjectSize, which it exceeds; 0: it does not */
};

/* A feed as it is recorded: the checkpoint as it will be committed, and the list that is being
 * taken. record_feed_init() makes it. */
struct record_feed {
	struct recorder *recorder;
	uint32_t id;
	bool namespaced;
	char kind[72]; /* for items that come without */
	char api_version[320];
	struct path **drop;
	size_t n_drop, drop_room;

	enum feed_phase phase; /* of the checkpoint, as it will be committed */
	struct buf rv;
	bool listed;                /* first_list of the checkpoint is set */
	struct moment contact;      /* of the checkpoint; record_contact() sets it */
	struct moment list_contact; /* when the first page of this attempt came in */
	bool touched;               /* the batch writes the checkpoint */
	bool attempt;               /* a list is being taken */
	uint64_t list_begin;        /* of the open bracket, 0: none */
	uint64_t list_ns; /* when it was opened, CLOCK_REALTIME; stays when it is abandoned, because
			     the feed still needs a list. 0: it does not */
	uint64_t list_mono_ns; /* the same, monotonic: the age of a bracket does not follow clock
				  steps */
	uint64_t items;        /* of this attempt */
	uint64_t added;        /* of them, those that had no head */
	uint64_t item_max;     /* maxObjectSize of the running call; the session sets it */
	/* an object came that is of another kind or scope than the feed; for the session to
	 * reset */
	bool wrong_kind;
	/* the objects that the feed lacks, FEED_PASSED_MAX at most; since the attempt
	 * began, while a list is being taken */
	struct passed *passed;
	size_t n_passed, passed_room;
	bool passed_more; /* others also, or others were: only a list tells */
	/* the last one that was known has gone, but passed_more is set; for the session to reset */
	bool passed_unsure;
	uint64_t passed_changes; /* counts changes of these */
	bool passed_stored;      /* the journal says that something is passed over */
	uint64_t attempt_seq;    /* first seq written by this attempt, UINT64_MAX: none. A head from
				  there on is of an object that this attempt has seen */
	uint64_t *seen;          /* seqs of the heads of the objects that the list has unchanged */
	size_t n_seen, seen_room;
	bool sorted;      /* `seen` is */
	struct buf swept; /* the sweep goes on with this key */
};

/* Borrows all three; RING and STATS may be NULL. */
int recorder_new(struct journal *journal, struct ring *ring, struct stats *stats,
	struct recorder **ret_recorder);
/* Rings followers that poll a descriptor after each publish. NULL: there is no doorbell.
 * Borrowed. */
void recorder_set_doorbell(struct recorder *recorder, struct doorbell *doorbell);
void recorder_free(struct recorder **recorder);

/* Commits the open transaction, if it holds anything, then publishes it. */
int recorder_flush(struct recorder *recorder);
/* Flushes if the batch is full. */
int recorder_bound(struct recorder *recorder);
/* Returns until when the batch may stay open for more, monotonic: it holds a part of a list,
 * which no reader can give out before its end, and is not large. 0: it has to be committed. */
uint64_t recorder_gathers_until(const struct recorder *recorder);
/* Flushes if the batch holds a single record and nothing was committed for a millisecond: a change
 * that comes alone need not wait for the end of the loop's turn. The changes of a burst after its
 * first one share a commit. */
int recorder_flush_first(struct recorder *recorder);
/* Returns the error that made the batch fail, 0: it has not; *RET_TEXT is its sentence. */
int recorder_error(const struct recorder *recorder, const char **ret_text);
/* Takes records again after a failure. */
void recorder_recover(struct recorder *recorder);
/* Makes the batch fail with ERROR of the journal and its sentence, and aborts the transaction.
 * Returns ERROR. */
int recorder_fail(struct recorder *recorder, int error);

/* Opens the transaction, if it is not open, for callers who write into it themselves. */
int recorder_begin(struct recorder *recorder);
/* Notes that such a caller has changed something that is neither record nor checkpoint. */
void recorder_changed(struct recorder *recorder);
/* Publishes with the batch the records that such a caller has appended, from seq FIRST on. */
int recorder_publish_from(struct recorder *recorder, uint64_t first);

/* Appends RECORD. Returns: 0; ERR_TOO_LARGE, the record's own fault: nothing was done and the batch
 * goes on; an error that makes the batch fail. */
int recorder_append(struct recorder *recorder, const struct record *record, uint64_t *ret_seq);
/* Makes the body of OBJECT, which lives until the next call. Returns: 0; -ENOMEM, which makes the
 * batch fail; an error of json_parse(). */
int recorder_parse(struct recorder *recorder, struct bytes object,
	const struct json_options *options, struct bytes *ret_body);
/* Copies RV, of at most RV_MAX bytes. The copy lives until the next call. */
struct bytes recorder_keep_rv(struct recorder *recorder, struct bytes rv);
/* Writes FEED's checkpoint with this batch. */
void recorder_touch(struct recorder *recorder, struct record_feed *feed);
/* Forgets FEED, which is about to be released. */
void recorder_leave(struct recorder *recorder, struct record_feed *feed);
/* Wakes one reader while the batch is being made, as it is going to hold a change that readers wait
 * for (ring.h). Does nothing once the batch has begun. Lists are not announced: readers see them at
 * the end. */
void recorder_announce(struct recorder *recorder);

struct journal *recorder_journal(struct recorder *recorder);
struct stats *recorder_stats(struct recorder *recorder);

#endif
