/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses how a string is written in YAML, as go-yaml does for kubectl: plain if a reader of YAML
 * 1.1 gets the string back (yes, 0x1 and 2026-01-01 are others to it); else in quotes; several
 * lines as a block.
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

/* Returns the style for TEXT. IS_KEY: a key in one line, never a block. */
enum yaml_style yaml_string_style(struct bytes text, bool is_key);

/* Returns whether the key TEXT, of STYLE, is written before a colon, and not in lines of its own
 * after a question mark. */
bool yaml_is_simple_key(struct bytes text, enum yaml_style style);

/* Returns the bytes of the character of TEXT at AT; not more than there are. */
static inline size_t yaml_char_size(struct bytes text, size_t at)
{
	uint8_t first = ((const uint8_t *)text.data)[at];
	size_t size = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

	return size <= text.size - at ? size : text.size - at;
}

/* Returns whether the character of TEXT at AT ends a line: \n, \r, U+0085, U+2028, U+2029. */
bool yaml_is_break(struct bytes text, size_t at);

/* Returns where the line break before END begins; END: there is none. */
size_t yaml_last_break(struct bytes text, size_t end);

/* Returns whether the character of TEXT at AT is escaped within double quotes. */
bool yaml_needs_escape(struct bytes text, size_t at);

#endif
