/* SPDX-License-Identifier: Apache-2.0 */
/* Text of others, made fit for a terminal or for JSON. */
#ifndef COMMON_TEXT_TEXT_H
#define COMMON_TEXT_TEXT_H

#include "common/buf.h"

/* Appends the character at the beginning of TEXT, which is not empty, or the byte that begins
 * none; a control character in a form that people see: ^A, \u0085. Returns its size in TEXT. */
size_t text_put_visible(struct bytes text, struct buf *out);
/* Returns how many bytes at the beginning of TEXT are printable ASCII, which text_put_visible()
 * gives as they are. */
size_t text_plain(struct bytes text);
/* Appends TEXT with U+FFFD in the place of each byte that is of no character. */
void text_put_valid(struct bytes text, struct buf *out);

#endif
