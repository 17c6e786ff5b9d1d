/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses how the journal is read to fill an index. The objects lie there nearly in the order of
 * the fill: the kernel's read-ahead is best unless memory is too small to keep it, which reads
 * pages again and again. When this thread has read more from the disk than the journal is long, it
 * reads single pages and announces the next records.
 */
#ifndef PROCESSOR_FILLING_H
#define PROCESSOR_FILLING_H

#include "store/env/env.h"
#include "store/journal/journal.h"

struct filling { /* zeros at the start */
	bool begun, by_page;
	uint64_t begun_bytes; /* read from the disk before */
	struct ahead ahead;
};

/* Notes the DISK_BYTES read by this thread in its life, and the journal's length. */
void filling_note(struct filling *filling, uint64_t disk_bytes, uint64_t journal_bytes);
/* Comes before a slice of records; TXN is the journal's. Returns true if filling_announce()
 * helps. */
bool filling_look(struct filling *filling, struct journal *journal, struct txn *txn);
/* Announces record SEQ to the kernel. Returns its bytes. ahead_send() follows the last one. */
uint64_t filling_announce(
	struct filling *filling, struct journal *journal, struct txn *txn, uint64_t seq);

#endif
