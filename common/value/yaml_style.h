/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a string is written in YAML so that every reader gets the same string back, those of YAML 1.1
 * included, which take yes, 0x1 and 2026-01-01 for other things. Which characters a style can carry
 * at all is libyaml's matter (it falls back to quotes); this is about what the text would mean.
 */
#ifndef COMMON_VALUE_YAML_STYLE_H
#define COMMON_VALUE_YAML_STYLE_H

#include "common/bytes.h"

enum yaml_style {
	YAML_STYLE_PLAIN,
	YAML_STYLE_QUOTED,
	YAML_STYLE_LITERAL, /* a block of lines, each as it is */
	YAML_STYLE_MAX
};

/* For a value; a key is never literal. */
enum yaml_style yaml_string_style(struct bytes text, bool is_key);

#endif
