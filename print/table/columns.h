/* SPDX-License-Identifier: Apache-2.0 */
/*
 * -o custom-columns=HEAD:PATH,HEAD:PATH..., as kubectl's: a table of the values at field paths
 * (common/value/path.h). Several values of one path are joined by commas; without any value the
 * cell is <none>.
 *
 *	columns_parse(text, &columns); columns_table(columns, &table);
 *	columns_row(columns, body, &table, &out)...; columns_free(&columns);
 */
#ifndef PRINT_TABLE_COLUMNS_H
#define PRINT_TABLE_COLUMNS_H

#include "common/bytes.h"
#include "print/table/table.h"

struct columns;

#define COLUMNS_MAX 64

/* Reads the text after "custom-columns=", at most COLUMNS_MAX columns. Returns 0 or
 * ERR_SYNTAX. */
int columns_parse(const char *text, struct columns **ret_columns);

/* Reads the text of the file of custom-columns-file: a line of heads and one of as many paths, with
 * blanks between them; further lines do not count. Returns 0 or ERR_SYNTAX. */
int columns_parse_file(const char *text, struct columns **ret_columns);
void columns_free(struct columns **columns);

/* Initializes a table with the heads of COLUMNS, borrowed. */
void columns_table(const struct columns *columns, struct table *ret_table);

/* Adds the row of an object, BODY in msgpack, to TABLE. */
int columns_row(struct columns *columns, struct bytes body, struct table *table, struct buf *out);

#endif
