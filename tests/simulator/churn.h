/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of generated objects: many at once, or at a rate in the background. The caller holds
 * world->lock, except for churn_new, churn_free and churn_set.
 */
#ifndef SIMULATOR_CHURN_H
#define SIMULATOR_CHURN_H

#include "tests/simulator/generate.h"
#include "tests/simulator/world.h"

struct churn;

/* churn_new starts the background thread, idle until churn_set; churn_free ends it. */
struct churn *churn_new(struct world *world);
void churn_free(struct churn **churn);

/* Makes RATE changes a second in COLLECTION from now on; 0 stops. PERCENT of them are creations and
 * deletions in turn, the rest are modifications. */
void churn_set(struct churn *churn, struct collection *collection, double rate, unsigned percent);

/* Creates COUNT generated objects, numbered from FROM; returns the last RV. */
uint64_t churn_create(struct world *world, struct collection *collection, uint64_t from,
	uint64_t count, const struct generate_options *options);

/* Modifies COUNT random objects; 0: each object once. */
void churn_touch(struct world *world, struct collection *collection, uint64_t count);

/* Deletes COUNT random objects; 0: all. */
void churn_delete(struct world *world, struct collection *collection, uint64_t count);

/* Applies a merge patch to one object. Returns its new RV, or 0 if there is no such object. */
uint64_t churn_patch(
	struct world *world, struct collection *collection, const char *key, struct bytes patch);

#endif
