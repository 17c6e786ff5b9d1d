/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a worker's thread: arrivals, events, timers, turns of connections, the end. */
#ifndef SERVE_LOOP_H
#define SERVE_LOOP_H

#include "serve/worker_internal.h"

/* All from the main thread. Starts the thread of a worker. */
int loop_start(struct serve_worker *worker);
/* Gives the worker an accepted socket of LISTENER; closes it without memory. */
void loop_give(struct serve_worker *worker, const struct listener *listener, int fd);
/* Asks the worker to finish; it ends within 3.5 s. */
void loop_stop(struct serve_worker *worker);
void loop_join(struct serve_worker *worker);

#endif
