/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns objects and events of the API server into records of the journal. The rules:
 *
 *	seen for the first time            ADDED
 *	same uid, other RV                 MODIFIED; nothing when the RV is (watch) older
 *	same uid, same RV                  nothing; in a list MODIFIED for another content
 *	same name, other uid               DELETED of the old one (final state unknown), then ADDED
 *	DELETED by the watch               DELETED with the last state; not for an older RV
 *	DELETED, other uid or none         the same of the known one (final state unknown)
 *	can't be stored                    nothing: passed over (record_passed.c)
 *	missing in a list that ended       DELETED, final state unknown
 *
 * Everything goes into the journal's open transaction, with the feed's checkpoint; recorder_flush()
 * commits it and publishes the records. That also happens by itself when a batch is full, so a
 * transaction is bounded. After a failed commit nothing of the batch is there: every call then
 * answers with that error until recorder_recover(), and the feeds go back to their checkpoints.
 *
 * A list is a bracket (docs/architecture.md, Lists):
 *
 *	record_list_begin(feed);                an attempt begins and remembers no item yet
 *	record_item(feed, item) ...             for every item of every page (or record_initial)
 *	while (record_list_end(feed, rv) == AGAIN) ...   deletes in slices what the list lacks, then
 *	                                        LIST_END
 *
 * The record group: record.c takes objects and watch events, record_list.c lists.
 */
#ifndef REFLECTOR_RECORD_RECORD_H
#define REFLECTOR_RECORD_RECORD_H

#include "reflector/feed/watch.h"
#include "reflector/record/recorder.h"

/* Makes FEED of DEFINITION and CHECKPOINT as the journal holds them. Borrows RECORDER. */
int record_feed_init(struct record_feed *feed, struct recorder *recorder,
	const struct feed_definition *definition, const struct feed_checkpoint *checkpoint);
void record_feed_release(struct record_feed *feed);
/* Goes back to the journal's checkpoint, after a failed batch. */
int record_feed_reload(struct record_feed *feed);

enum record_result {
	RECORD_TAKEN = 0,      /* recorded, or no news */
	RECORD_UNREADABLE = 1, /* nothing was done; the sentence says why */
};

/*
 * Each of these takes one object. An object unfit for the journal is counted and passed over, if
 * TOLERANT also an unreadable one: the journal's version, if any, stays. CUT: the item is larger
 * than maxObjectSize, and only its beginning is there. It can't be stored, unless the journal has
 * this version. Returns: enum record_result; an error of the journal. After an error the batch has
 * failed.
 */
int record_item(struct record_feed *feed, struct bytes item, bool cut, bool tolerant);
/* Takes an event of a stream before its end mark: it belongs to the list, and the RV stays. */
int record_initial(struct record_feed *feed, const struct api_event *event, bool tolerant);
int record_event(struct record_feed *feed, const struct api_event *event, bool tolerant,
	struct bytes *ret_rv);
/* Takes a bookmark's RV into the checkpoint. Returns: RECORD_TAKEN, RECORD_UNREADABLE. */
int record_bookmark(struct record_feed *feed, struct bytes object, struct bytes *ret_rv);
/* Moves the checkpoint on to RV: nothing of the feed lies between. */
void record_progress(struct record_feed *feed, struct bytes rv);
void record_phase(struct record_feed *feed, enum feed_phase phase);
/* Sets the arrival time of FEED's last item or event in the open batch. It is stored with the
 * batch, so the stored contact is never newer than the stored objects. */
void record_contact(struct record_feed *feed, const struct moment *moment);

/* Returns true if the feed lacks an object of the server, or has an older version of it, because it
 * can't be stored. */
static inline bool record_lacks(const struct record_feed *feed)
{
	return feed->n_passed || feed->passed_more;
}
/* Returns whether such an object could be stored if maxObjectSize were LIMIT. */
bool record_would_fit(const struct record_feed *feed, uint64_t limit);

int record_list_begin(struct record_feed *feed);
/* Takes the head of KEY. SEEN: the running list has its object. Returns true to go on. */
typedef bool record_head_fn(void *arg, struct bytes key, const struct head *head, bool seen);
/* Calls FN for a slice of FEED's heads from the key AT on, and moves AT after the last of them. An
 * empty AT is the first key. Returns: 0 after the last head; AGAIN while there are more; an error
 * of the journal: the batch has failed. */
int record_walk_heads(struct record_feed *feed, struct buf *at, record_head_fn *fn, void *arg);
/* Ends the whole list, as of RV. Returns: 0, AGAIN: call again, after a flush if you like; an error
 * of the journal. */
int record_list_end(struct record_feed *feed, struct bytes rv);
/* Closes the bracket of an endless relist. */
int record_list_abandon(struct record_feed *feed);
/* Returns: 1 if the journal holds an object of the feed, 0, or an error. */
int record_has_objects(struct record_feed *feed);

#endif
