/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of text as kubectl aligns them: three blanks between two columns, and at least six
 * characters from the beginning of one to the next. The first rows are held back until
 * table_settle(), or until they are TABLE_HELD bytes, and set the widths of the columns. A later
 * row with a wider cell widens its column for the rest, so columns never touch. Without any row
 * table_settle() prints nothing, not even the heading.
 *
 *	table_init(&t, heads, 3);
 *	table_row(&t, cells, out)...;
 *	table_settle(&t, out);
 *	table_release(&t);
 */
#ifndef PRINT_TABLE_TABLE_H
#define PRINT_TABLE_TABLE_H

#include <stdbool.h>

#include "common/buf.h"

#define TABLE_COLUMNS 96
#define TABLE_HELD    (16 << 20)

struct table {
	const char *const *heads; /* borrowed */
	bool no_heads;            /* print no heading; the caller sets it */
	size_t columns;
	size_t width[TABLE_COLUMNS]; /* in characters */
	struct buf rows;             /* cells held back, each with its NUL */
	size_t held;
	bool settled; /* the heading was printed */
};

void table_init(struct table *table, const char *const *heads, size_t columns);
void table_release(struct table *table);

/* Adds a row; CELLS are copied. Returns 0 or the error of a buf. */
int table_row(struct table *table, const char *const *cells, struct buf *out);
/* Does so with the cells of a text, which are separated by tabs. */
int table_print(struct table *table, struct buf *out, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Appends all held rows to OUT. */
int table_settle(struct table *table, struct buf *out);
/* Appends the heading of an empty table. */
int table_put_heads(struct table *table, struct buf *out);

#endif
