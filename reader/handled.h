/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The newest event that each thread was handed: by the handler that it is running, and with the
 * keys that work queues gave it. Followers read the journal, so an event may come before the
 * index has it. A snapshot that such a thread opens or renews waits until it has (kinf.c). Work
 * queues pass the number on from the thread that adds a key to the thread that gets it.
 */
#ifndef READER_HANDLED_H
#define READER_HANDLED_H

#include <stdint.h>

struct handled {
	uint64_t event;      /* 0: none */
	uint8_t journal[16]; /* that the event is of */
};

/* Returns the newest event of the calling thread. */
struct handled handled_get(void);

/* Sets TO to FROM, unless TO is of the same journal and newer. */
void handled_merge(struct handled *to, const struct handled *from);

/* Sets the event of the handler that the calling thread runs. Returns what it was before. */
struct handled handled_set(const struct handled *to);

/* Adds a key with the event GIVEN to those that the calling thread works on. Returns the number
 * of the thread, never 0. */
uint64_t handled_take_key(const struct handled *given);
/* Ends the work on a key that the thread TAKER took. If it is the calling thread, and this was
 * its last key, it has the events of its keys no longer. */
void handled_end_key(uint64_t taker);

#endif
