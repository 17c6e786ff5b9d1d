/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable buffer with a hard limit and a sticky error: after the first failure (no memory, limit
 * reached) writes do nothing. The caller checks buf_error() once, at the end.
 *
 *	struct buf b = BUF_INIT;	(limit: 1 GiB; or buf_init with another)
 *	buf_str(&b, "kind=");
 *	buf_put(&b, data, size);
 *	if (buf_error(&b) < 0) ...
 *	use buf_bytes(&b); buf_release(&b);
 *
 * Returned bytes live until the next write, reset or release.
 */
#ifndef COMMON_BUF_H
#define COMMON_BUF_H

#include <stdarg.h>

#include "common/bytes.h"

struct buf {
	uint8_t *data;
	size_t size;     /* bytes in use */
	size_t capacity; /* bytes allocated */
	size_t limit;    /* most bytes; 0: 1 GiB */
	int error;       /* 0, -ENOMEM or ERR_TOO_LARGE */
	bool secret;     /* memory is wiped before it is freed or used again */
};

#define BUF_INIT   ((struct buf){0})
#define BUF_SECRET ((struct buf){.secret = true})

void buf_init(struct buf *buf, size_t limit);
void buf_release(struct buf *buf);

/* Empties the buffer and forgets the error; keeps the memory. */
void buf_reset(struct buf *buf);

/* Empties the buffer, and frees the memory if more than KEEP bytes are allocated. */
void buf_trim(struct buf *buf, size_t keep);

/* Frees the unused memory of a buffer with a long life. */
void buf_fit(struct buf *buf);

void buf_put(struct buf *buf, const void *data, size_t size);
void buf_bytes_put(struct buf *buf, struct bytes bytes);
void buf_str(struct buf *buf, const char *text);
void buf_byte(struct buf *buf, uint8_t byte);
void buf_blanks(struct buf *buf, size_t count);
/* Appends TEXT, with a backslash before each of the characters MARKS. */
void buf_escape(struct buf *buf, struct bytes text, const char *marks);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *buf, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

/* Appends SIZE bytes for the caller to fill in. Returns their address, or NULL after an error. */
void *buf_grow(struct buf *buf, size_t size);

/* Returns the number of bytes to append without an allocation or an error. */
size_t buf_spare(const struct buf *buf);

/* Shortens the buffer to SIZE bytes. */
void buf_truncate(struct buf *buf, size_t size);

/* Appends the rest of FD. FILE is for the sentence of an error. Returns 0 or an error;
 * ERR_TOO_LARGE at the buffer's limit. */
int buf_read_file(struct buf *buf, int fd, const char *file);

/* Removes the first SIZE bytes; moves the rest. */
void buf_consume(struct buf *buf, size_t size);

struct bytes buf_bytes(const struct buf *buf);

/* Returns the content with an uncounted NUL; "" without memory. */
const char *buf_cstr(struct buf *buf);

/* Returns the sticky error with its sentence, or 0. */
int buf_error(const struct buf *buf);

#endif
