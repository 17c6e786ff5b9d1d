/* SPDX-License-Identifier: Apache-2.0 */
#include "print/table/table.h"

#include <stdarg.h>
#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/text/utf8.h"

#define GAP       3
#define WIDTH_MIN 3 /* of a column, without the gap */

/* A row with cells cut at tabs, as by kubectl's writer: the cells after it are one column further
 * right. */
struct table_cells {
	struct bytes items[TABLE_COLUMNS];
	size_t n;
};

static void table_cut(const struct table *table, const char *const *cells, struct table_cells *cut)
{
	cut->n = 0;
	for (size_t i = 0; i < table->columns; i++) {
		const char *text = cells[i];

		for (const char *tab;
			cut->n + table->columns - i < TABLE_COLUMNS && (tab = strchr(text, '\t'));
			text = tab + 1)
			cut->items[cut->n++] = BYTES(text, (size_t)(tab - text));
		cut->items[cut->n++] = bytes_str(text);
	}
}

/* The last cell of a row is of no column. */
static void table_widen(struct table *table, const char *const *cells)
{
	struct table_cells cut;

	table_cut(table, cells, &cut);
	for (size_t i = 0; i + 1 < cut.n && i + 1 < table->columns; i++) {
		size_t width = utf8_width(cut.items[i]);

		if (width > table->width[i])
			table->width[i] = width;
	}
}

void table_init(struct table *table, const char *const *heads, size_t columns)
{
	REQUIRE(columns > 0 && columns <= TABLE_COLUMNS);
	*table = (struct table){.heads = heads, .columns = columns};
	for (size_t i = 0; i < columns; i++)
		table->width[i] = WIDTH_MIN;
}

void table_release(struct table *table)
{
	buf_release(&table->rows);
}

static void table_put_row(const struct table *table, const char *const *cells, struct buf *out)
{
	struct table_cells cut;

	table_cut(table, cells, &cut);
	for (size_t i = 0; i < cut.n; i++) {
		buf_bytes_put(out, cut.items[i]);
		if (i + 1 == cut.n)
			break;
		size_t width = utf8_width(cut.items[i]);
		size_t column = i + 1 < table->columns ? table->width[i]
				: width > WIDTH_MIN    ? width
						       : WIDTH_MIN;
		buf_blanks(out, column - width + GAP);
	}
	buf_byte(out, '\n');
}

int table_row(struct table *table, const char *const *cells, struct buf *out)
{
	table_widen(table, cells);
	if (table->settled) {
		table_put_row(table, cells, out);
		return buf_error(out);
	}
	for (size_t i = 0; i < table->columns; i++)
		buf_put(&table->rows, cells[i], strlen(cells[i]) + 1);
	table->held++;
	return table->rows.size < TABLE_HELD ? buf_error(&table->rows) : table_settle(table, out);
}

int table_print(struct table *table, struct buf *out, const char *format, ...)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	const char *cells[TABLE_COLUMNS];
	va_list args;

	va_start(args, format);
	buf_vprintf(&text, format, args);
	va_end(args);
	buf_byte(&text, '\0');
	int r = buf_error(&text);
	char *rest = (char *)text.data;
	for (size_t i = 0; r == 0 && i < table->columns; i++) /* the last cell may have tabs */
		cells[i] = i + 1 < table->columns ? strsep(&rest, "\t") : rest;
	return r < 0 ? r : table_row(table, cells, out);
}

int table_put_heads(struct table *table, struct buf *out)
{
	if (!table->no_heads) {
		table_widen(table, table->heads);
		table_put_row(table, table->heads, out);
	}
	return buf_error(out);
}

int table_settle(struct table *table, struct buf *out)
{
	const char *cells[TABLE_COLUMNS];
	const char *next = (const char *)table->rows.data;
	int r = buf_error(&table->rows);

	if (r < 0 || !table->held)
		return r;
	r = table_put_heads(table, out);
	for (; table->held; table->held--) {
		for (size_t i = 0; i < table->columns; i++) {
			cells[i] = next;
			next += strlen(next) + 1;
		}
		table_put_row(table, cells, out);
	}
	buf_release(&table->rows);
	table->settled = true;
	return r < 0 ? r : buf_error(out);
}
