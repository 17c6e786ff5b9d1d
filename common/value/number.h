/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON numbers, and the one rule of their form in bodies. A number becomes an int64, else a uint64,
 * else a double, if that writes back as the same text; otherwise the body keeps the text. The
 * functions below write numbers as Go's encoding/json does: few numbers of an API server need their
 * text. The locale does not matter.
 */
#ifndef COMMON_VALUE_NUMBER_H
#define COMMON_VALUE_NUMBER_H

#include "common/bytes.h"

/* Room for any text of number_format_*(). They add no NUL and return the length. */
#define NUMBER_TEXT_MAX 40

enum number_form { NUMBER_INT, NUMBER_UINT, NUMBER_DOUBLE, NUMBER_TEXT };

struct number {
	enum number_form form;
	union {
		int64_t i;  /* NUMBER_INT: below 0 */
		uint64_t u; /* NUMBER_UINT */
		double d;   /* NUMBER_DOUBLE: finite */
	} u;
};

/* Returns true if TEXT is exactly one number of JSON's grammar. */
bool number_is_valid(struct bytes text);

/* Sets the form of the number TEXT. Returns false if TEXT is none. */
bool number_parse(struct bytes text, struct number *ret_number);

/* Sets the double nearest to TEXT. Returns false if TEXT is no number. */
bool number_value(struct bytes text, double *ret_value);

size_t number_format_int(int64_t i, char *text);
size_t number_format_uint(uint64_t u, char *text);

/* Writes the shortest digits that read back as D, a finite double: 0.5, 100000, 1e-7, 1e+21, -0. */
size_t number_format_double(double d, char *text);

/* Writes the same digits as Go's %v: 0.5, 100000, 1e-07, 1.5e+06. */
size_t number_format_go(double d, char *text);

#endif
