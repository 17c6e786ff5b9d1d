/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by record.c (objects, watch events), record_list.c (lists) and record_passed.c (objects
 * passed over). */
#ifndef REFLECTOR_RECORD_RECORD_INTERNAL_H
#define REFLECTOR_RECORD_RECORD_INTERNAL_H

#include "reflector/record/object.h"
#include "reflector/record/record.h"

/* An arrived object, and the journal's head under its key. */
struct arrival {
	struct object_identity identity;
	struct bytes body; /* until the next object is parsed */
	bool is_parsed;    /* BODY is there */
	bool cut;          /* larger than maxObjectSize: only its beginning came */
	char key[JOURNAL_KEY_MAX];
	size_t key_size;
	bool has_head;
	struct head head; /* its uid and rv are copies: an append invalidates the journal's */
	char head_uid[128];
	char head_rv[256];
};

static inline struct bytes record_key(const struct arrival *arrival)
{
	return BYTES(arrival->key, arrival->key_size);
}

/* Objects without uids (metrics) count as the same. */
static inline bool record_same_uid(const struct arrival *arrival)
{
	return bytes_equal(arrival->head.uid, arrival->identity.uid);
}

/* Reads OBJECT's identity and finds its head. Returns: RECORD_TAKEN; RECORD_UNREADABLE or
 * RECORD_UNFIT, with the key if readable; an error. */
int record_arrive(struct record_feed *feed, struct bytes object, bool cut, struct arrival *arrival);
/* Returns true if a DELETED event ends the head's object. The key decides, not the uid: the
 * deletion is newer than the head, unless its RV shows a replay. */
bool record_is_deletion(const struct arrival *arrival);
/* Records the deletion, with the last state unless it has another uid, is too large or (TOLERANT)
 * unreadable. */
int record_append_deleted(struct record_feed *feed, const struct arrival *arrival,
	struct bytes object, bool tolerant);
/* Counts an event without news. */
int record_drop_event(struct record_feed *feed);
/* Records a new version. Returns: RECORD_TAKEN, RECORD_UNREADABLE, RECORD_UNFIT; an error. */
int record_append_version(struct record_feed *feed, const struct arrival *arrival,
	struct bytes object, uint64_t *ret_seq);
/* Results beside enum record_result. A list's item with the head's uid and RV, but another
 * content; */
#define RECORD_DIFFERS 2
/* a sound object unfit for any journal. */
#define RECORD_UNFIT 3
/*
 * Compares OBJECT, an item of a list with the head's uid and RV, with the stored version. The
 * server may give another content for the same RV after its upgrade, or a change of a custom
 * resource's schema or conversion. Another order of keys is no difference. A damaged version is
 * stored again. Returns: RECORD_TAKEN, also if nothing can be compared because OBJECT is cut;
 * RECORD_DIFFERS; RECORD_UNREADABLE, RECORD_UNFIT; an error of the journal.
 */
int record_compare(struct record_feed *feed, const struct arrival *arrival, struct bytes object);
/* Comes last for each object; R is the result so far. RECORD_UNFIT, and if TOLERANT also
 * RECORD_UNREADABLE: passes the object over. Returns R; RECORD_TAKEN for an object passed over. */
int record_end(struct record_feed *feed, const struct arrival *arrival, int r, bool tolerant);

/* Loads the objects passed over from the committed journal: of an earlier run, or before a failed
 * batch. */
int record_load_passed(struct record_feed *feed);
void record_clear_passed(struct record_feed *feed);
/* Puts the objects passed over into the batch. */
int record_store_passed(struct record_feed *feed);

#endif
