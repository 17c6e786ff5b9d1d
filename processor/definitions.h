/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which indexes there should be: the built-in ones of every feed, and those that kinf.yaml has for
 * the feed's name, or for the wildcard that it came from. Compared with what is there at every change of the configuration and once a
 * second (a feed may get another name at any time); what is missing is defined and filled, what is
 * no longer wanted dropped, what a removed feed leaves taken out: all in slices between batches,
 * without the API server.
 */
#ifndef PROCESSOR_DEFINITIONS_H
#define PROCESSOR_DEFINITIONS_H

#include "processor/apply.h"

/* Calls FN for each index definition that the feed OF should have; until it returns non-zero, which is
 * the result. */
typedef int definition_wanted_fn(void *arg, uint32_t feed, const char *name, const char *paths);
int definitions_wanted(const struct config *config, const struct feed_definition *of,
	definition_wanted_fn *fn, void *arg);

struct definitions;

int definitions_new(const struct processor *p, struct journal *journal, struct index *index,
	struct apply *apply, struct definitions **ret_definitions);
void definitions_free(struct definitions **definitions);

/* Compares and, where they differ, defines and marks for dropping in one transaction. How many
 * definitions were changed. */
int definitions_sync(struct definitions *definitions, struct intake *intake);

/* One slice of filling or dropping. AGAIN: there is more to do; 0: nothing is left. */
int definitions_work(struct definitions *definitions, struct intake *intake);

#endif
