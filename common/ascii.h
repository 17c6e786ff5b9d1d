/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Letters of ASCII. The functions of ctype.h and strings.h ask the locale, which is that of the
 * program that has loaded the
 * library: to a Turkish one "INGRESSES" and "ingresses" differ, and to others bytes above 127
 * are letters.
 */
#ifndef COMMON_ASCII_H
#define COMMON_ASCII_H

#include "common/bytes.h"

static inline char ascii_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static inline bool ascii_is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z');
}

/* Returns whether they are equal but for the case of letters. */
static inline bool ascii_equal(struct bytes a, struct bytes b)
{
	const char *x = a.data, *y = b.data;

	for (size_t i = 0; a.size == b.size && i < a.size; i++)
		if (ascii_lower(x[i]) != ascii_lower(y[i]))
			return false;
	return a.size == b.size;
}

#endif
