/* SPDX-License-Identifier: Apache-2.0 */
#include "common/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/check.h"
#include "common/err.h"

#define DEFAULT_LIMIT ((size_t)1 << 30)
#define FIRST_SIZE    ((size_t)64)

static size_t buf_limit(const struct buf *buf)
{
	return buf->limit ? buf->limit : DEFAULT_LIMIT;
}

void buf_init(struct buf *buf, size_t limit)
{
	*buf = (struct buf){.limit = limit};
}

static void buf_wipe(struct buf *buf)
{
	if (buf->secret && buf->data)
		explicit_bzero(buf->data, buf->capacity);
}

void buf_release(struct buf *buf)
{
	buf_wipe(buf);
	free(buf->data);
	*buf = (struct buf){.limit = buf->limit, .secret = buf->secret};
}

void buf_reset(struct buf *buf)
{
	buf_wipe(buf);
	buf->size = 0;
	buf->error = 0;
}

void buf_trim(struct buf *buf, size_t keep)
{
	if (buf->capacity > keep)
		buf_release(buf);
	else
		buf_reset(buf);
}

void buf_fit(struct buf *buf)
{
	uint8_t *data = buf->data && !buf->secret ? realloc(buf->data, buf->size + 1) : NULL;

	if (!data)
		return;
	buf->data = data;
	buf->capacity = buf->size + 1;
}

/* Makes room for SIZE more bytes and a NUL. buf_error() sets the sentence of an error. */
static int buf_reserve(struct buf *buf, size_t size)
{
	if (buf->error)
		return buf->error;
	if (size > buf_limit(buf) - buf->size)
		return buf->error = ERR_TOO_LARGE;
	size_t need = buf->size + size + 1;
	if (need <= buf->capacity)
		return 0;
	size_t capacity = buf->capacity ? buf->capacity : FIRST_SIZE;
	while (capacity < need)
		capacity += capacity / 2 + 1;
	uint8_t *data = buf->secret ? malloc(capacity) : realloc(buf->data, capacity);
	if (!data)
		return buf->error = -ENOMEM;
	if (buf->secret && buf->data) { /* realloc would leave a copy behind */
		memcpy(data, buf->data, buf->size);
		buf_wipe(buf);
		free(buf->data);
	}
	buf->data = data;
	buf->capacity = capacity;
	return 0;
}

void *buf_grow(struct buf *buf, size_t size)
{
	/* Inline: bodies are made of many small pieces, and nearly all have room. */
	bool has_room = !buf->error && size < buf->capacity - buf->size &&
			size <= buf_limit(buf) - buf->size;

	if (!has_room && buf_reserve(buf, size) < 0)
		return NULL;
	void *place = buf->data + buf->size;
	buf->size += size;
	return place;
}

size_t buf_spare(const struct buf *buf)
{
	/* One byte is kept for the NUL of buf_cstr(). */
	size_t most = buf->capacity ? buf->capacity - 1 : 0, limit = buf_limit(buf);

	most = most < limit ? most : limit;
	return buf->error || most < buf->size ? 0 : most - buf->size;
}

void buf_put(struct buf *buf, const void *data, size_t size)
{
	if (!size)
		return;
	void *place = buf_grow(buf, size);
	if (place)
		memcpy(place, data, size);
}

void buf_blanks(struct buf *buf, size_t count)
{
	void *place = count ? buf_grow(buf, count) : NULL;

	if (place)
		memset(place, ' ', count);
}

void buf_bytes_put(struct buf *buf, struct bytes bytes)
{
	buf_put(buf, bytes.data, bytes.size);
}

void buf_str(struct buf *buf, const char *text)
{
	buf_put(buf, text, strlen(text));
}

void buf_byte(struct buf *buf, uint8_t byte)
{
	buf_put(buf, &byte, 1);
}

void buf_escape(struct buf *buf, struct bytes text, const char *marks)
{
	const char *p = text.data;

	for (size_t i = 0; i < text.size; i++) {
		if (p[i] && strchr(marks, p[i]))
			buf_byte(buf, '\\');
		buf_byte(buf, (uint8_t)p[i]);
	}
}

void buf_vprintf(struct buf *buf, const char *format, va_list args)
{
	size_t room = buf->data ? buf->capacity - buf->size : 0;
	va_list again;

	va_copy(again, args);
	int n = vsnprintf(room ? (char *)buf->data + buf->size : NULL, room, format, again);
	va_end(again);
	if (n >= 0 && buf_reserve(buf, (size_t)n) == 0) {
		if ((size_t)n >= room) /* it was cut */
			(void)vsnprintf((char *)buf->data + buf->size, (size_t)n + 1, format, args);
		buf->size += (size_t)n;
	}
}

void buf_printf(struct buf *buf, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	buf_vprintf(buf, format, args);
	va_end(args);
}

void buf_truncate(struct buf *buf, size_t size)
{
	REQUIRE(size <= buf->size);
	buf->size = size;
}

void buf_consume(struct buf *buf, size_t size)
{
	REQUIRE(size <= buf->size);
	if (size && size < buf->size)
		memmove(buf->data, buf->data + size, buf->size - size);
	buf->size -= size;
}

struct bytes buf_bytes(const struct buf *buf)
{
	return BYTES(buf->data, buf->size);
}

const char *buf_cstr(struct buf *buf)
{
	if (!buf->data && buf_reserve(buf, 0) < 0)
		return "";
	buf->data[buf->size] = '\0';
	return (const char *)buf->data;
}

int buf_error(const struct buf *buf)
{
	if (!buf->error)
		return 0;
	return err_set(buf->error, "buffer of %zu bytes, limit %zu", buf->size, buf_limit(buf));
}

int buf_read_file(struct buf *buf, int fd, const char *file)
{
	uint8_t chunk[16384];
	ssize_t n;

	while (!buf->error && (n = read(fd, chunk, sizeof(chunk))) != 0) {
		if (n < 0 && errno != EINTR)
			return err_set(-errno, "reading '%s'", file);
		if (n > 0)
			buf_put(buf, chunk, (size_t)n);
	}
	if (buf->secret)
		explicit_bzero(chunk, sizeof(chunk));
	int r = buf_error(buf);
	return r < 0 ? err_add(r, "reading '%s'", file) : 0;
}
