/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forwards a request to the API server, with the client's own credentials, and passes the answer
 * back as it comes: bodies both ways, watches, logs, and tunnels after an upgrade (exec, attach,
 * port-forward).
 *
 *	forward_start(x, &options, &forward)
 *	options.failed()	before an answer has begun: the caller answers
 *	options.ended()		the exchange is over
 *
 * The client's headers are passed on as they are, but for those that concern one connection only
 * (RFC 9110, 7.6.1) and those by which a front proxy names a user. No credential of ours is ever
 * added. At most 16 KiB of the request and 32 KiB of the answer are held here: a slow reader on one
 * side makes the other side wait.
 */
#ifndef SERVE_HTTP_FORWARD_H
#define SERVE_HTTP_FORWARD_H

#include "serve/exchange.h"

/* Requests at once, in the whole process: as many that end soon, and as many that may run long. */
#define FORWARD_MAX 1024

struct forward;
struct metrics;

struct forward_options {
	struct metrics *metrics;
	bool no_limit;      /* the answer may begin at any time: logs, proxies to pods */
	uint64_t answer_ns; /* the answer begins within this, or it has failed; 0: 90 s */
	bool lines;         /* the answer is a watch: it may end after each line */
	bool whole;         /* the answer must come uncompressed: BODY is given */
	/* Before an answer has begun: the caller answers, and the forward is gone. SENT: the server
	 * may have acted on the request. */
	void (*failed)(void *context, int status, const char *why, bool sent);
	/* May be NULL: the answer begins with this status. TYPE lives during the call. */
	void (*begun)(void *context, int status, struct bytes type);
	/* May be NULL: a piece of the request's body, before the server gets it. */
	void (*asked)(void *context, struct bytes piece);
	/* May be NULL: a piece of the answer's body, before the client gets it. */
	void (*body)(void *context, struct bytes piece);
	/* The exchange is over; the forward is gone. */
	void (*ended)(void *context);
	void *context;
};

/* Returns true if the request has credentials for the API server. */
bool forward_has_credentials(const struct exchange *x);
/* X must not have begun. Returns: 0, and FAILED or ENDED are called later; 429: too many run;
 * errors. */
int forward_start(
	struct exchange *x, const struct forward_options *options, struct forward **ret_forward);
/* Gives the request up: its exchange is going away. Accepts NULL. */
void forward_free(struct forward **forward);

#endif
