/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign text, made fit for a terminal or JSON. */
#ifndef COMMON_TEXT_TEXT_H
#define COMMON_TEXT_TEXT_H

#include "common/buf.h"

/* Appends the first character, or the invalid first byte, of the nonempty TEXT; a control character
 * visibly: ^A, \u0085. Returns its size in TEXT. */
size_t text_put_visible(struct bytes text, struct buf *out);
/* Returns the number of leading bytes of printable ASCII; text_put_visible() would copy them. */
size_t text_plain(struct bytes text);
/* Copies TEXT to the SIZE bytes at TO, 16 at least, and ends it with '\0'. A text that does not fit
 * loses its middle: the last words of an error say why. Returns the size without the '\0'. */
size_t text_shorten(struct bytes text, char *to, size_t size);
/* Appends TEXT in double quotes, with a backslash before quotes and backslashes, and control
 * characters as \x1b. */
void text_put_quoted(struct bytes text, struct buf *out);
/* Appends TEXT with U+FFFD for each invalid byte. */
void text_put_valid(struct bytes text, struct buf *out);

#endif
