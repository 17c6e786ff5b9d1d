/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the selector group: selector_labels.c and selector_fields.c, the two grammars, build a
 * selector with these functions of selector.c. */
#ifndef COMMON_VALUE_SELECTOR_INTERNAL_H
#define COMMON_VALUE_SELECTOR_INTERNAL_H

#include "common/value/selector.h"

/* Makes a selector with a copy of TEXT. Keys and values for selector_add() point into that copy or are
 * static. */
int selector_new(const char *text, bool is_field, struct selector **ret_selector);

/* Returns that copy, which the grammar may change where unescaping makes it shorter. */
char *selector_source(struct selector *selector);

/* Adds a requirement with a sorted copy of its values, each once.
 * Returns: 0, -ENOMEM; for fields also ERR_SYNTAX if KEY is no path. */
int selector_add(struct selector *selector, struct selector_requirement requirement);

/* Sorts the requirements and writes the canonical text. The grammar calls it once, at the end. */
int selector_finish(struct selector *selector);

/* Parses a decimal int64 as Go's strconv.ParseInt does: sign, digits, nothing else. */
bool selector_integer(struct bytes text, int64_t *ret_integer);

#endif
