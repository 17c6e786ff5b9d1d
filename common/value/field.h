/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields as field selectors name them (docs/protocol.md 10.3): a path into the object, where
 * absence counts as "". For objects of some built-in kinds a name is a label of the API server's that is more than
 * that: it has a default, or is another name of a field, or of the first of two that says something.
 * Those names mean this in objects of their kind only; in any other object they are the path they read
 * as.
 */
#ifndef COMMON_VALUE_FIELD_H
#define COMMON_VALUE_FIELD_H

#include "common/value/path.h"

struct field;

/* Any path is a field, not only those the API server knows of a kind. ERR_SYNTAX: "field label not
 * supported: ...". Free with field_free. */
int field_parse(struct bytes name, struct field **ret_field);
void field_free(struct field **field);

/* Is it a label of any kind's? Then an index of the path it reads as does not tell who matches. */
bool field_is_label(const struct field *field);

typedef int field_text_fn(void *arg, struct bytes text);

/* Calls TEXT_FN for each value of the document's field, at least once: with what absence counts as when
 * there is none. Its first non-zero result ends that and is the result. ERR_CORRUPT. A document without
 * a kind, as items of the server's lists are, is taken to be of the label's. */
int field_read(const struct field *field, struct bytes document, field_text_fn *text_fn, void *arg);

#endif
