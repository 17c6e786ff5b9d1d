/* SPDX-License-Identifier: Apache-2.0 */
/* How the two grammars (selector_labels.c, selector_fields.c) make a selector. Of no other use. */
#ifndef COMMON_VALUE_SELECTOR_BUILD_H
#define COMMON_VALUE_SELECTOR_BUILD_H

#include "common/value/selector.h"

/* Keeps a copy of TEXT: keys and values given to selector_add() point into it or are static. */
int selector_new(const char *text, bool is_field, struct selector **ret_selector);

/* That copy; may be changed where unescaping makes it shorter. */
char *selector_source(struct selector *selector);

/* Adds a requirement with copies of the N_VALUES values, sorted, each once. -ENOMEM; for fields
 * also ERR_SYNTAX when KEY is no path. */
int selector_add(struct selector *selector, struct selector_requirement requirement);

/* Sorts the requirements and writes the canonical text. To be called once, at the end. */
int selector_finish(struct selector *selector);

/* Decimal int64 as Go's strconv.ParseInt takes it: sign, digits, nothing else. */
bool selector_integer(struct bytes text, int64_t *ret_integer);

#endif
