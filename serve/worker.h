/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker: one thread with an epoll loop and its own connections. A connection stays with its
 * worker. Everything here but serve_worker_wake() is called on the worker's thread only.
 */
#ifndef SERVE_WORKER_H
#define SERVE_WORKER_H

#include <stdint.h>

#include "common/timer_queue.h"

struct serve_worker;

/* Makes the worker call answer_worker_woken() soon. From any thread; async-signal-safe. Several
 * calls before the worker wakes are one. */
void serve_worker_wake(struct serve_worker *worker);

/* Returns the bytes of whole answers (exchange_send()) with running streams. */
size_t serve_worker_held(const struct serve_worker *worker);

/* Returns CLOCK_MONOTONIC as of the beginning of this turn of the loop. */
uint64_t serve_worker_now_ns(const struct serve_worker *worker);

/*
 * Timers. The owner embeds the struct:
 *
 *	r = serve_timer_init(worker, &watch->deadline, expired, watch);	may fail
 *	serve_timer_set(&watch->deadline, now + 5 * SECOND_NS);	again at any time
 *	serve_timer_set(&watch->deadline, UINT64_MAX);		off
 *	serve_timer_release(&watch->deadline);			accepts zeroes
 *
 * FN is called once for each time set, on the worker's thread, within some milliseconds after
 * it; it may set or release any timer, its own also.
 */
struct serve_timer {
	struct timer_queue_item item;
	struct serve_worker *worker;
	void (*fn)(void *context);
	void *context;
};
int serve_timer_init(struct serve_worker *worker, struct serve_timer *timer,
	void (*fn)(void *context), void *context);
void serve_timer_set(struct serve_timer *timer, uint64_t monotonic_ns);
void serve_timer_release(struct serve_timer *timer);

#endif
