/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable buffer with a hard limit and a sticky error: after the first failure (no memory,
 * limit reached) further writes do nothing, and the caller asks once, at the end, with buf_error().
 *
 *	struct buf b = BUF_INIT;	(limit: 1 GiB; or buf_init with another)
 *	buf_str(&b, "kind=");
 *	buf_put(&b, data, size);
 *	if (buf_error(&b) < 0) ...
 *	use buf_bytes(&b); buf_release(&b);
 *
 * Bytes handed out live until the next write, reset or release.
 */
#ifndef COMMON_BUF_H
#define COMMON_BUF_H

#include "common/bytes.h"

struct buf {
	uint8_t *data;
	size_t size;     /* bytes in use */
	size_t capacity; /* bytes allocated */
	size_t limit;    /* never more than this; 0: 1 GiB */
	int error;       /* 0, -ENOMEM or ERR_TOO_LARGE */
	bool secret;     /* nothing of it is left in memory that is given back or used again */
};

#define BUF_INIT   ((struct buf){0})
#define BUF_SECRET ((struct buf){.secret = true})

void buf_init(struct buf *buf, size_t limit);
void buf_release(struct buf *buf);

/* Empties it and forgets the error; the memory is kept. */
void buf_reset(struct buf *buf);

/* Gives memory back when more than KEEP bytes are allocated; empties the buffer. */
void buf_trim(struct buf *buf, size_t keep);

void buf_put(struct buf *buf, const void *data, size_t size);
void buf_bytes_put(struct buf *buf, struct bytes bytes);
void buf_str(struct buf *buf, const char *text);
void buf_byte(struct buf *buf, uint8_t byte);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Makes room for SIZE more bytes and counts them as used; NULL after an error. */
void *buf_grow(struct buf *buf, size_t size);

/* Shortens to SIZE bytes. */
void buf_truncate(struct buf *buf, size_t size);

/* Drops the first SIZE bytes, moving the rest down. */
void buf_consume(struct buf *buf, size_t size);

struct bytes buf_bytes(const struct buf *buf);

/* The content with a NUL put behind it (not counted); "" without memory. */
const char *buf_cstr(struct buf *buf);

/* The sticky error with a sentence set, or 0. */
int buf_error(const struct buf *buf);

#endif
