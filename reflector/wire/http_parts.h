/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What http.c, which talks to libcurl, and http_call.c, which knows what a call is without it, share.
 * Nobody else includes this.
 */
#ifndef REFLECTOR_HTTP_PARTS_H
#define REFLECTOR_HTTP_PARTS_H

#include "reflector/access/certificates.h"
#include "reflector/access/credential.h"
#include "reflector/wire/connection.h"
#include "reflector/wire/head.h"
#include "reflector/wire/http.h"
#include "reflector/wire/limit.h"
#include "reflector/wire/proxy.h"

#define HTTP_MAGIC 0x48545450u
#define CALL_MAGIC 0x48434c4cu

#define HTTP_REASON_SIZE 256 /* libcurl's CURL_ERROR_SIZE */
#define NS_PER_MS        1000000ull
#define NS_PER_SECOND    1000000000ull

struct curl_slist;

enum call_state {
	CALL_WAITING, /* started, not yet known to curl */
	CALL_RUNNING,
	CALL_ENDED, /* curl is done with it, on_done is still to come */
};

struct http_call {
	uint32_t magic;
	enum call_state state;
	struct http *http;
	struct http_call *next, **link;
	struct http_request request; /* its texts are not kept */
	void *easy; /* libcurl's */
	struct curl_slist *headers; /* with credentials, from when curl has it on: wiped */
	struct certificate_set *certificates; /* the same; NULL over plain http */
	unsigned shown;             /* version of the credentials that it carries */
	bool cancelled;             /* in a callback of curl, where it can't be removed */
	bool connecting;            /* it has opened a connection of its own, */
	uint64_t connecting_ns;     /* then (monotonic) */

	struct limit limit; /* on the http's clock */
	uint16_t port;      /* local, once an answer began */

	struct head head; /* complete when limit.answered */
	size_t header_bytes;

	int result;       /* when ENDED */
	int stop;         /* what on_body answered, 0: nothing */
	char *sentence;   /* of result or stop; NULL: none */
	char reason[HTTP_REASON_SIZE]; /* libcurl's words for it */
};

struct http {
	uint32_t magic;
	const struct kubeconfig *config;
	struct credential *credential;
	struct certificates *certificates;
	void *multi; /* libcurl's */
	bool global, performing;
	bool single;  /* HTTP/1: a connection carries one call at a time */
	struct http_call *calls;
	struct connections connections;
	struct http_counts counts;
	uint64_t bulk_bytes; /* of large answers, in the last turn */

	uint64_t connect_ns;
	uint64_t clock_ns; /* time spent listening or working, not stopped */
	uint64_t last_ns;  /* monotonic, when the clock was last moved */

	char *base;                    /* what paths are put behind */
	char *host_header;             /* NULL: as in base */
	struct curl_slist *connect_to; /* where base's host really is; NULL: there */
	struct proxy proxy;
	char *name;                    /* of the server and the way to it, for sentences */
};

/* ---- http_call.c ---- */

/* The clock of limits: of a wait longer than WAITED_MS only a little more counts. */
void http_move_clock(struct http *http, uint64_t waited_ms);
/* How long may be waited until a limit is reached, at most TIMEOUT_MS (-1: no limit of its own). */
int http_wait_ms(const struct http *http, int timeout_ms);

/* New calls stand in front. */
void call_link(struct http *http, struct http_call *call);
void call_unlink(struct http_call *call);
/* The oldest that curl does not know yet, or one that has ended; NULL: none. */
struct http_call *http_last_waiting(const struct http *http);
struct http_call *http_next_ended(const struct http *http);
/* Time that a plugin takes is not the server's. */
void http_hold_waiting(struct http *http);

/* A line of the answer's head, or a trailer; a piece of its body: false ends the call, whose `stop` and
 * sentence say why, unless it was cancelled. */
bool call_take_header(struct http_call *call, struct bytes line);
bool call_take_body(struct http_call *call, struct bytes bytes);

#endif
