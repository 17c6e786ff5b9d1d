/* SPDX-License-Identifier: Apache-2.0 */
/* A value within an object, as text for people: custom columns, jsonpath, describe. */
#ifndef READER_COMMAND_PART_H
#define READER_COMMAND_PART_H

#include "common/buf.h"
#include "common/value/value.h"

/* All bytes of VALUE, a document of its own. 0 or ERR_CORRUPT. Borrowed from the same body. */
int part_bytes(const struct value *value, struct bytes *ret_document);

/* Scalars as their text, strings without quotes; maps and lists as compact JSON. 0 or an error. */
int part_text(const struct value *value, struct buf *out);
/* The same as one line that is safe to show. */
int part_line(const struct value *value, struct buf *out);

/* Control characters as ^J and ^[: a table keeps its rows, and nobody's annotation talks to the
 * terminal. */
void visible_put(struct bytes text, struct buf *out);

#endif
