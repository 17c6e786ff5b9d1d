/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf top. top_rows.c turns two samples of the status into tables with rates, top_text.c lays them
 * out in a width, top.c is the command.
 */
#ifndef COMMAND_TOP_H
#define COMMAND_TOP_H

#include "print/status/status.h"

/* ---- samples ------------------------------------------------------------ */

struct top_sample {
	struct store_status status;
	uint64_t taken_ns; /* CLOCK_MONOTONIC; 0: none */
	uint64_t wall_ns;  /* CLOCK_REALTIME */
	int result;        /* of status_gather() */
};
void top_sample_release(struct top_sample *sample);

/* Returns the growth of a counter per second. NAN: it restarted, or no time has passed. */
double top_rate(uint64_t before, uint64_t now, double seconds);

/* ---- tables ------------------------------------------------------------- */

/* In the order of the page. */
enum top_panel { TOP_PROCESSES, TOP_FEEDS, TOP_READERS, TOP_FOLLOWERS, TOP_PANELS };

#define TOP_COLUMNS 11

struct top_column {
	const char *head;
	bool is_number; /* aligned to the right */
	uint8_t drop;   /* a narrow line lacks the columns with the largest one first; 0: kept */
};

struct top_cell {
	double number; /* a narrow line drops columns with the largest value first; 0: kept */
	size_t text;   /* offset in the table's texts */
};

struct top_row {
	struct top_cell cells[TOP_COLUMNS];
	size_t number; /* order of equal rows */
};

struct top_table {
	const struct top_column *columns;
	size_t n_columns;
	struct top_row *rows;
	size_t n, room;
	struct buf texts; /* each with its NUL */
};

/* Fills TABLE, released or zero, with the sorted rows of PANEL. BEFORE: an earlier sample for
 * rates, if taken. Returns: 0, -ENOMEM. */
int top_rows(const struct top_sample *before, const struct top_sample *now, enum top_panel panel,
	struct top_table *table);
void top_table_release(struct top_table *table);
const char *top_cell_text(const struct top_table *table, const struct top_row *row, size_t column);

/* Appends the lines about the store as a whole. */
void top_put_store(const struct top_sample *before, const struct top_sample *now, struct buf *out);

/* ---- layout ------------------------------------------------------------- */

struct top_layout {
	size_t width[TOP_COLUMNS]; /* in characters; 0: hidden */
};

/* Chooses columns and widths for a line of WIDTH characters; 0: of any length. */
void top_fit(const struct top_table *table, size_t width, struct top_layout *layout);
/* Appends a line without its end. ROW NULL: the headings. */
void top_put_row(const struct top_table *table, const struct top_layout *layout,
	const struct top_row *row, struct buf *out);
/* Returns at most WIDTH leading characters of TEXT. */
struct bytes top_clip(struct bytes text, size_t width);

/* Appends the whole page. WIDTH: of a line; ROWS: of the table of feeds; 0: any. */
int top_put_page(const struct top_sample *before, const struct top_sample *now, size_t width,
	size_t rows, struct buf *out);

#endif
