/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of queues and limiters: the machine's monotonic clock, or one stepped by a test. A queue
 * subscribes to its stepped clock, and each step wakes the queue's sleeping threads.
 *
 * Order of locks: first the clock's lock of `users`, then a queue's. A clock is read without a
 * lock.
 */
#ifndef READER_QUEUE_CLOCK_H
#define READER_QUEUE_CLOCK_H

#include "reader/kinf.h"

struct clock_user {
	struct clock_user *next;
	void (*wake)(void *arg);
	void *arg;
};

/* CLOCK may be NULL in all of these: the machine's, without subscribers. */
uint64_t clock_read(const struct kinf_clock *clock);
void clock_subscribe(struct kinf_clock *clock, struct clock_user *user);
/* When it returns, wake() is not called any more. */
void clock_unsubscribe(struct kinf_clock *clock, struct clock_user *user);

#endif
