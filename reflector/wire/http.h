/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP to one API server: any number of GET requests at once, over one HTTP/2 connection where the
 * server speaks it (more when its stream limit is reached), over HTTP/1.1 connections where not. One
 * thread, one loop:
 *
 *	http_new(config, &http);
 *	http_start(http, &(struct http_request){ .path = "/api/v1/pods?limit=500", ... }, &call);
 *	for (;;)
 *		http_poll(http, timeout_ms, fds, n_fds);	(callbacks come in here, nowhere else)
 *
 * Any function here may be called inside a callback, except http_poll and http_free. A call ends in
 * exactly one of two ways: `on_done` (its pointer is dead when on_done is called), or http_cancel
 * (no callback after it).
 *
 * Back-pressure is the callback: while on_body runs, nothing is read. Redirects are answers like any
 * other; following one could carry credentials to another host.
 *
 * Time limits count only time in which we listened: a process that was stopped, or spent a minute in
 * one callback, does not take its own absence for the server's silence. When a call ends for silence
 * and nothing else was heard on its connection for as long, the connection is closed, so that the
 * next call does not go into the same hole.
 *
 * While an exec plugin runs for credentials, calls wait for it, and their limits with them; when it
 * fails, they end with ERR_CREDENTIALS and its sentence.
 *
 * The only file with curl/curl.h is http.c.
 */
#ifndef REFLECTOR_HTTP_H
#define REFLECTOR_HTTP_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"
#include "reflector/access/kubeconfig.h"

#define HTTP_FDS_MAX 16 /* that http_poll watches beside the transfers */

/* Result of a call that was ended to be asked again: nothing was heard on its connection for long. */
#define HTTP_SILENT 1000

struct http;
struct http_call;

/* What is known of an answer when its headers are complete. Borrowed for the callback. */
struct http_answer {
	int status;               /* 200..599 */
	const char *content_type; /* as sent, "" when absent */
	const char *warning;      /* texts of the Warning headers, without code and quotes, "; " between, or "" */
	const char *etag;         /* as sent, "" when absent */
	bool has_retry_after;
	uint64_t retry_after_ns;
};

struct http_request {
	const char *path;   /* from the server's root, with query: "/api/v1/pods?limit=500" */
	const char *accept; /* NULL: application/json */
	const char *etag;   /* of what is known already: 304 without a body if it still is so. NULL: nothing */
	bool gzip;          /* accept compressed answers; never for watches (docs/protocol.md 0.2) */
	bool bulk;          /* a large answer is expected: large receive buffer */
	bool renewable;     /* may be ended with HTTP_SILENT once it is being answered */

	/* Nanoseconds, 0: no limit. */
	uint64_t first_byte_ns; /* from http_start to the answer's headers, connecting included; and from
	                         * there to the end, where the status is not 200 */
	uint64_t idle_ns;       /* longest silence after that */
	uint64_t total_ns;      /* from http_start to the end */

	void *arg;
	/* Once, before any body; interim (1xx) answers are not reported. May be NULL. */
	void (*on_status)(void *arg, const struct http_answer *answer);
	/* Some more of the body, never empty. 0: go on. Anything else ends the call: on_done gets it as
	 * its result, with the sentence that was set for it. May be NULL: the body is dropped. */
	int (*on_body)(void *arg, struct bytes bytes);
	/*
	 * The end. RESULT: 0 the answer is complete, whatever its status; what on_body answered;
	 * ERR_NETWORK (name not found, refused, reset, cut off), ERR_TLS, ERR_TIMEOUT, ERR_PROTOCOL (not
	 * HTTP), each with a sentence that names the server and the reason; ERR_CREDENTIALS; -ENOMEM;
	 * HTTP_SILENT.
	 * STATUS: 0 when no headers came.
	 */
	void (*on_done)(void *arg, int result, int status);
};

/* CONFIG is borrowed until http_free. Reads the token file, if there is one. ERR_CONFIG when the
 * configuration is not usable, -ENOMEM. */
int http_new(const struct kubeconfig *config, struct http **ret_http);
/*
 * CONNECT_NS: how long connecting may take, TLS included, of what is asked for from now on; at first
 * 10 s. SILENCE_NS: after this long without a byte on a connection one of its renewable calls ends
 * with HTTP_SILENT, so that asking again shows whether it lives; at first 0, never.
 */
void http_set_limits(struct http *http, uint64_t connect_ns, uint64_t silence_ns);
/* Cancels all calls. */
void http_free(struct http **http);

/* REQUEST is copied, its texts too. RET_CALL may be NULL when it is never cancelled. 0,
 * -ENOMEM. */
int http_start(struct http *http, const struct http_request *request, struct http_call **ret_call);

/* An answer that was to come at a stretch goes on as a watch: from now on silence is normal (no
 * idle_ns), and the call is renewable. */
void http_set_quiet(struct http_call *call);

/* Ends a call without a further callback and nulls the pointer. NULL is fine. */
void http_cancel(struct http_call **call);

/*
 * Waits up to TIMEOUT_MS (-1: no limit of its own) for transfers or FDS; runs transfers
 * and delivers callbacks. FDS are filled in as by poll(2), with POLLIN, POLLPRI and POLLOUT.
 * 0, or an error of the machinery itself (-ENOMEM ...), never one of a call.
 */
int http_poll(struct http *http, int timeout_ms, struct pollfd *fds, size_t n_fds);

/* The server as in the kubeconfig, without credentials: "https://host:6443/prefix". */
const char *http_server(const struct http *http);

/* Counters since http_new. */
struct http_counts {
	uint64_t requests, connections, bytes;
};
void http_counts(const struct http *http, struct http_counts *ret_counts);

#endif
