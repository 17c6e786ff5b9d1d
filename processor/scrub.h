/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks for damage that nobody has met yet: reads the whole log once after the start and once a
 * day, in slices while there is nothing else to do, and compares each record's checksum. The
 * reflector is told which records are damaged (store/ring/damage.h). A pass that found damage is
 * repeated from the first damaged record on, after a second, then after twice the pause of
 * before, at most a minute: the reflector may have been away, or may have had no answer yet from
 * the API server.
 */
#ifndef PROCESSOR_SCRUB_H
#define PROCESSOR_SCRUB_H

#include "processor/intake.h"

struct scrub {
	struct journal *journal;
	uint64_t next;   /* seq of the next record to read; 0: nothing is due before due_ns */
	uint64_t begin;  /* where the next pass begins */
	uint64_t first;  /* seq of the first damaged record of this pass; 0: none */
	uint64_t pause;  /* ns before the next pass, if this one finds damage */
	uint64_t due_ns; /* monotonic */
};

/* Begins a pass over JOURNAL, borrowed. */
void scrub_begin(struct scrub *scrub, struct journal *journal);
/* Reads a slice in the journal's snapshot of INTAKE. Returns: AGAIN: more is due at once; 0;
 * errors. */
int scrub_slice(struct scrub *scrub, const struct processor *p, struct intake *intake);
/* Reports the journal's record SEQ of FEED (0: not known) to the reflector. */
void scrub_report(
	const struct processor *p, const struct journal *journal, uint32_t feed, uint64_t seq);

#endif
