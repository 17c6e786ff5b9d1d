/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses a string's style as go-yaml does for kubectl: plain if a reader of YAML 1.1 gets the
 * string back (not yes, 0x1, 2026-01-01); else in quotes; several lines as a block.
 */
#ifndef COMMON_VALUE_YAML_STYLE_H
#define COMMON_VALUE_YAML_STYLE_H

#include "common/bytes.h"

enum yaml_style {
	YAML_STYLE_WORD, /* plain, without blanks */
	YAML_STYLE_PLAIN,
	YAML_STYLE_SINGLE_QUOTED,
	YAML_STYLE_DOUBLE_QUOTED,
	YAML_STYLE_LITERAL, /* a block of lines */
	YAML_STYLE_MAX
};

/* Returns the style for TEXT. IS_KEY: for a key in one line, never a block. */
enum yaml_style yaml_string_style(struct bytes text, bool is_key);

/* Returns true if the key TEXT, of STYLE, goes before a colon; others go in lines of their own
 * after a question mark. */
bool yaml_is_simple_key(struct bytes text, enum yaml_style style);

/* Returns the size of the character of TEXT at AT, at most the rest of TEXT. */
static inline size_t yaml_char_size(struct bytes text, size_t at)
{
	uint8_t first = ((const uint8_t *)text.data)[at];
	size_t size = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

	return size <= text.size - at ? size : text.size - at;
}

/* Returns true if the character of TEXT at AT ends a line: \n, \r, U+0085, U+2028, U+2029. */
bool yaml_is_break(struct bytes text, size_t at);

/* Returns the offset of the last line break before END; END: none. */
size_t yaml_last_break(struct bytes text, size_t end);

/* Returns true if the character of TEXT at AT needs an escape within double quotes. */
bool yaml_needs_escape(struct bytes text, size_t at);

#endif
