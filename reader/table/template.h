/* SPDX-License-Identifier: Apache-2.0 */
/*
 * -o jsonpath=TEMPLATE, of kubectl's templates what can be told in one walk over the objects:
 *
 *	{.spec.nodeName}                                   a field path (common/value/path.h), or several values
 *	{.items[*].metadata.name}  {.items[0].kind}        of a list, its objects or one of them
 *	{range .items[*]}{.metadata.name}{"\n"}{end}       for each; ranges nest
 *	text  {"text\t"}                                   as it is; \n \t \r \\ \" in quotes
 *
 * Values are separated by blanks. Filters, slices and unions are not known; -l and --field-selector
 * choose objects.
 *
 *	template_parse(text, &template); template_begin(template, is_list);
 *	template_object(template, body)...; template_end(template, &out); template_free(&template);
 *
 * What a list gives is kept until the end, when a part of the template can no longer get more.
 */
#ifndef READER_TABLE_TEMPLATE_H
#define READER_TABLE_TEMPLATE_H

#include <stdbool.h>

#include "common/buf.h"
#include "common/bytes.h"

struct template;

/* ERR_SYNTAX with a sentence. */
int template_parse(const char *text, struct template **ret_template);
void template_free(struct template **template);

/* IS_LIST: the objects are items of a List; else there is one, and the template begins in it.
 * ERR_SYNTAX: it asks for something else of a list than its items. */
int template_begin(struct template *template, bool is_list);
/* The next object's msgpack. 0 or an error. */
int template_object(struct template *template, struct bytes body);
int template_end(struct template *template, struct buf *out);

#endif
