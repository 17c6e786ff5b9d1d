/* SPDX-License-Identifier: Apache-2.0 */
/* A value within an object, as custom-columns and jsonpath print it. */
#ifndef READER_COMMAND_PART_H
#define READER_COMMAND_PART_H

#include "common/buf.h"
#include "common/value.h"

/* All bytes of VALUE, a document of its own. 0 or ERR_CORRUPT. Borrowed from the same body. */
int part_bytes(const struct value *value, struct bytes *ret_document);

/* Scalars as their text, strings without quotes; maps and lists as compact JSON. 0 or an error. */
int part_text(const struct value *value, struct buf *out);

#endif
