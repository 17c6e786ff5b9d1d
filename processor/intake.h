/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal's records, each once and in order. The delta ring says that and how far there is
 * something new; the records are always read from the log, in one walk. Where the ring is missing,
 * was lapped, restarted or damaged, the log is read to its end, after the ring's tail was noted
 * (docs/architecture.md, Rings); then the ring is followed, and what it tells of seqs already taken
 * is dropped.
 *
 *	intake_begin(intake);                        a snapshot of the journal
 *	while (intake_next(intake, &record) == FOUND) ...
 *	intake_end(intake, last seq that is committed in the index);
 *	intake_wait(intake, timeout);                no transaction is held here
 */
#ifndef PROCESSOR_INTAKE_H
#define PROCESSOR_INTAKE_H

#include "processor/processor.h"
#include "store/journal/journal.h"

#define DELTA_RING "delta.ring"

struct intake;

/* The first record is the one after TAKEN. Borrows P and JOURNAL. */
int intake_new(const struct processor *p, struct journal *journal, uint64_t taken,
	struct intake **ret_intake);
void intake_free(struct intake **intake);

/* FOUND: there are records. AGAIN: nothing new. LAPPED: the log was trimmed beyond our position. */
int intake_begin(struct intake *intake);
/* FOUND, END (of what is there now). The record lives until intake_end(). */
int intake_next(struct intake *intake, struct record *ret_record);
/* Gives the snapshot back; the next record is the one after TAKEN. */
void intake_end(struct intake *intake, uint64_t taken);

/* A snapshot of the journal for other purposes, until intake_end() or intake_rest(). */
int intake_view(struct intake *intake, struct txn **ret_txn);
struct txn *intake_txn(struct intake *intake);
/* Gives the snapshot back and stays where it is. */
void intake_rest(struct intake *intake);

/* The ring is followed: we are up to date but for the newest. */
bool intake_is_live(const struct intake *intake);

/* 0: look again. AGAIN: timeout. */
int intake_wait(struct intake *intake, int timeout_ms);

#endif
