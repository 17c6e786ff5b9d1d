/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/utf8.h"

#include <string.h>

size_t utf8_length(struct bytes text)
{
	const uint8_t *p = text.data;

	if (!text.size)
		return 0;
	if (*p < 0x80)
		return 1;
	if (*p < 0xc2 || *p >= 0xf5)
		return 0;

	/* The first byte has the length and limits the second (Unicode, table 3-7). */
	size_t n = *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;
	uint8_t low = *p == 0xe0 ? 0xa0 : *p == 0xf0 ? 0x90 : 0x80;
	uint8_t high = *p == 0xed ? 0x9f : *p == 0xf4 ? 0x8f : 0xbf;

	if (text.size < n || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	return n;
}

size_t utf8_printable(struct bytes text)
{
	const uint8_t *p = text.data;
	size_t n = utf8_length(text);

	return n && (*p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0)) ? 0 : n;
}

void utf8_make_printable(char *text)
{
	for (size_t n, left = strlen(text); left; text += n, left -= n) {
		n = utf8_printable(BYTES(text, left));
		if (n)
			continue;
		*text = *text == '\n' || *text == '\t' ? ' ' : '?';
		n = 1;
	}
}

bool utf8_is_valid(struct bytes text)
{
	const uint8_t *p = text.data, *end = p + text.size;

	while (p < end) {
		if (end - p >= 8 && !(le64_get(p) & 0x8080808080808080u)) {
			p += 8;
			continue;
		}
		if (*p < 0x80) {
			p++;
			continue;
		}
		size_t n = utf8_length(BYTES(p, (size_t)(end - p)));
		if (!n)
			return false;
		p += n;
	}
	return true;
}

size_t utf8_width(struct bytes text)
{
	const uint8_t *p = text.data;
	size_t width = 0;

	for (size_t i = 0; i < text.size; i++)
		width += (p[i] & 0xc0) != 0x80;
	return width;
}

size_t utf8_put(uint32_t code, uint8_t *bytes)
{
	if (code < 0x80) {
		bytes[0] = (uint8_t)code;
		return 1;
	}
	size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	for (size_t i = n; i-- > 1; code >>= 6)
		bytes[i] = (uint8_t)(0x80 | (code & 0x3f));
	bytes[0] = (uint8_t)(0xf00u >> n | code);
	return n;
}
