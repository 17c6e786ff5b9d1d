/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the journal is read while an index is filled from it. The objects lie there nearly in the
 * order of the fill, so the kernel's read-ahead is best, unless memory is too small for it: then
 * the same pages are read again and again. Once this thread has read more of the disk than the
 * journal is long, pages are read alone, and the caller announces the next records.
 */
#ifndef PROCESSOR_FILLING_H
#define PROCESSOR_FILLING_H

#include "store/env/env.h"
#include "store/journal/journal.h"

struct filling { /* zeros at the start */
	bool begun, by_page;
	uint64_t begun_bytes; /* read of the disk before */
	struct ahead ahead;
};

/* Notes this thread's DISK_BYTES, read of the disk in its life; the journal is JOURNAL_BYTES
 * long. */
void filling_note(struct filling *filling, uint64_t disk_bytes, uint64_t journal_bytes);
/* Comes before a slice of records, with the journal's TXN. Returns whether filling_announce() is of
 * use. */
bool filling_look(struct filling *filling, struct journal *journal, struct txn *txn);
/* Lets the kernel read record SEQ. Returns its bytes. filling_announced() comes after the last
 * one. */
uint64_t filling_announce(
	struct filling *filling, struct journal *journal, struct txn *txn, uint64_t seq);
void filling_announced(struct filling *filling, struct txn *txn);

#endif
