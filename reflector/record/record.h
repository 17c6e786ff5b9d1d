/* SPDX-License-Identifier: Apache-2.0 */
/*
 * API object -> record -> journal, then ring. The one place that decides what an answer of the API
 * server means for the journal:
 *
 *	seen for the first time            ADDED
 *	same uid, other RV                 MODIFIED; nothing when the RV is the same or (watch) older
 *	same name, other uid               DELETED of the old one (final state unknown), then ADDED
 *	DELETED by the watch               DELETED with the last state; not for another uid or an older RV
 *	missing in a list that ended       DELETED, final state unknown
 *
 * Everything goes into the journal's open transaction, with the feed's checkpoint; recorder_flush()
 * commits it and publishes what was appended. That also happens by itself when a batch is full, so
 * a transaction is bounded. After a failed commit nothing of the batch is there: every call then
 * answers with that error until recorder_recover(), and the feeds go back to their checkpoints.
 *
 * A list is a bracket (docs/architecture.md, Lists):
 *
 *	record_list_begin(feed);                an attempt begins with an empty memory of what was seen
 *	record_item(feed, item) ...             for every item of every page (or record_initial,
 *	                                        record_large_item)
 *	while (record_list_end(feed, rv) == AGAIN) ...   sweeps in slices, then LIST_END
 */
#ifndef REFLECTOR_RECORD_RECORD_H
#define REFLECTOR_RECORD_RECORD_H

#include "common/value/path.h"
#include "common/stats.h"
#include "reflector/feed/watch.h"
#include "store/journal/journal.h"
#include "store/ring/ring.h"

struct recorder;

/* Borrows all three; STATS may be NULL. */
int recorder_new(struct journal *journal, struct ring *ring, struct stats *stats,
	struct recorder **ret_recorder);
void recorder_free(struct recorder **recorder);

/* Commits what is open, if anything, then publishes it. */
int recorder_flush(struct recorder *recorder);
/* The error that made the batch fail, 0 when all is well; *RET_TEXT its sentence. */
int recorder_error(const struct recorder *recorder, const char **ret_text);
void recorder_recover(struct recorder *recorder);
/* The transaction to add to (feeds, names), opened when needed. */
int recorder_begin(struct recorder *recorder);
/* A change is coming that readers wait for: one of them comes awake while the batch is made (ring.h).
 * Nothing after the batch's first touch. Lists announce nothing: they are seen at their end. */
void recorder_announce(struct recorder *recorder);
/* Makes an error of the journal's the batch's: aborts. Returns it. */
int recorder_fail(struct recorder *recorder, int error);
/* The open transaction holds something that is neither record nor checkpoint: it is to be kept. */
void recorder_changed(struct recorder *recorder);
/* Records that others appended to the open transaction, up to the log's end, are to be published
 * with it: seqs from FIRST on. */
int recorder_publish_from(struct recorder *recorder, uint64_t first);

/* A feed as the recorder sees it. */
struct record_feed {
	struct recorder *recorder;
	uint32_t id;
	bool namespaced;
	char kind[72];         /* given to items that come without */
	char api_version[320];
	struct path **drop;
	size_t n_drop;

	enum feed_phase phase; /* of the checkpoint, as it will be committed */
	struct buf rv;
	bool listed;           /* first_list of the checkpoint is set */
	bool touched;          /* the checkpoint is to be written with the batch */
	bool attempt;          /* a list is being taken */
	uint64_t list_begin;   /* of the open bracket, 0: none */
	uint64_t list_ns;      /* when it was opened, CLOCK_REALTIME; stays when it is abandoned: a list is
	                          owed then. 0: none is */
	uint64_t list_mono_ns; /* the same, monotonic: the age of a bracket does not follow clock steps */
	uint64_t items;        /* of this attempt */
	uint64_t added;        /* of them, those that had no head */
	uint64_t passed_over;  /* times that an object was not taken in, since the attempt began */
	char passed_name[256]; /* the last such object, for people */
	char passed_why[160];
	bool passed_others;    /* it is not the only one */
	uint64_t attempt_seq;  /* first seq written by this attempt, UINT64_MAX: none; heads from there
	                          on are what it has seen */
	uint64_t *seen;        /* seq of the head of each object that the list has unchanged */
	size_t n_seen, seen_capacity;
	bool sorted;
	struct buf swept;      /* the sweep goes on with this key */
};

/* DEFINITION with its checkpoint as the journal holds them. Borrows RECORDER; releases with
 * record_feed_release. */
int record_feed_init(struct record_feed *feed, struct recorder *recorder,
	const struct feed_definition *definition, const struct feed_checkpoint *checkpoint);
void record_feed_release(struct record_feed *feed);
/* Takes the checkpoint as the journal has it (after a failed batch, or when one began). */
int record_feed_reload(struct record_feed *feed);

enum record_result {
	RECORD_TAKEN = 0,      /* or nothing had to be done */
	RECORD_UNREADABLE = 1, /* nothing was done; the sentence says why */
};

/*
 * ITEM of a list or object of a watch event. TOLERANT: what can't
 * be read is counted and passed over; the version we have of it, if any, stays.
 * enum record_result, or an error of the journal (see above), -ENOMEM.
 */
int record_item(struct record_feed *feed, struct bytes item, bool tolerant);
/* An item of which there is only the BEGINNING, as it is larger than we take: can't be read, unless it
 * is the version that we have. */
int record_large_item(struct record_feed *feed, struct bytes beginning, bool tolerant);
int record_event(struct record_feed *feed, const struct watch_event *event, bool tolerant,
	struct bytes *ret_rv);
/* The object's RV, by reading no more than is needed: RECORD_TAKEN, RECORD_UNREADABLE. */
int record_bookmark(struct record_feed *feed, struct bytes object, struct bytes *ret_rv);
void record_phase(struct record_feed *feed, enum feed_phase phase);

int record_list_begin(struct record_feed *feed);
/* The list that is being taken has the object whose head is at SEQ. */
bool record_was_seen(struct record_feed *feed, uint64_t seq);
/* The same for an event of a stream that is a list (watch-list) until its end mark: inside the bracket,
 * the checkpoint's RV stays. */
int record_initial(struct record_feed *feed, const struct watch_event *event, bool tolerant);
/* The list is whole and as of RV. AGAIN: call again, after a flush if you like; 0: it has ended. */
int record_list_end(struct record_feed *feed, struct bytes rv);
/* The journal holds an object of the feed: 1, 0, or an error. */
int record_has_objects(struct record_feed *feed);
/* Nanoseconds since the open bracket began. */
uint64_t record_list_age(const struct record_feed *feed);
/* Closes the bracket of a relist that does not come to an end. */
int record_list_abandon(struct record_feed *feed);

#endif
