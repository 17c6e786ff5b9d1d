/* SPDX-License-Identifier: Apache-2.0 */
/* Lays tables out in lines: for a terminal in its width, for a pipe in any. */
#include "command/top.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/utf8.h"

#define GAP       2
#define FIRST_MIN 12 /* characters of the first column in a narrow terminal */
#define LAST_MIN  8  /* of a text in the last column */

struct bytes top_clip(struct bytes text, size_t width)
{
	const char *p = text.data;
	size_t i = 0;

	for (; i < text.size; i++)
		if (((unsigned char)p[i] & 0xc0) != 0x80 && !width--)
			break;
	return BYTES(text.data, i);
}

/* Returns the width of the line. The last column, clipped at the line's end, counts little. */
static size_t top_line_width(const struct top_table *table, const struct top_layout *layout)
{
	size_t sum = 0;

	for (size_t c = 0; c < table->n_columns; c++) {
		size_t width = layout->width[c];
		bool is_end = c + 1 == table->n_columns && !table->columns[c].is_number;

		if (width)
			sum += (is_end && width > LAST_MIN ? LAST_MIN : width) + (c ? GAP : 0);
	}
	return sum;
}

void top_fit(const struct top_table *table, size_t width, struct top_layout *layout)
{
	for (size_t c = 0; c < table->n_columns; c++) {
		layout->width[c] = utf8_width(bytes_str(table->columns[c].head));
		for (size_t i = 0; i < table->n; i++) {
			size_t cell =
				utf8_width(bytes_str(top_cell_text(table, &table->rows[i], c)));

			if (cell > layout->width[c])
				layout->width[c] = cell;
		}
	}
	while (width && top_line_width(table, layout) > width) {
		size_t worst = 0;

		for (size_t c = 0; c < table->n_columns; c++)
			if (layout->width[c] &&
				table->columns[c].drop > (worst ? table->columns[worst].drop : 0))
				worst = c;
		if (!worst)
			break;
		/* A long name is clipped before a column is dropped. */
		size_t over = top_line_width(table, layout) - width;
		if (layout->width[0] >= FIRST_MIN + over && layout->width[0] > 2 * FIRST_MIN)
			break;
		layout->width[worst] = 0;
	}
	size_t line = top_line_width(table, layout);
	if (width && line > width) {
		size_t over = line - width, room = layout->width[0];

		layout->width[0] = room > over + FIRST_MIN ? room - over
				   : room < FIRST_MIN      ? room
							   : FIRST_MIN;
	}
}

void top_put_row(const struct top_table *table, const struct top_layout *layout,
	const struct top_row *row, struct buf *out)
{
	size_t blanks = 0; /* before the next cell: none are written at the end of a line */

	for (size_t c = 0; c < table->n_columns; c++) {
		const char *text = row ? top_cell_text(table, row, c) : table->columns[c].head;
		size_t room = layout->width[c], width = utf8_width(bytes_str(text));

		if (!room)
			continue;
		size_t shown = width > room ? room : width, pad = room - shown;
		if (table->columns[c].is_number)
			blanks += pad;
		if (shown)
			buf_blanks(out, blanks);
		if (shown)
			blanks = 0;
		buf_bytes_put(out, top_clip(bytes_str(text), width > room ? room - 1 : room));
		if (width > room)
			buf_byte(out, '~');
		blanks += GAP + (table->columns[c].is_number ? 0 : pad);
	}
}

static int top_put_table(const struct top_sample *before, const struct top_sample *now,
	enum top_panel panel, size_t width, size_t rows, struct buf *out)
{
	CLEANUP(top_table_release) struct top_table table = {.n = 0};
	struct top_layout layout;
	int r = top_rows(before, now, panel, &table);

	if (r < 0 || !table.n)
		return r;
	size_t shown = rows && panel == TOP_FEEDS && table.n > rows ? rows : table.n;
	top_fit(&table, width, &layout);
	buf_byte(out, '\n');
	top_put_row(&table, &layout, NULL, out);
	for (size_t i = 0; i < shown; i++) {
		buf_byte(out, '\n');
		top_put_row(&table, &layout, &table.rows[i], out);
	}
	if (shown < table.n)
		buf_printf(out, "\n... and %zu more", table.n - shown);
	buf_byte(out, '\n');
	return 0;
}

int top_put_page(const struct top_sample *before, const struct top_sample *now, size_t width,
	size_t rows, struct buf *out)
{
	int r = 0;

	top_put_store(before, now, out);
	for (int panel = 0; r == 0 && panel < TOP_PANELS; panel++)
		r = top_put_table(before, now, (enum top_panel)panel, width, rows, out);
	return r < 0 ? r : buf_error(out);
}
