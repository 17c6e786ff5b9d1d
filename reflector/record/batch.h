/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What record.c sees of the recorder: the open transaction and what is to be published when it is
 * committed. Not for others; they use record.h.
 */
#ifndef REFLECTOR_RECORD_BATCH_H
#define REFLECTOR_RECORD_BATCH_H

#include "common/value/json.h"
#include "reflector/record/record.h"

#define BATCH_RECORDS_MAX 4096
#define BATCH_BYTES_MAX   (8u << 20)

struct journal *recorder_journal(struct recorder *recorder);
struct stats *recorder_stats(struct recorder *recorder);
struct json_parser *recorder_parser(struct recorder *recorder);
/* Room for the body of the object at hand. */
struct buf *recorder_body(struct recorder *recorder);

/* Appends to the open transaction and notes the entry for the ring. ERR_TOO_LARGE is the record's
 * fault: nothing was done and the batch goes on. */
int recorder_append(struct recorder *recorder, const struct record *record, uint64_t *ret_seq);
/* The feed's checkpoint goes with this batch. */
void recorder_touch(struct recorder *recorder, struct record_feed *feed);
/* Flushes when the batch is full. */
int recorder_bound(struct recorder *recorder);
/* The feed is about to be gone. */
void recorder_leave(struct recorder *recorder, struct record_feed *feed);

#endif
