/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the index's definitions as the configuration has them (config_indexes.h): defines and fills
 * missing ones, drops others, removes the leftovers of removed feeds; in slices between batches,
 * from the journal, without the API server.
 */
#ifndef PROCESSOR_DEFINITIONS_H
#define PROCESSOR_DEFINITIONS_H

#include "processor/apply.h"

struct definitions;

int definitions_new(const struct processor *p, struct journal *journal, struct index *index,
	struct apply *apply, struct definitions **ret_definitions);
void definitions_free(struct definitions **definitions);

/* Compares the definitions with the configuration; defines new ones and marks others for dropping
 * in one transaction. To be called once a second: a feed may be renamed at any time. Without any
 * change it costs at most a walk over the journal's feeds. Returns the number of changed
 * definitions. */
int definitions_sync(struct definitions *definitions, struct intake *intake);

/* Does one slice of filling or dropping. Returns: AGAIN: there is more; 0: nothing is left. */
int definitions_work(struct definitions *definitions, struct intake *intake);
/* Returns true if the current fill reads the journal by page (filling.h). */
bool definitions_read_by_page(const struct definitions *definitions);

#endif
