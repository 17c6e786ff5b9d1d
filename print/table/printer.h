/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns objects into the cells of a table, as the API server's Table (meta.k8s.io/v1) has them.
 * `kinf get` and `kinf watch` print the cells, kinf-serve sends them.
 *
 *	struct printer_kind kind = {
 *		.group = BYTES_LIT("apps"), .resource = BYTES_LIT("deployments")};
 *	printer_new(&kind, &printer);
 *	columns = printer_columns(printer, &n);
 *	printer_row(printer, body, &cells, &n_cells)...; printer_free(&printer);
 *
 * The columns of a built-in kind are rows of a table in kinds_*.c. A custom resource has those of
 * its CustomResourceDefinition, passed as msgpack. Any other resource has NAME and AGE.
 *
 * A printer belongs to one thread.
 */
#ifndef PRINT_TABLE_PRINTER_H
#define PRINT_TABLE_PRINTER_H

#include "common/buf.h"

/* A TableColumnDefinition. */
struct printer_column {
	const char *name;   /* "Nominated Node"; a heading is in upper case */
	const char *type;   /* string, integer, number, boolean, date */
	const char *format; /* "name": the column of names; else "" */
	int32_t priority;   /* 0: always shown; else only in wide tables */
	struct bytes description;
};

enum printer_cell_type {
	PRINTER_NULL,
	PRINTER_STRING,
	PRINTER_NUMBER,  /* text is its JSON */
	PRINTER_BOOLEAN, /* text is true or false */
};

struct printer_cell {
	enum printer_cell_type type;
	struct bytes text; /* of a string, without quotes */
};

/* Returns the text of CELL in a table for people, where a large or small number has an exponent. It
 * may be in SCRATCH, of NUMBER_TEXT_MAX bytes. */
struct bytes printer_cell_text(const struct printer_cell *cell, char *scratch);

#define PRINTER_CELLS_MAX 64

struct printer_kind {
	struct bytes group;    /* empty: core */
	struct bytes resource; /* plural */
	struct bytes columns; /* additionalPrinterColumns, a msgpack array; empty: none are known */
	const char *stored;   /* used then: the columns of the feed's definition (FORMAT.md); NULL:
				 none */
};

struct printer;

/* Makes the printer of KIND. An unreadable column of KIND.columns has empty cells. Returns: 0,
 * -ENOMEM, ERR_CORRUPT. Free with printer_free(). */
int printer_new(const struct printer_kind *kind, struct printer **ret_printer);
void printer_free(struct printer **printer);

/* Returns all columns, with those of wide tables; borrowed from the printer. */
const struct printer_column *printer_columns(const struct printer *printer, size_t *ret_n);

/* Returns the field path of the API server's order of this kind; NULL: by key. */
const char *printer_order(const struct printer *printer);

/* Makes the cells of the object BODY, one for each column, with those of wide tables. For a few
 * kinds the API server sends more cells than columns, and so are there more here. The cells are
 * borrowed until the next row. Returns: 0, ERR_CORRUPT, -ENOMEM. */
int printer_row(struct printer *printer, struct bytes body, const struct printer_cell **ret_cells,
	size_t *ret_n);

/* Appends the labels of the object BODY in the order of their texts: "a=1,b=2"; "<none>".
 * Returns: 0, ERR_CORRUPT, -ENOMEM. */
int printer_put_labels_of(struct bytes body, struct buf *out);

/* Append JSON: the columnDefinitions, and the cells of a row, each an array. */
void printer_put_columns(const struct printer *printer, struct buf *out);
void printer_put_cells(const struct printer_cell *cells, size_t n, struct buf *out);

#endif
