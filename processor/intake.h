/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the journal's records, each once and in order. The delta ring only announces new records,
 * up to a seq; the log has the records, read in one walk. If the ring is missing or damaged, has
 * lapped the processor or has a new epoch, the intake notes the ring's tail, reads the log to its
 * end, and then follows the ring from that tail (docs/architecture.md, One ring and one word). It
 * drops ring entries with seqs already read.
 *
 *	intake_begin(intake);                        a snapshot of the journal
 *	while (intake_next(intake, &record) == FOUND) ...
 *	intake_end(intake, last seq committed in the index);
 *	intake_wait(intake, timeout);                no transaction is held here
 */
#ifndef PROCESSOR_INTAKE_H
#define PROCESSOR_INTAKE_H

#include "processor/processor.h"
#include "store/journal/journal.h"

struct intake;

/* Starts after TAKEN. Borrows P and JOURNAL. */
int intake_new(const struct processor *p, struct journal *journal, uint64_t taken,
	struct intake **ret_intake);
void intake_free(struct intake **intake);

/* Takes a snapshot of the journal if there are records. Returns: FOUND; AGAIN: none; LAPPED: the
 * log was trimmed beyond the position. */
int intake_begin(struct intake *intake);
/* Returns: FOUND; END for now. The record lives until intake_end(). */
int intake_next(struct intake *intake, struct record *ret_record);
/* Releases the snapshot; the next record is the one after TAKEN. */
void intake_end(struct intake *intake, uint64_t taken);

/* Returns a snapshot of the journal for other purposes, until intake_end() or intake_rest(). */
int intake_view(struct intake *intake, struct txn **ret_txn);
struct txn *intake_txn(struct intake *intake);
/* Releases the snapshot; the position stays. */
void intake_rest(struct intake *intake);

/* Returns the seq of intake_new() or the last intake_end(). */
uint64_t intake_taken(const struct intake *intake);
/* Returns true if the ring is followed: only the newest records are missing. */
bool intake_is_live(const struct intake *intake);

/* Waits for records. Returns: 0; AGAIN after TIMEOUT_MS. */
int intake_wait(struct intake *intake, int timeout_ms);

#endif
