/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses how a string is written in YAML so that every reader gets the same string back, also a
 * reader of YAML 1.1, which takes yes, 0x1 and 2026-01-01 for something else. libyaml itself falls
 * back to quotes for characters that a style cannot hold.
 */
#ifndef COMMON_VALUE_YAML_STYLE_H
#define COMMON_VALUE_YAML_STYLE_H

#include "common/bytes.h"

enum yaml_style {
	YAML_STYLE_PLAIN,
	YAML_STYLE_QUOTED,
	YAML_STYLE_LITERAL, /* a block of lines */
	YAML_STYLE_MAX
};

/* Returns the style for TEXT; a key is never literal. */
enum yaml_style yaml_string_style(struct bytes text, bool is_key);

#endif
