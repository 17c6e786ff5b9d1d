/* SPDX-License-Identifier: Apache-2.0 */
/* Status objects, the API server's errors (spec: meta/v1 Status; texts as kube-apiserver 1.36's).
 */
#ifndef SIMULATOR_STATUS_H
#define SIMULATOR_STATUS_H

#include "tests/simulator/http.h"

struct status {
	unsigned code;
	const char *reason;       /* "" is left out */
	const char *details;      /* JSON object, or NULL */
	unsigned retry_after;     /* seconds, as the details say; 0: none */
	const char *continuation; /* metadata.continue, or NULL */
};

/* Appends the object, compact. */
void status_put(struct buf *out, const struct status *status, const char *message);

/* The same as the whole answer. */
void status_answer(struct http_answer *answer, const struct status *status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* 400 BadRequest. */
void status_bad_request(struct http_answer *answer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* 404: no such resource below a known group version. */
void status_no_resource(struct http_answer *answer);

/* 504: RV is above the server's, CURRENT. As an answer, and as the object of an ERROR event. */
void status_too_large(struct http_answer *answer, uint64_t rv, uint64_t current);
void status_put_too_large(struct buf *out, uint64_t rv, uint64_t current);

#endif
