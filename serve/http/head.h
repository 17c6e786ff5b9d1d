/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the head of an HTTP/1.1 or 1.0 request, strictly as RFC 9112 writes one. Ambiguous heads
 * are refused, because kinf-serve also relays requests (request smuggling).
 *
 *	end = head_find_end(bytes, size, &from);	0: more bytes are needed
 *	r = head_parse(bytes, end, &head, NULL, &error);	changes names to lower case in place
 */
#ifndef SERVE_HTTP_HEAD_H
#define SERVE_HTTP_HEAD_H

#include "serve/exchange.h"

#define HEAD_FIELDS_MAX 200

struct request_head {
	enum exchange_version version; /* 1.0 or 1.1 */
	struct bytes method, path, query, host;
	struct exchange_header fields[HEAD_FIELDS_MAX]; /* without Host */
	size_t n_fields;
	uint64_t length; /* content-length, 0 if there is none */
	bool has_length, chunked;
	bool close; /* the connection ends after the answer */
	bool expects_continue;
	bool upgrade; /* Connection: upgrade */
};

/* An error: the status of the answer and a sentence, static. */
struct head_error {
	int status;
	const char *why;
};

/* Searches the head's end from *FROM on, which begins as 0. Returns the size of the head with its
 * empty line; 0 if it is incomplete; SIZE_MAX if a line ends with a bare LF, so that the head would
 * never end. */
size_t head_find_end(const uint8_t *bytes, size_t size, size_t *from);

/* Parses the head of SIZE bytes, as head_find_end() returned it. All texts point into BYTES. With
 * RET_STATUS it is a server's answer, and RET_HEAD has no method, path, query and host. Returns
 * whether it is one; if not, *RET_ERROR is set. */
bool head_parse(uint8_t *bytes, size_t size, struct request_head *ret_head, int *ret_status,
	struct head_error *ret_error);
/* Takes the first of a list of words ("keep-alive, Upgrade") off *REST; size 0: none is left. */
struct bytes head_next_word(struct bytes *rest);

#endif
