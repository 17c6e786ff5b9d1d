/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers written by people: decimal digits only, no blanks, no sign, no overflow. */
#ifndef COMMON_TEXT_DECIMAL_H
#define COMMON_TEXT_DECIMAL_H

#include "common/bytes.h"

/* Parses TEXT, a number of at most MAX. Returns: 0, or ERR_SYNTAX ("not a number: 'x'", "more than
 * 5: '7'"); the caller adds the number's name. */
int decimal_parse(struct bytes text, uint64_t max, uint64_t *ret_number);

/* ---- hexadecimal digits ---------------------------------------------------- */

/* Returns the value of a digit of either case, or -1. */
static inline int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

#endif
