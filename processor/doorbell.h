/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doorbell: a socket in the runtime folder for followers that need a descriptor to poll, which the
 * ring's futex is not. Whoever is connected gets a byte per batch, when he has room for one: those who
 * have not taken the last need no other. Connecting comes before looking (reader/informer/informer_wake.c), so
 * nobody sleeps through a batch. Who may read the store may ring; nothing is ever read here.
 */
#ifndef PROCESSOR_DOORBELL_H
#define PROCESSOR_DOORBELL_H

#include "store/env/home.h"

struct doorbell;

/* In the place of what an earlier processor left there. */
int doorbell_open(const struct home *home, struct doorbell **ret_doorbell);
void doorbell_close(struct doorbell **doorbell);

/* Takes in who waits at the door, rings everybody, forgets who has left. NULL does nothing. */
void doorbell_ring(struct doorbell *doorbell);

#endif
