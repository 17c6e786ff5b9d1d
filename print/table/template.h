/* SPDX-License-Identifier: Apache-2.0 */
/*
 * -o jsonpath=TEMPLATE, as kubectl's:
 *
 *	{.spec.nodeName}                              the values at a path (common/value/path.h)
 *	{range .items[*]}{.metadata.name}{"\n"}{end}  for each value at a path; ranges nest
 *	text  {"text\t"}  {'text'}                    as it is; in quotes \n, \t, \u00e9 are escapes
 *
 * Values of one path are separated by blanks, maps and lists are JSON with sorted keys. As
 * -o jsonpath-as-json each part of the template is a JSON list of its values.
 *
 *	template_parse(text, &template);
 *	template_begin(template, is_list);
 *	template_object(template, body)...;
 *	template_end(template, rv, &out);
 *	template_free(&template);
 *
 * The objects of a list are items of a List. If each outermost path begins with .items[*], one pass
 * over the objects is enough: only the output of each part is kept, because a later object may add
 * to it. Any other template needs the whole List in memory.
 */
#ifndef PRINT_TABLE_TEMPLATE_H
#define PRINT_TABLE_TEMPLATE_H

#include <stdbool.h>

#include "common/buf.h"
#include "common/bytes.h"

struct template;

/* Returns 0 or ERR_SYNTAX, with the position in the text. */
int template_parse(const char *text, struct template **ret_template);
void template_free(struct template **template);

/* Switches the output to jsonpath-as-json. */
void template_use_json(struct template *template);

/* IS_LIST: the objects are items of a List; else there is one object, and paths begin in it. May be
 * called again after template_end(). */
int template_begin(struct template *template, bool is_list);
/* Adds the next object, BODY in msgpack. */
int template_object(struct template *template, struct bytes body);
/* Appends the output. RV: of the List, "" if it is not known. */
int template_end(struct template *template, const char *rv, struct buf *out);

#endif
