/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf top. The top group: top_rows.c turns two samples of the status into tables with rates,
 * sorts and filters them; top_text.c lays them out in a width; top_screen.c shows them on a
 * terminal and is the only file with ncurses; top.c is the command.
 *
 *	struct top_sample before, now;	(status_gather())
 *	top_rows(&before, &now, TOP_FEEDS, &table); top_keep(&table, "web"); top_sort(&table, 4, true);
 *	top_fit(&table, 80, &layout); top_put_heads(&table, &layout, &out); top_put_row(...)...
 *	top_table_release(&table);
 */
#ifndef COMMAND_TOP_H
#define COMMAND_TOP_H

#include "print/status/status.h"

/* ---- samples ------------------------------------------------------------ */

struct top_sample {
	struct store_status status;
	uint64_t taken_ns; /* CLOCK_MONOTONIC; 0: there is none */
	uint64_t wall_ns;  /* CLOCK_REALTIME */
	int result;        /* of status_gather() */
};
void top_sample_release(struct top_sample *sample);

/* Returns how much a counter grew in a second. NAN: it began again, or no time has passed. */
double top_rate(uint64_t before, uint64_t now, double seconds);

/* ---- tables ------------------------------------------------------------- */

enum top_panel { TOP_FEEDS, TOP_READERS, TOP_FOLLOWERS, TOP_PROCESSES, TOP_PANELS };

#define TOP_COLUMNS 11

struct top_column {
	const char *head;
	bool is_number; /* aligned to the right, and sorted from the largest first */
	uint8_t drop; /* a narrow terminal lacks the columns with the largest one first; 0: kept */
};

struct top_cell {
	double number; /* the order of a column of numbers; NAN: not known */
	size_t text;   /* its place in the table's texts */
};

enum top_tone { TOP_GOOD, TOP_WARNING, TOP_BAD };

struct top_row {
	struct top_cell cells[TOP_COLUMNS];
	enum top_tone tone;
	size_t number; /* rows that are equal in a column keep the order of these */
};

struct top_table {
	const char *title; /* "Feeds" */
	const struct top_column *columns;
	size_t n_columns;
	struct top_row *rows;
	size_t n, room;
	struct buf texts; /* each with its NUL */
};

/* Fills TABLE, which is released or zero, with the rows of PANEL. BEFORE: an earlier sample, for
 * rates; one that was not taken gives none. Returns: 0, -ENOMEM. */
int top_rows(const struct top_sample *before, const struct top_sample *now, enum top_panel panel,
	struct top_table *table);
/* Returns the column by which PANEL is sorted unless a person chooses another. */
size_t top_sorted_by(enum top_panel panel);
void top_table_release(struct top_table *table);
const char *top_cell_text(const struct top_table *table, const struct top_row *row, size_t column);

/* Keeps the rows that have FILTER in a text, in any case; "": all. */
void top_keep(struct top_table *table, const char *filter);
/* Sorts by COLUMN: texts in their order, numbers from the largest; REVERSED the other way.
 * Unknown numbers come last in both. */
void top_sort(struct top_table *table, size_t column, bool reversed);

/* Appends the lines about the store as a whole. */
void top_put_store(const struct top_sample *before, const struct top_sample *now, struct buf *out);

/* ---- layout ------------------------------------------------------------- */

struct top_layout {
	size_t width[TOP_COLUMNS]; /* in characters; 0: the column is not shown */
};

/* Chooses columns and widths for a line of WIDTH characters; 0: of any length. */
void top_fit(const struct top_table *table, size_t width, struct top_layout *layout);
/* Appends a line without its end. ROW NULL: the headings. */
void top_put_row(const struct top_table *table, const struct top_layout *layout,
	const struct top_row *row, struct buf *out);
/* Returns where COLUMN begins in a line. */
size_t top_column_at(const struct top_layout *layout, size_t column);
/* Returns the beginning of TEXT that has at most WIDTH characters. */
struct bytes top_clip(struct bytes text, size_t width);

/* Appends everything, for a file or a pipe. */
int top_plain(const struct top_sample *before, const struct top_sample *now, struct buf *out);

/* ---- the terminal ------------------------------------------------------- */

enum top_key {
	TOP_KEY_NONE, /* no key was pressed */
	TOP_KEY_OTHER,
	TOP_KEY_RESIZE,
	TOP_KEY_UP,
	TOP_KEY_DOWN,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_LEFT,
	TOP_KEY_RIGHT,
	TOP_KEY_ENTER,
	TOP_KEY_ESCAPE,
	TOP_KEY_ERASE,
	TOP_KEY_TAB,
	TOP_KEY_CHARACTER /* this and all above: a character, plus this */
};

/* A page of the screen. */
struct top_page {
	const char *title;
	struct bytes store; /* lines about the store */
	const struct top_table *processes, *table;
	size_t sorted_by;
	size_t first; /* the first row that is shown; top_screen_draw() bounds it */
	const char *foot;
	const char *help; /* shown instead of the table; NULL: none */
	bool waiting;     /* the foot is a question: the cursor stands after it */
};

struct top_screen;

/* Takes the terminal of standard input and output.
 * Returns: 0; NOT_FOUND with a sentence: it can't show a page (TERM); errors. */
int top_screen_open(struct top_screen **ret_screen);
/* Gives the terminal back as it was. */
void top_screen_close(struct top_screen **screen);
void top_screen_draw(struct top_screen *screen, struct top_page *page);
/* Returns the rows of the table that fit, as of the last page. */
size_t top_screen_rows(const struct top_screen *screen);
/* Returns the next key that was pressed. */
int top_screen_key(struct top_screen *screen);
/* Waits for a key, a change of the terminal's size, the descriptor FD, or MILLISECONDS. Returns
 * false if the terminal is gone. */
bool top_screen_wait(struct top_screen *screen, int fd, int milliseconds);

#endif
