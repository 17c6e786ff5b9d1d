/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process: its parts, and the order of their end. The main thread (main.c, serve.c) accepts
 * connections for the worker with the fewest; it attends to signals, the store's directory and the
 * certificates.
 */
#ifndef SERVE_SERVE_H
#define SERVE_SERVE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/daemon/daemon.h"
#include "serve/http/listener.h"
#include "serve/worker_internal.h"
#include "store/env/home.h"

/* in the store: the one place where kinf-serve writes files */
#define SERVE_DIRECTORY       "serve"
#define SERVE_ADDRESSES       "addresses"
#define SERVE_CONNECTIONS_MAX 20000
#define SERVE_WORKERS_MAX     4

struct serve {
	struct daemon *daemon;
	struct home *home;
	int directory_fd; /* STORE/serve */
	int lock_fd;
	struct worker_shared shared;
	struct tls *tls; /* of the TCP listeners; NULL: there are none */
	struct listeners listeners;
	struct serve_worker *workers[SERVE_WORKERS_MAX];
	unsigned n_workers;
	size_t connections_max;
	uint64_t accept_at_ns; /* after a failed accept: when to try again */
	uint64_t renew_at_ns;  /* when to look at the certificates again */
	uint64_t reported_connections, reported_watches; /* as the status page has them */
	uint64_t freed, trimmed; /* worker.freed of all: a second ago, at the last trim */
};

int serve_open(struct serve *serve, struct daemon *daemon);
/* Accepts, and sleeps for at most TIMEOUT_MS. */
int serve_turn(struct serve *serve, int timeout_ms);
/* Returns whether a worker has not come back from its turn for a long time. */
bool serve_hangs(const struct serve *serve);
/* Writes connections, watches, and the reason for waiting into the status page. */
void serve_report(struct serve *serve);
/* Gives memory back to the system after workers have freed much of it. Once a second. */
void serve_trim(struct serve *serve);
/* Renews kinf-serve's own certificates before they expire, or after a jump of the clock. Once a
 * second. */
void serve_renew(struct serve *serve);
/* Takes the daemon's new configuration. Returns: 0; errors: serve.tls is refused, and all else
 * was taken. */
int serve_reload(struct serve *serve);
/* Ends everything within 5 s. */
void serve_close(struct serve *serve);

#endif
