/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was committed to the index, to the followers: entries of the event ring, one wake per batch.
 * A record that was applied is one entry; an applied list is one RING_LIST entry, its records are
 * read from the log. LIST_BEGIN is none: nobody may see anything of an open list.
 */
#ifndef PROCESSOR_PUBLISH_H
#define PROCESSOR_PUBLISH_H

#include "processor/processor.h"
#include "store/journal/journal.h"

#define EVENT_RING "event.ring"

struct publish;

/* A ring for the journal of UUID. One that is there already gets a new epoch, which sends followers
 * to the log: they find there what a killed processor committed and did not publish. */
int publish_open(const struct processor *p, const uint8_t uuid[16], struct publish **ret_publish);
void publish_close(struct publish **publish);

/* Collected until the commit. A NULL publish (an index that nobody reads yet) does nothing. */
void publish_record(struct publish *publish, const struct record *record);
void publish_list(struct publish *publish, const struct record *end, uint64_t begin);
/* The index was committed with `taken` = TAKEN. */
void publish_commit(struct publish *publish, uint64_t taken);
/* Before the work whose result will be published. */
void publish_announce(struct publish *publish);
/* Once a second: makes the ring if that has failed until now. */
void publish_retry(struct publish *publish);
void publish_heartbeat(struct publish *publish);

#endif
