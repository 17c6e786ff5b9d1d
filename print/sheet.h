/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of `kinf get` and `kinf watch`: the API server's cells (table/printer.h) and kubectl's
 * extra columns, aligned as by kubectl.
 *
 *	struct sheet sheet = {.args = &args, .wide = true};
 *	sheet_begin(&sheet, snapshot, &info); sheet_row(&sheet, NULL, &object, &out)...;
 *	sheet_settle(&sheet, &out); sheet_release(&sheet);
 */
#ifndef PRINT_SHEET_H
#define PRINT_SHEET_H

#include "common/options.h"
#include "print/table/printer.h"
#include "print/table/table.h"
#include "reader/kinf.h"

struct sheet_args {
	bool show_labels, no_heads, show_kind;
	struct option_texts labels; /* of -L: keys, joined by commas */
};
/* The options for ARGS. */
struct options_group sheet_options(struct sheet_args *args);

struct sheet {
	const struct sheet_args *args;
	bool wide;
	bool namespaces;       /* show a column of namespaces, if the kind has them, */
	bool after_namespaces; /* or if a kind before it had one: it is empty then, as kubectl's */
	bool kinds;            /* names begin with the kind */
	bool events;           /* the first column is the type of an event */
	char singular[256];
	struct printer *printer;
	struct table table;
	struct buf heads, cells; /* texts, each with its NUL */
	const char *shown[TABLE_COLUMNS];
	size_t n;
};

/* Writes the part before the slash in -o name: "pod", "deployment.apps". */
void sheet_singular(const struct kinf_feed_info *info, char *ret_singular, size_t size);

/* Prepares for the objects of a feed of SNAPSHOT like INFO. Returns: 0, errors of
 * printer_new() and of finding the feed. */
int sheet_begin(
	struct sheet *sheet, struct kinf_snapshot *snapshot, const struct kinf_feed_info *info);

/* Appends the row of OBJECT, after the type EVENT if the sheet has events; OBJECT NULL: an event
 * without an object. Returns: 0, errors. */
int sheet_row(
	struct sheet *sheet, const char *event, const struct kinf_object *object, struct buf *out);

/* Appends the rows held back for the widths of their columns. */
int sheet_settle(struct sheet *sheet, struct buf *out);

/* Ends the table; another kind may begin. */
void sheet_release(struct sheet *sheet);

#endif
