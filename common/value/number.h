/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON numbers, and the one rule that decides how a body keeps them: in the first of int64, uint64
 * and double that gives the same text back, else as text. "Gives back" means the forms below, which
 * are those of Go's encoding/json, so that what an API server in Go wrote mostly fits a number.
 * Nothing here depends on the locale.
 */
#ifndef COMMON_VALUE_NUMBER_H
#define COMMON_VALUE_NUMBER_H

#include "common/bytes.h"

/* Room for any text that the functions below write. They add no NUL and return the length. */
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

/* TEXT is a number by JSON's grammar, with nothing around it. */
bool number_is_valid(struct bytes text);

/* 0, or ERR_SYNTAX without a sentence (the caller knows the place). */
int number_parse(struct bytes text, struct number *ret_number);

size_t number_format_int(int64_t i, char *text);
size_t number_format_uint(uint64_t u, char *text);

/* The shortest digits that read back as D, which must be finite: 0.5, 100000, 1e-7, 1e+21, -0. */
size_t number_format_double(double d, char *text);

#endif
