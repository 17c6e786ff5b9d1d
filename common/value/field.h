/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields as field selectors name them (docs/protocol.md 10.3): a path into the object; an absent
 * field counts as "". For a few built-in kinds the API server gives a name another meaning, a
 * field label: it has a default, or is another name for a field, or for the first of two fields
 * that is not empty. A field label has this meaning in objects of its kind only, and is a path
 * in all others.
 */
#ifndef COMMON_VALUE_FIELD_H
#define COMMON_VALUE_FIELD_H

#include "common/value/path.h"

struct field;

/* Parses NAME. Any path is a field, not only those that the API server knows of a kind.
 * Returns: 0, or ERR_SYNTAX if NAME is no path. Free with field_free(). */
int field_parse(struct bytes name, struct field **ret_field);
void field_free(struct field **field);

/* Returns the path of that name, borrowed. */
const struct path *field_path(const struct field *field);

/* Returns whether FIELD is a field label of some kind. If so, an index of the path of that name
 * can't tell which objects match. */
bool field_is_label(const struct field *field);

typedef int field_text_fn(void *arg, struct bytes text);

/* Calls TEXT_FN for each value of the field in DOCUMENT, until it returns other than 0. An
 * absent field has one value, its default. A document without a kind, such as an item of a list,
 * is taken to be of the label's kind.
 * Returns: the result of TEXT_FN, 0, or ERR_CORRUPT. */
int field_read(const struct field *field, struct bytes document, field_text_fn *text_fn, void *arg);

#endif
