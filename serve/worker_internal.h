/* SPDX-License-Identifier: Apache-2.0 */
/* The worker as the transport sees it: its loop (loop.c: arrivals, events, timers, turns of
 * connections, the end) and its connections (http/). */
#ifndef SERVE_WORKER_INTERNAL_H
#define SERVE_WORKER_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>

#include "common/buf.h"
#include "serve/exchange.h"
#include "serve/worker.h"

struct answer;
struct auth;
struct http_connection;
struct listener;
struct metrics;
struct upstream_links;

/* One for all workers. */
struct worker_shared {
	struct metrics *metrics;
	struct answer *answer;
	struct auth *auth;
	bool forward;   /* requests may go to the API server */
	int runtime_fd; /* the runtime directory, for the file `upstream` */
	bool stopping;  /* atomic; /readyz fails */
	int failed;     /* atomic: a worker's failed start, which ends the process */
	/* Answers a request of LISTENER. */
	void (*ask)(
		struct serve_worker *worker, const struct listener *listener, struct exchange *x);
};

#define SERVE_WORKER_MAGIC 0x776f726bu

/* A socket accepted by the main thread. */
struct worker_arrival {
	const struct listener *listener;
	int fd;
};

struct serve_worker {
	uint32_t magic;
	struct worker_shared *shared;
	struct answer_worker *answers;
	struct upstream_links *links; /* NULL: nothing is forwarded */
	pthread_t thread;
	bool started;
	int epoll, wake_fd;
	uint64_t now_ns;
	struct timer_queue timers;
	struct http_connection *connections;
	struct http_connection *ready_first, **ready_last;
	unsigned n_handshakes; /* taken slots */
	bool slot_freed;       /* since arrivals were taken */
	uint8_t *input;        /* 64 KiB for reads */
	struct buf output;     /* 64 KiB and a little of a protocol's output */
	size_t held;           /* bytes of whole answers */
	size_t heads;          /* bytes of the heads of all streams */
	bool draining, ended;
	uint64_t end_ns; /* when all the rest is cut */

	/* Shared with the main thread. */
	pthread_mutex_t lock;
	struct worker_arrival *arrivals; /* the oldest first */
	size_t n_arrivals, arrivals_room;
	bool stop_asked;
	size_t n_connections; /* atomic */
	uint64_t turn_ns;     /* atomic: monotonic, since when this turn lasts; 0: it sleeps */
};

int serve_worker_init(struct serve_worker *worker, struct worker_shared *shared);
void serve_worker_release(struct serve_worker *worker);

/* ---- health.c ----------------------------------------------------------- */

/* Answers X if it asks for /livez, /readyz or /healthz, or for anything at a listener for metrics:
 * that has nothing but /metrics. They tell nothing about objects, so they need no decision. Returns
 * whether it did. */
bool health_answer(
	struct worker_shared *shared, const struct listener *listener, struct exchange *x);

/* ---- loop.c ------------------------------------------------------------- */

/* All from the main thread. Starts the thread of a worker. */
int loop_start(struct serve_worker *worker);
/* Gives the worker an accepted socket of LISTENER; closes it without memory. */
void loop_give(struct serve_worker *worker, const struct listener *listener, int fd);
/* Asks the worker to finish; it ends within 3.5 s. */
void loop_stop(struct serve_worker *worker);
void loop_join(struct serve_worker *worker);

#endif
