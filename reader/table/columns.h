/* SPDX-License-Identifier: Apache-2.0 */
/*
 * -o custom-columns=HEAD:PATH,HEAD:PATH..., as kubectl's: a table of the values at field paths
 * (common/value/path.h). Several values of one path are joined by commas, none is <none>.
 *
 *	columns_parse(text, &columns); table_init(&table, columns_heads(columns), columns_count(columns));
 *	columns_row(columns, body, &table, &out)...; columns_free(&columns);
 */
#ifndef READER_TABLE_COLUMNS_H
#define READER_TABLE_COLUMNS_H

#include "common/bytes.h"
#include "reader/table/table.h"

struct columns;

/* ERR_SYNTAX with a sentence; at most TABLE_COLUMNS. */
int columns_parse(const char *text, struct columns **ret_columns);
void columns_free(struct columns **columns);

size_t columns_count(const struct columns *columns);
/* Borrowed from COLUMNS. */
const char *const *columns_heads(const struct columns *columns);

/* One row of TABLE, from an object's msgpack. 0 or an error. */
int columns_row(struct columns *columns, struct bytes body, struct table *table, struct buf *out);

#endif
