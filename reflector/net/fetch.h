/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One GET. Its body is collected up to a limit and handed over as a whole. Discovery and identity
 * use it; lists and watches are streamed (http.h).
 */
#ifndef REFLECTOR_NET_FETCH_H
#define REFLECTOR_NET_FETCH_H

#include "common/bytes.h"
#include "reflector/net/http.h"

struct fetch;

struct fetch_answer {
	int result; /* as http_request.on_done; ERR_TOO_LARGE above the limit */
	int status;
	const char *content_type; /* "" when absent */
	const char *etag;         /* "" when absent */
	struct bytes body;
};

/* Borrows ANSWER for the call. The fetch is freed when it returns. */
typedef void fetch_done_fn(void *arg, const struct fetch_answer *answer);

struct fetch_request {
	const char *path;
	const char *accept; /* NULL: application/json */
	const char *etag;   /* of the caller's copy: the answer may be 304. NULL: none */
	bool may_be_absent; /* as in struct http_request */
	size_t limit;       /* bytes of body; a longer one ends with ERR_TOO_LARGE */
	uint64_t total_ns;
	fetch_done_fn *done;
	void *arg;
};

/* Starts the request. Returns: 0, ERR_UNSUPPORTED, -ENOMEM. */
int fetch_start(struct http *http, const struct fetch_request *request, struct fetch **ret_fetch);
/* Ends the fetch without a callback. Accepts NULL. */
void fetch_cancel(struct fetch **fetch);

#endif
