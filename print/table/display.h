/* SPDX-License-Identifier: Apache-2.0 */
/* A value within an object as text for people: custom columns, jsonpath, kinf describe. */
#ifndef PRINT_TABLE_DISPLAY_H
#define PRINT_TABLE_DISPLAY_H

#include "common/buf.h"
#include "common/value/value.h"

/* Returns the text of a scalar as printed by kubectl, numbers as Go's %v: 1e-07, 1.5e+06. Otherwise
 * as value_scalar_text(). */
int display_scalar(const struct value *value, char *scratch, struct bytes *ret_text);

/* Appends the same as one line, as display_bytes() does. */
int display_line(const struct value *value, struct buf *out);

/* Appends a value as kubectl's jsonpath does: a scalar as display_scalar(), null as "null", a
 * map or list as JSON with its keys in order. */
int display_sorted(const struct value *value, struct buf *out);
/* Appends a value as JSON with its keys in order, in lines indented by INDENT blanks a level. The
 * value stands within LEVEL maps and lists; its first line is not indented. */
int display_json(const struct value *value, unsigned indent, unsigned level, struct buf *out);
/* Appends a value as kubectl's custom columns do, in one line: maps as map[a:1 b:2], lists as [x
 * y], null as <nil>. */
int display_go(const struct value *value, struct buf *out);

/* Appends TEXT with control characters as ^J and ^[, so that a table keeps its rows and an
 * annotation can't send commands to the terminal. */
void display_bytes(struct bytes text, struct buf *out);

#endif
