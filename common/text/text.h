/* SPDX-License-Identifier: Apache-2.0 */
/* Text of others, made fit for a terminal or for JSON. */
#ifndef COMMON_TEXT_TEXT_H
#define COMMON_TEXT_TEXT_H

#include "common/buf.h"

/* Appends the first character of TEXT, not empty, or a byte that begins none; a control character
 * in a visible form: ^A, \u0085. Returns its size in TEXT. */
size_t text_put_visible(struct bytes text, struct buf *out);
/* Returns the number of printable ASCII bytes at the beginning of TEXT, unchanged by
 * text_put_visible(). */
size_t text_plain(struct bytes text);
/* Appends TEXT with U+FFFD in place of each invalid byte. */
void text_put_valid(struct bytes text, struct buf *out);

#endif
