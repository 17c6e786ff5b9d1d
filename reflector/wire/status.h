/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why the API server refused, made into what the feed's state machine decides by: of an HTTP status,
 * a Status object in its body or in an ERROR event, and Retry-After. The reason comes first, the
 * number only where there is no reason that we know; 429 always by number (docs/protocol.md 8).
 */
#ifndef REFLECTOR_WIRE_STATUS_H
#define REFLECTOR_WIRE_STATUS_H

#include "common/bytes.h"

enum failure_kind {
	FAILURE_NETWORK,    /* refused, reset, cut off, silent, TLS, name not found */
	FAILURE_PROTOCOL,   /* the answer makes no sense */
	FAILURE_UNREADABLE, /* an object that could not be taken in */
	FAILURE_EXPIRED,    /* 410: the resourceVersion is too old */
	FAILURE_RV_AHEAD,   /* 504: the server does not know this resourceVersion yet */
	FAILURE_BUSY,       /* 429, 502, 503, 504: the same again, later */
	FAILURE_REFUSED,    /* 401: who we are is not accepted now */
	FAILURE_FORBIDDEN,  /* 403 */
	FAILURE_ABSENT,     /* 404 */
	FAILURE_REQUEST,    /* 400, 405, 406, 415, 422: asking again will not help soon */
	FAILURE_SERVER,     /* 500 and all else */
	FAILURE_KIND_MAX
};
const char *failure_kind_name(enum failure_kind kind);

#define STATUS_TEXT 300

struct status {
	enum failure_kind kind;
	int code;
	uint64_t retry_after_ns; /* 0: not told */
	char text[STATUS_TEXT];  /* "410 Expired: too old resource version: 7 (42)", printable */
};

/*
 * BODY is what the server sent along, at most a few kB of it, perhaps no Status at all; CODE is the
 * HTTP status, 0 for an ERROR event, which names its own. RETRY_AFTER_NS from the header, 0: none.
 */
void status_read(int code, uint64_t retry_after_ns, struct bytes body, struct status *ret_status);

/* Of a failure without an answer; TEXT says why. */
void status_set(enum failure_kind kind, const char *text, struct status *ret_status);

#endif
