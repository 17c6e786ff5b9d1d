/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server with fixed answers on loopback, HTTP/1.1 without TLS, in threads of the test. Serves
 * cases too small for the whole simulated API server, and faults below HTTP.
 */
#ifndef TESTS_UNIT_API_STUB_H
#define TESTS_UNIT_API_STUB_H

#include <stddef.h>

enum api_stub_fault {
	STUB_GOOD,
	STUB_CUT,         /* closes in the middle of the body */
	STUB_RESET,       /* resets the connection instead of an answer */
	STUB_SILENT,      /* takes the request and says nothing */
	STUB_SILENT_BODY, /* sends headers and the body, but does not end it */
	STUB_GARBAGE,     /* answers without HTTP */
};

struct api_stub_answer {
	const char *path; /* without query; NULL ends the list. Paths not listed: 404 */
	int status;
	const char *content_type;
	const char *body;
	const char *headers; /* more of them, each with \r\n; NULL: none */
	enum api_stub_fault fault;
	size_t size;       /* of the body, 0: it is text */
	const char *query; /* only for requests with this in their query; NULL: for all */
	size_t until;      /* only for the first so many requests of the stub; 0: for all */
};

struct api_stub;

/* ANSWERS are copied, the texts in them are borrowed. Fails the test when it can't start. */
struct api_stub *api_stub_start(const struct api_stub_answer *answers);
void api_stub_stop(struct api_stub **stub);

/* "http://127.0.0.1:PORT"; lives as long as the stub. */
const char *api_stub_url(const struct api_stub *stub);

/* Requests so far, connections so far, and the whole head of the last request (until the next
 * call). */
size_t api_stub_count(struct api_stub *stub);
size_t api_stub_connections(struct api_stub *stub);
const char *api_stub_last(struct api_stub *stub);

#endif
