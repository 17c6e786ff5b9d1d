/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of `kinf get` and `kinf watch`: the API server's cells (table/printer.h) and kubectl's
 * extra columns, aligned as by kubectl.
 *
 *	struct object_table table = {.args = &args, .wide = true};
 *	object_table_begin(&table, snapshot, &info);
 *	object_table_row(&table, NULL, &object, &out)...;
 *	object_table_settle(&table, &out); object_table_release(&table);
 */
#ifndef PRINT_OBJECT_TABLE_H
#define PRINT_OBJECT_TABLE_H

#include "common/options.h"
#include "print/table/printer.h"
#include "print/table/table.h"
#include "reader/kinf.h"

struct object_table_args {
	bool show_labels, no_heads, show_kind;
	struct option_texts labels; /* of -L: keys, joined by commas */
};
struct options_group object_table_options(struct object_table_args *args);

struct object_table {
	const struct object_table_args *args;
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
void object_table_singular(const struct kinf_feed_info *info, char *ret_singular, size_t size);

/* Prepares for the objects of a feed of SNAPSHOT like INFO. Returns: 0, errors of
 * printer_new() and of finding the feed. */
int object_table_begin(struct object_table *table, struct kinf_snapshot *snapshot,
	const struct kinf_feed_info *info);

/* Appends the row of OBJECT, after the type EVENT if the table has events; OBJECT NULL: an event
 * without an object. Returns: 0, errors. */
int object_table_row(struct object_table *table, const char *event,
	const struct kinf_object *object, struct buf *out);

/* Appends the rows held back for the widths of their columns. */
int object_table_settle(struct object_table *table, struct buf *out);

/* Ends the table; another kind may begin. */
void object_table_release(struct object_table *table);

#endif
