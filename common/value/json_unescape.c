/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/json.h"

#include "common/text/decimal.h"
#include "common/text/utf8.h"

/* Returns the value of four hex digits, or -1. */
static int32_t json_read_hex(const uint8_t *p, const uint8_t *end)
{
	int32_t code = 0;

	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = hex_digit((char)p[i]);
		if (digit < 0)
			return -1;
		code = code << 4 | digit;
	}
	return code;
}

/* Reads the escape after a backslash: \uXXXX with the second half of a surrogate pair (half a pair
 * is U+FFFD), or one letter. Returns the character, or -1. */
static int32_t json_read_escape(const uint8_t **p, const uint8_t *end)
{
	static const char names[] = "\"\\/bfnrt", characters[] = "\"\\/\b\f\n\r\t";

	if (*p == end)
		return -1;
	uint8_t c = *(*p)++;
	if (c != 'u') {
		const char *name = c ? strchr(names, c) : NULL;
		return name ? characters[name - names] : -1;
	}
	int32_t code = json_read_hex(*p, end);
	if (code < 0)
		return -1;
	*p += 4;
	if (code < 0xd800 || code > 0xdfff)
		return code;
	if (code < 0xdc00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u') {
		int32_t low = json_read_hex(*p + 2, end);
		if (low >= 0xdc00 && low <= 0xdfff) {
			*p += 6;
			return 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00));
		}
	}
	return 0xfffd;
}

bool json_unescape(struct bytes raw, void *room, size_t room_size, size_t *ret_size)
{
	const uint8_t *p = raw.data, *end = p + raw.size;
	uint8_t *to = room, *to_end = to + room_size;
	bool whole = true;

	while (p < end && whole) {
		const uint8_t *backslash = memchr(p, '\\', (size_t)(end - p)), *from = p;
		size_t n = (size_t)((backslash ? backslash : end) - p);
		uint8_t character[4];

		p += n;
		if (!n) {
			p++;
			int32_t code = json_read_escape(&p, end);
			whole = code >= 0;
			n = whole ? utf8_put((uint32_t)code, character) : 0;
			from = character;
		}
		if (n > (size_t)(to_end - to)) {
			whole = false;
			n = 0;
		}
		memmove(to, from, n);
		to += n;
	}
	*ret_size = (size_t)(to - (uint8_t *)room);
	return whole;
}
