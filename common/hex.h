/* SPDX-License-Identifier: Apache-2.0 */
/* Hexadecimal digits in text. */
#ifndef COMMON_HEX_H
#define COMMON_HEX_H

/* Returns the value of a digit of either case, or -1 if C is none. */
static inline int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

#endif
