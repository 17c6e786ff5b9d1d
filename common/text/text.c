/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/text.h"

#include <string.h>

#include "common/check.h"
#include "common/text/utf8.h"

size_t text_put_visible(struct bytes text, struct buf *out)
{
	const uint8_t *p = text.data;

	if (*p >= 0x20 && *p < 0x7f) {
		buf_byte(out, *p);
		return 1;
	}
	size_t n = utf8_length(text);
	if (n == 0 || utf8_printable(text))
		buf_put(out, p, n ? n : 1);
	else if (*p == '\r')
		buf_str(out, "\\r"); /* kubectl's spelling */
	else if (n == 2)
		buf_printf(out, "\\u%04x", p[1]); /* its last byte is its number */
	else
		buf_printf(out, "^%c", *p ^ 0x40);
	return n ? n : 1;
}

size_t text_plain(struct bytes text)
{
	const uint64_t each = 0x0101010101010101u;
	const uint8_t *p = text.data;
	size_t n = 0;

	for (; text.size - n >= 8; n += 8) {
		uint64_t eight = le64_get(p + n);

		/* The highest bit is set of the first byte above 0x7e or below 0x20, and perhaps of
		 * later ones. */
		if ((eight | (eight + each) | (eight - 0x20 * each)) & 0x80 * each)
			break;
	}
	while (n < text.size && p[n] >= 0x20 && p[n] < 0x7f)
		n++;
	return n;
}

void text_put_quoted(struct bytes text, struct buf *out)
{
	const uint8_t *p = text.data;

	buf_byte(out, '"');
	for (size_t i = 0; i < text.size; i++) {
		if (p[i] < 0x20 || p[i] == 0x7f)
			buf_printf(out, "\\x%02x", p[i]);
		else
			buf_escape(out, BYTES(p + i, 1), "\"\\");
	}
	buf_byte(out, '"');
}

void text_put_valid(struct bytes text, struct buf *out)
{
	const uint8_t *p = text.data;

	for (size_t n, at = 0; at < text.size; at += n ? n : 1) {
		n = utf8_length(BYTES(p + at, text.size - at));
		buf_put(out, n ? p + at : (const uint8_t *)"\xef\xbf\xbd", n ? n : 3);
	}
}

static bool text_is_inside(uint8_t byte)
{
	return (byte & 0xc0) == 0x80;
}

size_t text_shorten(struct bytes text, char *to, size_t size)
{
	static const char gap[] = " ... ";
	const uint8_t *p = text.data;

	REQUIRE(size >= 16);
	if (text.size < size) {
		memcpy(to, p, text.size);
		to[text.size] = '\0';
		return text.size;
	}
	size_t kept = size - sizeof(gap), head = kept / 2, tail = kept - head;
	while (head && text_is_inside(p[head]))
		head--;
	while (tail && text_is_inside(p[text.size - tail]))
		tail--;
	memcpy(to, p, head);
	memcpy(to + head, gap, sizeof(gap) - 1);
	memcpy(to + head + sizeof(gap) - 1, p + text.size - tail, tail);
	size = head + sizeof(gap) - 1 + tail;
	to[size] = '\0';
	return size;
}
