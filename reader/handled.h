/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The newest event that each thread was handed: by the handler that it is running, or with the key
 * that a work queue gave it. Followers read the journal, so an event may come before the index has
 * it. A snapshot that such a thread opens or renews waits until it has (kinf.c). Work queues pass
 * the number on from the thread that adds a key to the thread that gets it.
 */
#ifndef READER_HANDLED_H
#define READER_HANDLED_H

#include <stdint.h>

struct handled {
	uint64_t event; /* 0: none */
	uint8_t journal[16]; /* that the event is of */
};

/* The calling thread's. */
struct handled handled_get(void);
void handled_set(const struct handled *handled);

/* Sets TO to FROM, unless TO is of the same journal and newer. */
void handled_merge(struct handled *to, const struct handled *from);

#endif
