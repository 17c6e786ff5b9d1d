/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP to one API server: any number of GET requests at once, over one HTTP/2 connection if the
 * server speaks it (more when its stream limit is reached), else over HTTP/1.1 connections. One
 * thread, one loop:
 *
 *	http_new(config, &http);
 *	http_start(http, &(struct http_request){ .path = "/api/v1/pods?limit=500", ... }, &call);
 *	for (;;)
 *		http_poll(http, timeout_ms, fds, n_fds);	(callbacks come in only here)
 *
 * Any function here may be called inside a callback, except http_poll and http_free. A call ends in
 * exactly one of two ways: `on_done` (its pointer is dead when on_done is called), or http_cancel
 * (no callback after it).
 *
 * While on_body runs nothing is read, so a slow caller slows the server down. A redirect is
 * reported as an answer and not followed: following it could carry credentials to another host.
 *
 * Limits count only time spent listening: after a stop, or a minute in one callback, a process does
 * not mistake its own absence for the server's silence. When a call ends for silence and nothing
 * else was heard on its connection, the client closes the connection before the next call can use
 * it.
 *
 * While an exec plugin fetches credentials, calls wait for it and their limits stand still. When
 * the plugin fails, the calls end with ERR_CREDENTIALS and its sentence.
 */
#ifndef REFLECTOR_NET_HTTP_H
#define REFLECTOR_NET_HTTP_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/stats.h"
#include "reflector/net/kubeconfig.h"

#define HTTP_FDS_MAX   16  /* descriptors for http_poll beside the transfers */
#define HTTP_ETAG_SIZE 256 /* a kube-apiserver's ETag has 130 bytes */

/* Result of a renewable call ended by the client after a long silence. The caller makes the request
 * again: an answer proves the connection alive, and without one it is closed. */
#define HTTP_SILENT 1000

struct http;
struct http_call;

/* The head of an answer. Borrowed for the callback. */
struct http_answer {
	int status;               /* 200..599 */
	const char *content_type; /* as sent, "" when absent */
	const char *warning;      /* texts of the Warning headers, joined by "; ", or "" */
	const char *etag;         /* as sent, "" when absent or not below HTTP_ETAG_SIZE */
	uint64_t retry_after_ns;  /* 0: none, or a date */
};

struct http_request {
	const char *path;   /* from the server's root, with query: "/api/v1/pods?limit=500" */
	const char *accept; /* NULL: application/json */
	const char *etag;   /* of the caller's copy: 304 if it is current. NULL: none */
	bool gzip; /* ask for a compressed answer; never for watches (docs/protocol.md 0.2) */
	bool bulk; /* a large answer is expected: use a large receive buffer */
	bool may_be_absent; /* 404 is an answer like another one, and no error of http.errors */
	bool renewable;     /* instead of idle_ns: after a long silence it ends with HTTP_SILENT */

	/* Nanoseconds, 0: no limit. */
	uint64_t first_byte_ns; /* from http_start to the answer's headers, connecting included;
				 * then again to the end, if the status is not 200 */
	uint64_t idle_ns;       /* longest silence after the headers */
	uint64_t total_ns;      /* from http_start to the end */

	void *arg;
	/* Called once, before any body; interim (1xx) answers are not reported. May be NULL. */
	void (*on_status)(void *arg, const struct http_answer *answer);
	/* Called with each piece of the body, never empty. Returns: 0 to go on; anything else ends
	 * the call and is passed to on_done with its sentence. NULL: the body is dropped. */
	int (*on_body)(void *arg, struct bytes bytes);
	/*
	 * Called at the end. RESULT is 0 for a complete answer, whatever its status; the value
	 * on_body returned; ERR_NETWORK (name not found, refused, reset, cut off), ERR_TLS,
	 * ERR_TIMEOUT or ERR_PROTOCOL (not HTTP), each with a sentence about server and reason;
	 * ERR_CREDENTIALS; -ENOMEM; HTTP_SILENT. STATUS is 0 when no headers came.
	 */
	void (*on_done)(void *arg, int result, int status);
};

/* Makes a client. Borrows CONFIG until http_free. Reads the token file, if CONFIG names one.
 * Returns: 0, ERR_CONFIG, -ENOMEM. */
int http_new(const struct kubeconfig *config, struct http **ret_http);
/* For later requests: sets the limit for connecting, TLS included (at first 10 s), and after how
 * long a silence renewable calls end with HTTP_SILENT (at first 0: never). */
void http_set_limits(struct http *http, uint64_t connect_ns, uint64_t silence_ns);
/* Counts requests, failures and bytes in STATS from now on. STATS must outlive the client. */
void http_set_stats(struct http *http, struct stats *stats);
/* Cancels all calls and frees the client. */
void http_free(struct http **http);

/* Starts a request; http_poll sends it. Copies REQUEST with its texts. RET_CALL may be NULL.
 * Returns: 0, ERR_UNSUPPORTED, -ENOMEM. */
int http_start(struct http *http, const struct http_request *request, struct http_call **ret_call);

/* Turns a running list into a watch: it has no idle_ns any more, and is renewable. */
void http_set_quiet(struct http_call *call);

/* Ends a call without a further callback and nulls the pointer. Accepts NULL. */
void http_cancel(struct http_call **call);

/* Waits up to TIMEOUT_MS (-1: no limit) for transfers or FDS, runs transfers, calls callbacks.
 * Fills in FDS as poll(2) does, for POLLIN, POLLPRI and POLLOUT. Returns: 0, or ERR_NETWORK or
 * -ENOMEM when libcurl itself failed; never the error of a call. */
int http_poll(struct http *http, int timeout_ms, struct pollfd *fds, size_t n_fds);

/* Returns: the server as in the kubeconfig, without credentials: "https://host:6443/prefix". */
const char *http_server(const struct http *http);
/* Returns the awaited exec plugin's command, and since when requests wait (monotonic); NULL:
 * none. */
const char *http_awaited_plugin(const struct http *http, uint64_t *ret_since_ns);

/* Returns: the CA for new connections, PEM, borrowed until the next call; empty: the system's
 * roots. *RET_CHANGES counts its changes since http_new. */
struct bytes http_ca(struct http *http, uint64_t *ret_changes);

#endif
