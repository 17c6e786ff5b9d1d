/* SPDX-License-Identifier: Apache-2.0 */
/*
 * -o jsonpath=TEMPLATE: the part of kubectl's templates that one pass over the objects can answer:
 *
 *	{.spec.nodeName}                                   the value, or values, at a field path
 *	{.items[*].metadata.name}  {.items[0].kind}        of a list, its objects or one of them
 *	{range .items[*]}{.metadata.name}{"\n"}{end}       for each; ranges nest
 *	text  {"text\t"}                                   as it is; \n \t \r \\ \" in quotes
 *
 * Values are separated by blanks. Filters, slices and unions are not supported; -l and
 * --field-selector select objects.
 *
 *	template_parse(text, &template); template_begin(template, is_list);
 *	template_object(template, body)...; template_end(template, &out); template_free(&template);
 *
 * For a list, the output of each part is kept until the end, because a later object may add to it.
 */
#ifndef READER_TABLE_TEMPLATE_H
#define READER_TABLE_TEMPLATE_H

#include <stdbool.h>

#include "common/buf.h"
#include "common/bytes.h"

struct template;

/* Returns 0 or ERR_SYNTAX, with the position in the text. */
int template_parse(const char *text, struct template **ret_template);
void template_free(struct template **template);

/* IS_LIST: the objects are items of a List; else there is one object, and paths begin in it.
 * Returns 0, or ERR_SYNTAX if the template asks for something else of the List than its items. */
int template_begin(struct template *template, bool is_list);
/* Adds the next object, BODY in msgpack. */
int template_object(struct template *template, struct bytes body);
int template_end(struct template *template, struct buf *out);

#endif
