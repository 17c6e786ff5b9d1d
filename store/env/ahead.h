/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets the disk read what a walk will come to. After env_expect_random() the kernel reads each
 * missing page alone, so a walk over a store that is not in memory waits for the disk at each
 * value. A walk that knows the values which follow announces them, and the disk reads many at
 * once. It asks first whether it is of use: with the store in memory it only costs time.
 *
 *	if (ahead_is_cold(&ahead)) {               now and then
 *		ahead_add(&ahead, txn, offset, size);  each value, in the order of the walk
 *		ahead_send(&ahead, txn);
 *	}
 */
#ifndef STORE_ENV_AHEAD_H
#define STORE_ENV_AHEAD_H

#include "store/env/env.h"

/* The distance between a walk and what it announces grows from the first to the most, in values:
 * a walk that ends soon announces little. */
#define AHEAD_FIRST 2
#define AHEAD_MOST  32

static inline unsigned ahead_grow(unsigned step)
{
	return step < AHEAD_MOST ? 2 * step : AHEAD_MOST;
}

/* Zeros are a good beginning. */
struct ahead {
	/* of this thread that read from the disk, as they were counted last, and 1; 0: not yet */
	long faults;
	unsigned cold;       /* questions that are still answered with yes */
	unsigned warm;       /* that were answered with no, one after the other */
	uint64_t begin, end; /* the piece that is being collected; END 0: none */
};

/* Returns whether this thread has waited for the disk since the question before, or not long
 * before that. While it has not for a while, most questions are answered without looking. */
bool ahead_is_cold(struct ahead *ahead);
/* Adds the value at OFFSET (txn_place()). Values that lie close to each other become one piece. */
void ahead_add(struct ahead *ahead, struct txn *txn, uint64_t offset, uint64_t size);
/* Lets the kernel begin to read the last piece. */
void ahead_send(struct ahead *ahead, struct txn *txn);

#endif
