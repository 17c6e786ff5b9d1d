/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the index definitions in the index as the configuration has them (config_indexes.h).
 * Missing ones are defined and filled, others are dropped, and the rest of a removed feed is taken
 * out: in slices between batches, from the journal, without the API server.
 */
#ifndef PROCESSOR_DEFINITIONS_H
#define PROCESSOR_DEFINITIONS_H

#include "processor/apply.h"

struct definitions;

int definitions_new(const struct processor *p, struct journal *journal, struct index *index,
	struct apply *apply, struct definitions **ret_definitions);
void definitions_free(struct definitions **definitions);

/* Compares the definitions with the configuration; where they differ, defines and marks for
 * dropping in one transaction. To be called once a second: a feed may be renamed at any time.
 * While neither the configuration nor a feed has changed it costs a walk over the journal's
 * feeds at most.
 * Returns: how many definitions were changed. */
int definitions_sync(struct definitions *definitions, struct intake *intake);

/* Does one slice of filling or dropping. Returns: AGAIN: there is more to do; 0: nothing is
 * left. */
int definitions_work(struct definitions *definitions, struct intake *intake);
/* Returns true if the present fill reads the journal by page (filling.h). */
bool definitions_read_by_page(const struct definitions *definitions);

#endif
