/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports to followers each batch that was committed to the index: entries in the event ring, and
 * one wake. An applied record is one entry. An applied list is one RING_LIST entry; followers read
 * its records from the log. LIST_BEGIN has no entry, because no reader sees anything of an open
 * list.
 */
#ifndef PROCESSOR_PUBLISH_H
#define PROCESSOR_PUBLISH_H

#include "processor/processor.h"
#include "store/journal/journal.h"

#define EVENT_RING "event.ring"

struct publish;

/* Makes the taken word, for an index that has taken everything up to TAKEN, and the ring for the
 * journal of UUID. One that is there gets a new epoch, which sends followers to the log, where they
 * find the records that a killed processor committed and did not publish. Without a ring (the
 * runtime directory is full) the index goes on. */
int publish_open(const struct processor *p, const uint8_t uuid[16], uint64_t taken,
	struct publish **ret_publish);
void publish_close(struct publish **publish);

/* Collect a record, or an applied list, until the commit. With a NULL publish all functions from
 * here on do nothing: the index is being built, and no reader uses it yet. */
void publish_record(struct publish *publish, const struct record *record);
void publish_list(struct publish *publish, const struct record *end, uint64_t begin);
/* Publishes what was collected: the index was committed with `taken` = TAKEN. */
void publish_commit(struct publish *publish, uint64_t taken);
/* Wakes one follower early, before the next batch is published (ring_announce()). */
void publish_announce(struct publish *publish);
/* Sets the ring's heartbeat, or makes the ring if that has failed until now. To be called once a
 * second. */
void publish_check(struct publish *publish);

#endif
