/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/table/table.h"

#include <string.h>

#include "common/check.h"

#define GAP 3

void table_init(struct table *table, const char *const *heads, size_t columns)
{
	REQUIRE(columns > 0 && columns <= TABLE_COLUMNS);
	*table = (struct table){.heads = heads, .columns = columns};
	for (size_t i = 0; i < columns; i++)
		table->width[i] = strlen(heads[i]);
}

void table_release(struct table *table)
{
	buf_release(&table->rows);
}

static void table_put_row(const struct table *table, const char *const *cells, struct buf *out)
{
	for (size_t i = 0; i < table->columns; i++) {
		bool last = i == table->columns - 1;

		buf_printf(out, "%-*s", last ? 0 : (int)(table->width[i] + GAP), cells[i]);
	}
	buf_byte(out, '\n');
}

int table_row(struct table *table, const char *const *cells, struct buf *out)
{
	for (size_t i = 0; i < table->columns; i++) {
		size_t size = strlen(cells[i]);

		if (size > table->width[i])
			table->width[i] = size;
	}
	if (table->settled) {
		table_put_row(table, cells, out);
		return buf_error(out);
	}
	for (size_t i = 0; i < table->columns; i++)
		buf_put(&table->rows, cells[i], strlen(cells[i]) + 1);
	table->held++;
	return table->held < TABLE_HELD ? buf_error(&table->rows) : table_settle(table, out);
}

int table_settle(struct table *table, struct buf *out)
{
	const char *cells[TABLE_COLUMNS];
	const char *next = (const char *)table->rows.data;
	int r = buf_error(&table->rows);

	if (r < 0 || !table->held)
		return r;
	table_put_row(table, table->heads, out);
	for (; table->held; table->held--) {
		for (size_t i = 0; i < table->columns; i++) {
			cells[i] = next;
			next += strlen(next) + 1;
		}
		table_put_row(table, cells, out);
	}
	buf_release(&table->rows);
	table->settled = true;
	return buf_error(out);
}
