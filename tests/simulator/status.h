/* SPDX-License-Identifier: Apache-2.0 */
/* Status objects, the errors of the API server (meta/v1 Status), with the texts of
 * kube-apiserver 1.36. */
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

/* Appends the object as compact JSON. */
void status_put(struct buf *out, const struct status *status, const char *message);

/* Makes the object the whole answer. */
void status_answer(struct http_answer *answer, const struct status *status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Answers 400 BadRequest. */
void status_bad_request(struct http_answer *answer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Answers 404: a known group version has no such resource. */
void status_no_resource(struct http_answer *answer);

/* 504 for an RV above the server's RV CURRENT: as an answer, and as the object of an ERROR event.
 */
void status_too_large(struct http_answer *answer, uint64_t rv, uint64_t current);
void status_put_too_large(struct buf *out, uint64_t rv, uint64_t current);

#endif
