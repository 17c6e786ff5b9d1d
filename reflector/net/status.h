/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a refusal of the API server: the HTTP status, the Status object in the body or in an ERROR
 * event, and Retry-After become a failure kind for a feed's state machine. The Status's reason
 * decides, the number only without a known reason; 429 decides always (docs/protocol.md 8).
 */
#ifndef REFLECTOR_NET_STATUS_H
#define REFLECTOR_NET_STATUS_H

#include <stdbool.h>

#include "common/bytes.h"

enum failure_kind {
	FAILURE_NETWORK,      /* refused, reset, cut off, silent, TLS, name not found */
	FAILURE_PROTOCOL,     /* not an answer of the protocol */
	FAILURE_UNREADABLE,   /* an unreadable object */
	FAILURE_EXPIRED,      /* 410: the resourceVersion is too old */
	FAILURE_RV_AHEAD,     /* 504: the server does not know this resourceVersion yet */
	FAILURE_BUSY,         /* 429, 502, 503, 504: send the same request later */
	FAILURE_UNAUTHORIZED, /* 401: the credentials are not accepted */
	FAILURE_FORBIDDEN,    /* 403 */
	FAILURE_ABSENT,       /* 404 */
	FAILURE_REQUEST,      /* 400, 405, 406, 415, 422: repeating will not help soon */
	FAILURE_SERVER,       /* 500 and others */
	FAILURE_KIND_MAX
};
/* Returns: "network", "protocol" ... */
const char *failure_kind_name(enum failure_kind kind);

#define STATUS_TEXT 1000
/* Requests in a row that are repeated because Retry-After asks for it; as client-go. */
#define STATUS_REPEATS_MAX 10

struct status {
	enum failure_kind kind;
	int code;
	uint64_t retry_after_ns; /* 0: the server gave none */
	/* "410 Expired: too old resource version: 7 (42)", printable; says more than the number
	 * also without a Status */
	char text[STATUS_TEXT];
};

/* Reads a refusal. BODY is at most the first few kB, perhaps not a Status. CODE is the HTTP status,
 * 0 for an ERROR event (its Status has the code). RETRY_AFTER_NS is the header's; 0: none. */
void status_read(int code, uint64_t retry_after_ns, struct bytes body, struct status *ret_status);

/* Returns whether BODY is a web page, as proxies and login pages answer, also with status 200. */
bool status_is_web_page(struct bytes body);
#define STATUS_WEB_PAGE \
	"a web page, and no answer of an API server: is 'server' in the kubeconfig right, or " \
	"does a proxy or a login page answer?"

/* Makes the status of a failure without an answer; TEXT says why it failed. */
void status_set(enum failure_kind kind, const char *text, struct status *ret_status);

#endif
