/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thousands of HTTP clients in one thread, for swarm.c: HTTP/1.1 on a Unix socket or with TLS, one
 * request at a time on a connection; HTTP/2 with TLS, many requests on a connection. Certificates
 * are not verified: their cost would be the clients'. Each TLS connection makes a whole handshake,
 * as client-go's do, unless the protocol is `tickets`: then it resumes the newest session.
 *
 *	swarm_init(&swarm, &target, calls);
 *	connection = swarm_connect(&swarm);
 *	swarm_get(connection, &request, "/api/v1/pods?watch=1");
 *	while (...) swarm_turn(&swarm, 100);
 *
 * Calls come from within swarm_turn(). `ended` of each request comes exactly once, also when the
 * connection is lost; it may send the next request, or close the connection.
 */
#ifndef TESTS_BENCH_SWARM_CLIENT_H
#define TESTS_BENCH_SWARM_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum swarm_protocol { SWARM_PLAIN, SWARM_TLS, SWARM_TICKETS, SWARM_HTTP2 };

struct swarm_target {
	enum swarm_protocol protocol;
	const char *address;       /* the path of a Unix socket, or IPV4:PORT */
	const char *authorization; /* the value of the header; NULL: none */
};

struct swarm_connection;

struct swarm_request {
	struct swarm_connection *connection; /* NULL: it has ended */
	void *user;
	int status;     /* 0: there is no answer yet */
	uint64_t bytes; /* of the body, so far */
	int32_t stream;
	struct swarm_request *next; /* of the connection */
	uint8_t tail[64];           /* the end of the bytes before, for the user */
	size_t tail_size;
};

struct swarm_calls {
	/* The head of the answer has come. May be NULL. */
	void (*begun)(struct swarm_request *request);
	void (*data)(struct swarm_request *request, const uint8_t *bytes, size_t size);
	/* COMPLETE: the body was not cut. */
	void (*ended)(struct swarm_request *request, bool complete);
};

struct swarm {
	struct swarm_target target;
	struct swarm_calls calls;
	int epoll;
	void *tls;
	void *session;               /* the newest TLS session; NULL: none, or not kept */
	unsigned connected, resumed; /* TLS handshakes so far, and resumed sessions */
	unsigned next_source;        /* of 127.0.0.1 to 127.0.0.16 */
	uint8_t *input;
	struct swarm_connection *lost; /* to be freed after the turn */
};

void swarm_init(struct swarm *swarm, const struct swarm_target *target, struct swarm_calls calls);

/* Returns NULL if the server can't be reached now. The connection is closed by swarm_close(), or
 * when it is lost. */
struct swarm_connection *swarm_connect(struct swarm *swarm);
void swarm_close(struct swarm_connection *connection);

/* Sends a GET. REQUEST is the caller's, zeroes but for `user`; it must live until `ended`. */
void swarm_get(
	struct swarm_connection *connection, struct swarm_request *request, const char *path);
/* Sends a merge patch by HTTP/1.1. */
void swarm_patch(struct swarm_connection *connection, struct swarm_request *request,
	const char *path, const char *body);

/* A paused client reads nothing, to block the server's writes. */
void swarm_pause(struct swarm_connection *connection, bool pause);

/* Does the possible work now; waits for at most TIMEOUT_MS for something to do. */
void swarm_turn(struct swarm *swarm, int timeout_ms);

#endif
