/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small answer as a whole: one GET whose body is collected up to a limit and handed over at the
 * end. For discovery and identity; lists and watches are streamed (http.h).
 */
#ifndef REFLECTOR_FETCH_H
#define REFLECTOR_FETCH_H

#include "common/bytes.h"
#include "reflector/wire/http.h"

struct fetch;

struct fetch_answer {
	int result;               /* as http_request.on_done; ERR_TOO_LARGE above the limit */
	int status;
	const char *content_type; /* "" when absent */
	const char *etag;         /* likewise */
	struct bytes body;
};

/* ANSWER is borrowed for the call; the fetch is gone when it returns. */
typedef void fetch_done_fn(void *arg, const struct fetch_answer *answer);

struct fetch_request {
	const char *path;
	const char *accept; /* NULL: application/json */
	const char *etag;   /* of what is known: the answer may be 304. NULL: nothing is */
	size_t limit;       /* bytes of body */
	uint64_t total_ns;
	fetch_done_fn *done;
	void *arg;
};

int fetch_start(struct http *http, const struct fetch_request *request, struct fetch **ret_fetch);
/* No callback after it; NULL is fine. */
void fetch_cancel(struct fetch **fetch);

#endif
