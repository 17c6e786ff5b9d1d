/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The changes of a feed since the moment that kinf-serve shows. Each read of the past needs them
 * (store/read/as_of.h), and the log since then may be long: it is read once, in slices, by
 * whichever worker asks.
 */
#ifndef SERVE_CATALOG_SINCE_H
#define SERVE_CATALOG_SINCE_H

#include <pthread.h>

#include "store/read/as_of.h"

struct since {
	pthread_mutex_t lock;
	struct as_of *as_of; /* NULL: none was asked for yet */
};

void since_init(struct since *since);
void since_release(struct since *since);

/* Reads on, and gives what was read to AS_OF, unless it has read some itself. Returns: as
 * as_of_renew(). */
#define SINCE_SLICE 1000 /* records, read in about a millisecond */
int since_give(struct since *since, struct snapshot *snapshot, uint32_t feed, struct as_of *as_of);

#endif
