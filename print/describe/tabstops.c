/* SPDX-License-Identifier: Apache-2.0 */
#include "print/describe/describe_internal.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/utf8.h"
#include "print/table/display.h"

#define PADDING 2
#define COLUMNS 16 /* tabs after so many are kept as a blank */

struct tabstops_cell {
	struct bytes text;
	size_t width; /* in characters, of the column after alignment */
};

struct tabstops_line {
	size_t first, n; /* cells; the last one ends the line */
};

struct tabstops {
	struct tabstops_cell *cells;
	size_t n_cells, cells_room;
	struct tabstops_line *lines;
	size_t n_lines, lines_room;
};

static void tabstops_release(struct tabstops *t)
{
	free(t->cells);
	free(t->lines);
}

/* Cuts TEXT into lines and cells. */
static int tabstops_cut(struct tabstops *t, struct bytes text)
{
	const char *next = text.data, *end = next + text.size;
	int r = 0;

	while (r == 0 && next < end) {
		struct tabstops_line line = {.first = t->n_cells};
		const char *stop = memchr(next, '\n', (size_t)(end - next));
		const char *tab;

		stop = stop ? stop : end;
		do {
			tab = line.n + 1 < COLUMNS ? memchr(next, '\t', (size_t)(stop - next))
						   : NULL;
			struct tabstops_cell cell = {
				BYTES(next, (size_t)((tab ? tab : stop) - next)), 0};

			cell.width = utf8_width(cell.text);
			r = ARRAY_ADD(
				t->cells, t->n_cells, t->cells_room, cell, "the cells of a text");
			line.n++;
			next = (tab ? tab : stop) + 1;
		} while (r == 0 && tab);
		if (r == 0)
			r = ARRAY_ADD(
				t->lines, t->n_lines, t->lines_room, line, "the lines of a text");
	}
	return r;
}

/* Widens the cells of COLUMN: adjacent lines with a cell there before their last one get one
 * width. */
static void tabstops_align(struct tabstops *t, size_t column)
{
	for (size_t i = 0; i < t->n_lines;) {
		size_t width = 0, end = i;

		for (; end < t->n_lines && t->lines[end].n > column + 1; end++) {
			size_t cell = t->cells[t->lines[end].first + column].width + PADDING;

			width = cell > width ? cell : width;
		}
		for (size_t line = i; line < end; line++)
			t->cells[t->lines[line].first + column].width = width;
		i = end > i ? end : i + 1;
	}
}

int tabstops_put(struct bytes text, struct buf *out)
{
	CLEANUP(tabstops_release) struct tabstops t = {.n_cells = 0};
	int r = tabstops_cut(&t, text);

	for (size_t column = 0; r == 0 && column < COLUMNS; column++)
		tabstops_align(&t, column);
	for (size_t i = 0; r == 0 && i < t.n_lines; i++) {
		const struct tabstops_line *line = &t.lines[i];

		for (size_t c = 0; c < line->n; c++) {
			const struct tabstops_cell *cell = &t.cells[line->first + c];

			display_bytes(cell->text, out);
			if (c + 1 < line->n)
				buf_blanks(out, cell->width - utf8_width(cell->text));
		}
		buf_byte(out, '\n');
	}
	return r < 0 ? r : buf_error(out);
}
