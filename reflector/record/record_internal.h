/* SPDX-License-Identifier: Apache-2.0 */
/* What record.c (objects, watch events) and record_list.c (lists) share; others use record.h. */
#ifndef REFLECTOR_RECORD_RECORD_INTERNAL_H
#define REFLECTOR_RECORD_RECORD_INTERNAL_H

#include "reflector/record/object.h"
#include "reflector/record/record.h"

/* What is known of an object that came, and what the journal has under its key. */
struct arrival {
	struct object_identity identity;
	bool cut; /* larger than we take: only its beginning is there */
	char key[JOURNAL_KEY_MAX];
	size_t key_size;
	bool has_head;
	struct head head; /* uid and rv copied: an append would take them away */
	char head_uid[128];
	char head_rv[256];
};

struct bytes record_key(const struct arrival *arrival);
/* RECORD_TAKEN with identity, key and head; the key is there even when the rest is not. */
int record_arrive(struct record_feed *feed, struct bytes object, bool cut,
	struct arrival *arrival);
/* A DELETED event that is about the object we have. */
bool record_is_deletion(const struct arrival *arrival);
/* With the last state where it can be read, or is not needed: TOLERANT, or too large. */
int record_append_deleted(struct record_feed *feed, const struct arrival *arrival,
	struct bytes object, bool tolerant);
/* Passes over an event that says nothing new. */
int record_drop_event(struct record_feed *feed);
bool record_same_uid(const struct arrival *arrival);
/* A version that the journal does not have becomes a record. */
int record_append_version(struct record_feed *feed, const struct arrival *arrival,
	struct bytes object, uint64_t *ret_seq);
/* Ends the taking of an object with the result R: what can't be read is counted and, if TOLERANT,
 * passed over (RECORD_PASSED). */
int record_end(struct record_feed *feed, const struct arrival *arrival, int r, bool tolerant);

#endif
