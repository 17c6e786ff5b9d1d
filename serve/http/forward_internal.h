/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the forward group: forward.c (one request: sending, receiving, its end),
 * forward_head.c (the heads of request and answer), forward_body.c (where the answer's body ends).
 */
#ifndef SERVE_HTTP_FORWARD_INTERNAL_H
#define SERVE_HTTP_FORWARD_INTERNAL_H

#include "common/buf.h"
#include "serve/http/chunks.h"
#include "serve/http/forward.h"
#include "serve/http/head.h"

/* How the end of the answer's body is told. */
enum forward_framing { FORWARD_BODILESS, FORWARD_LENGTH, FORWARD_CHUNKED, FORWARD_UNTIL_END };

struct forward_body {
	enum forward_framing framing;
	uint64_t left; /* FORWARD_LENGTH */
	struct chunks chunks;
};

/* Writes the request's head. HOST, BASE: of the API server's URL. Returns: 0; 400: a header or the
 * path can't be passed on; errors. */
int forward_head_write(const struct exchange *x, struct bytes host, struct bytes base,
	bool uncompressed, struct buf *out);
/* Returns whether the body is sent in chunks, because its length is not known. */
bool forward_head_is_chunked(const struct exchange *x);
/* Chooses the headers of the answer that the client gets. Returns how many. */
size_t forward_head_answer(const struct request_head *head, bool tunnel,
	struct exchange_header *ret_headers, size_t room);

/* Takes bytes that came. Returns how many were taken, SIZE_MAX if they are malformed; a run of the
 * body is in RET_DATA (an offset) and RET_SIZE. */
size_t forward_body_take(struct forward_body *body, const uint8_t *bytes, size_t size,
	size_t *ret_data, size_t *ret_size);
bool forward_body_ended(const struct forward_body *body);

#endif
