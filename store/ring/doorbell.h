/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doorbell: a stream socket in the runtime directory for followers that need a descriptor to
 * poll, which the delta ring's futex is not. The exchange on a connection:
 *
 *	follower   sends a byte: it is armed. Then it reads what there is to read, and polls
 *	reflector  publishes a batch, and sends each armed follower one byte, which disarms it
 *	follower   wakes, receives the byte, sends one again, ...
 *
 * Arming comes before reading (reader/informer/informer_wake.c), so no follower sleeps through a
 * batch. One that is busy is not armed and costs nothing. The reflector never waits for a
 * follower, and one call here does a bounded number of system calls: what is left is done at the
 * next turn of the loop. The bytes carry no news. All who may read the store may connect.
 */
#ifndef STORE_RING_DOORBELL_H
#define STORE_RING_DOORBELL_H

#include "store/env/home.h"

#define DOORBELL_RINGS_MAX 64 /* bytes sent in one call */
/* connections; more are closed, and their followers poll by a timer */
#define DOORBELL_BELLS_MAX 512

struct doorbell;

/* Makes the socket, in the place of the one that an earlier reflector left. */
int doorbell_open(const struct home *home, struct doorbell **ret_doorbell);
void doorbell_close(struct doorbell **doorbell);

/* A batch was published: rings the followers that are armed. A NULL doorbell does nothing. */
void doorbell_ring(struct doorbell *doorbell);

/* Accepts new followers, forgets those that have left, and rings armed ones that doorbell_ring()
 * did not get to. To be called at each turn of the loop. A NULL doorbell does nothing.
 * Returns: 0; AGAIN: more are to be rung, so the caller should not sleep. */
int doorbell_turn(struct doorbell *doorbell);

#endif
