/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields of field selectors (docs/protocol.md 10.3): a path into the object; an absent field counts
 * as "". For a few built-in kinds the API server has field labels: names with a default, or other
 * names for a field or for the first nonempty one of two. A field label is a path in objects of
 * other kinds.
 */
#ifndef COMMON_VALUE_FIELD_H
#define COMMON_VALUE_FIELD_H

#include "common/value/path.h"

struct field;

/* Parses NAME. Any path is a field, also one unknown to the API server. Returns: 0, or ERR_SYNTAX.
 * Free with field_free(). */
int field_parse(struct bytes name, struct field **ret_field);
void field_free(struct field **field);

/* Returns the path of that name, borrowed. */
const struct path *field_path(const struct field *field);

/* Returns true if FIELD is a field label of some kind: an index of its path can't decide matches
 * then. */
bool field_is_label(const struct field *field);

typedef int field_text_fn(void *arg, struct bytes text);

/* Calls TEXT_FN for each value of the field in DOCUMENT, until it returns other than 0. An absent
 * field has one value, its default. A document without a kind, such as an item of a list, counts as
 * of the label's kind. Returns: the result of TEXT_FN, 0, or ERR_CORRUPT. */
int field_read(const struct field *field, struct bytes document, field_text_fn *text_fn, void *arg);

#endif
