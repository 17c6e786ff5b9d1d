/* SPDX-License-Identifier: Apache-2.0 */
/* The inner header of the selector group: the two grammars, selector_labels.c and
 * selector_fields.c, build a selector with functions of selector.c. selector_limit.c compares. */
#ifndef COMMON_VALUE_SELECTOR_INTERNAL_H
#define COMMON_VALUE_SELECTOR_INTERNAL_H

#include "common/value/quantity.h"
#include "common/value/selector.h"

/* the key for the time since an object's creation */
#define SELECTOR_AGE "age"

/* Makes a selector with a copy of TEXT. Keys and values for selector_add() point into the copy or
 * are static. */
int selector_new(const char *text, bool is_field, struct selector **ret_selector);

/* Returns that copy; the grammar may unescape it in place. */
char *selector_source(struct selector *selector);

/* Adds a requirement with a sorted copy of its values, each once. Returns: 0, -ENOMEM; ERR_SYNTAX:
 * the field KEY is no path. */
int selector_add(struct selector *selector, struct selector_requirement requirement);

bool selector_op_compares(enum selector_op op);

/* The right side of a comparison of fields. */
struct selector_limit {
	enum { LIMIT_NUMBER, LIMIT_TIME, LIMIT_AGE } type;
	bool is_relative;         /* to the present time */
	struct quantity quantity; /* LIMIT_NUMBER */
	int64_t time_ns;          /* else; LIMIT_AGE: creation time of an object of that age */
};

/* Reads TEXT, the right side for the field KEY. The present time is that of the call. Returns: 0,
 * ERR_SYNTAX. */
int selector_limit_read(struct bytes key, struct bytes text, struct selector_limit *ret_limit);

/* Returns true if a field with TEXT relates to LIMIT as OP requires. */
bool selector_limit_allows(
	const struct selector_limit *limit, enum selector_op op, struct bytes text);

/* Sorts the requirements and writes the canonical text; the grammar's last call. */
int selector_finish(struct selector *selector);

/* Parses a decimal int64 as Go's strconv.ParseInt: sign, digits, nothing else. */
bool selector_integer(struct bytes text, int64_t *ret_integer);

#endif
