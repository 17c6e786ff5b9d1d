/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 as Unicode defines it: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef COMMON_TEXT_UTF8_H
#define COMMON_TEXT_UTF8_H

#include "common/bytes.h"

/* Returns the size of the valid first character of TEXT, 0 if there is none. */
size_t utf8_length(struct bytes text);

/* Returns the same for a printable character; 0 for a control character (U+0000 to U+001F, U+007F
 * to U+009F): a terminal acts on it. */
size_t utf8_printable(struct bytes text);
/* Replaces each unprintable byte of TEXT: newline and tab by a blank, others by '?'. */
void utf8_make_printable(char *text);

bool utf8_is_valid(struct bytes text);

/* Returns the number of characters; in invalid text, of the bytes other than continuation bytes. */
size_t utf8_width(struct bytes text);

/* Writes CODE, a Unicode scalar value, in 1 to 4 bytes. Returns their number. */
size_t utf8_put(uint32_t code, uint8_t *bytes);

/* ---- ASCII ----------------------------------------------------------------- */

/* ctype.h and strings.h ask the locale of the library's program: a Turkish one distinguishes
 * "INGRESSES" from "ingresses", others take bytes above 127 for letters. */

static inline char ascii_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static inline bool ascii_is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z');
}

/* Returns true if they are equal, ignoring case. */
static inline bool ascii_equal(struct bytes a, struct bytes b)
{
	const char *x = a.data, *y = b.data;

	for (size_t i = 0; a.size == b.size && i < a.size; i++)
		if (ascii_lower(x[i]) != ascii_lower(y[i]))
			return false;
	return a.size == b.size;
}

#endif
