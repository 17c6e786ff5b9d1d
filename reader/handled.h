/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The newest event of each thread: of its running handler, and of its keys from work queues.
 * Followers read the journal, so an event may come before the index has it. A snapshot of such a
 * thread waits until the index has the event (kinf.c). Work queues pass the seq on with the key.
 */
#ifndef READER_HANDLED_H
#define READER_HANDLED_H

#include <stdint.h>

struct handled {
	uint64_t event;      /* 0: none */
	uint8_t journal[16]; /* of the event */
};

/* Returns the newest event of the calling thread. */
struct handled handled_get(void);

/* Sets TO to FROM, unless TO is of the same journal and newer. */
void handled_merge(struct handled *to, const struct handled *from);

/* Sets the event of the calling thread's handler. Returns the former one. */
struct handled handled_set(const struct handled *to);

/* Adds a key with the event GIVEN to the calling thread's. Returns the number of the thread, never
 * 0. */
uint64_t handled_take_key(const struct handled *given);
/* Ends the work on a key taken by the thread TAKER. If it is the calling thread, and this was its
 * last key, it has the events of its keys no longer. */
void handled_end_key(uint64_t taker);

#endif
