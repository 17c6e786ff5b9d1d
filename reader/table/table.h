/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of text as kubectl aligns them. Rows are held back until table_settle() (or TABLE_HELD
 * rows) so that the columns fit what is there; rows that come later are aligned to the same widths,
 * or, from one with a wider cell on, to that cell's: columns never touch.
 * Without any row nothing is printed, not even the heading.
 *
 *	table_init(&t, heads, 3); table_row(&t, cells, out)...; table_settle(&t, out); table_release(&t);
 */
#ifndef READER_TABLE_TABLE_H
#define READER_TABLE_TABLE_H

#include <stdbool.h>

#include "common/buf.h"

#define TABLE_COLUMNS 16
#define TABLE_HELD    1000

struct table {
	const char *const *heads; /* borrowed */
	size_t columns;
	size_t width[TABLE_COLUMNS];
	struct buf rows; /* cells held back, each with its NUL */
	size_t held;
	bool settled; /* the heading is out */
};

void table_init(struct table *table, const char *const *heads, size_t columns);
void table_release(struct table *table);

/* One row; CELLS are copied. 0, or the error of a buf. */
int table_row(struct table *table, const char *const *cells, struct buf *out);
/* Everything held back goes to OUT. */
int table_settle(struct table *table, struct buf *out);

#endif
