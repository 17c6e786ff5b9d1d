/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doorbell: a stream socket in the runtime directory for followers in need of a descriptor to
 * poll; the delta ring's futex is none. The exchange on a connection:
 *
 *	follower   sends a byte: it is armed. Then it reads all there is, and polls
 *	reflector  publishes a batch, and sends each armed follower one byte: it is disarmed
 *	follower   wakes, receives the byte, sends one again, ...
 *
 * Arming comes before reading (reader/informer/informer_wake.c), so no follower sleeps through a
 * batch. A busy one is not armed and costs nothing. The reflector never waits for a follower. The
 * bytes carry no changes. All readers of the store may connect.
 */
#ifndef STORE_RING_DOORBELL_H
#define STORE_RING_DOORBELL_H

#include "store/env/home.h"

/* connections; more are closed, and their followers poll by a timer */
#define DOORBELL_BELLS_MAX 512

struct doorbell;

/* Makes the socket, in the place of an earlier reflector's. */
int doorbell_open(const struct home *home, struct doorbell **ret_doorbell);
void doorbell_close(struct doorbell **doorbell);

/* Rings the armed followers after a batch. A NULL doorbell does nothing. */
void doorbell_ring(struct doorbell *doorbell);

/* Accepts new followers, receives bytes, and forgets followers gone; called at each turn of the
 * loop. A NULL doorbell does nothing. */
void doorbell_turn(struct doorbell *doorbell);

#endif
