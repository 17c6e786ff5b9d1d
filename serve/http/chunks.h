/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the chunks of a request's body (RFC 9112, 7.1), as strictly as head.h. Extensions and
 * trailers are passed over; both are bounded. */
#ifndef SERVE_HTTP_CHUNKS_H
#define SERVE_HTTP_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Begins as zeroes. */
struct chunks {
	unsigned state;  /* chunks.c's own */
	uint64_t left;   /* of the chunk's data */
	unsigned digits; /* of the chunk's size */
	size_t passed;   /* bytes of extensions and trailers */
	bool line_empty; /* the trailer's line has no byte so far */
};

/* Takes bytes of the body. Returns how many were taken, SIZE_MAX if they are malformed. A run of
 * data is returned in RET_DATA (an offset) and RET_SIZE, 0 if the bytes had none; call again
 * with the rest until all bytes are taken or chunks_ended(). */
size_t chunks_take(struct chunks *chunks, const uint8_t *bytes, size_t size, size_t *ret_data,
	size_t *ret_size);
bool chunks_ended(const struct chunks *chunks);

#endif
