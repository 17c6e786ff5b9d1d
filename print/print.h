/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints objects to stdout in the formats of -o. A list is streamed: a JSON or YAML List is opened,
 * filled and closed; a table measures its columns over the first rows (table.h).
 *
 *	print_choose(&p, "json"); print_begin(&p, single);
 *	print_feed(&p, snapshot, &info); print_object(&p, &object)...;    (for each kind)
 *	print_end(&p, rv, token); print_release(&p);
 */
#ifndef PRINT_PRINT_H
#define PRINT_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "common/buf.h"
#include "print/object_table.h"
#include "print/table/columns.h"
#include "print/table/table.h"
#include "print/table/template.h"
#include "reader/kinf.h"

enum print_format {
	PRINT_TABLE,
	PRINT_WIDE,
	PRINT_JSON,
	PRINT_YAML,
	PRINT_NAME,
	PRINT_COUNT,
	PRINT_CUSTOM_COLUMNS,
	PRINT_JSONPATH,
	PRINT_FORMAT_MAX
};

struct print {
	enum print_format format;
	bool single;         /* JSON and YAML print one object without a List around it */
	bool managed_fields; /* JSON and YAML have metadata.managedFields; the caller sets it */
	/* JSON and YAML have keys and numbers as the server sent them; the caller sets it */
	bool server_order;
	bool several; /* kinds are printed: their names have the kind before them */
	struct kinf_snapshot *snapshot; /* source of the objects */
	char singular[256];             /* "pod", "deployment.apps": for -o name */
	uint64_t count;
	struct buf text;
	struct buf less, sorted;                    /* the object as JSON and YAML print it */
	struct object_table_args object_table_args; /* of tables; the caller fills it */
	bool namespaces; /* tables have a column of namespaces; the caller sets it */
	struct object_table object_table;
	bool after_namespaces; /* a table before had a column of namespaces */
	bool gap;              /* an empty line comes before the next row */
	struct table table;    /* of custom columns */
	struct columns *columns;
	struct template *template;
};

/* The formats, for the help of an option and its completion. */
#define PRINT_FORMATS_TEXT \
	"table, wide, json, yaml, name, count, jsonpath=TEMPLATE, jsonpath-as-json=TEMPLATE, " \
	"jsonpath-file=FILE, custom-columns=HEAD:PATH,... or custom-columns-file=FILE"
#define PRINT_FORMATS_WORDS \
	"table|wide|json|yaml|name|count|jsonpath=|jsonpath-as-json=|jsonpath-file=|" \
	"custom-columns=|custom-columns-file="

/* Chooses the format TEXT, the argument of -o (NULL: table). The caller's fields stay. Returns 0,
 * ERR_SYNTAX, or an error of reading a file named by TEXT. The caller calls print_release() in any
 * case. */
int print_choose(struct print *print, const char *text);

/* Returns the name part of an object's key. */
struct bytes print_name(const struct kinf_object *object);

/* Begins the output. */
int print_begin(struct print *print, bool single);
/* Begins the objects of a feed of SNAPSHOT like INFO, after those of another. */
int print_feed(
	struct print *print, struct kinf_snapshot *snapshot, const struct kinf_feed_info *info);
int print_object(struct print *print, const struct kinf_object *object);
/* Ends and flushes the output. RV and TOKEN ("" and NULL if there is none) go into the List's
 * metadata. */
int print_end(struct print *print, const char *rv, const char *token);
void print_release(struct print *print);

/* Appends TEXT, with each line after the first moved right by two columns. */
void print_indented(struct buf *out, struct bytes text);

#endif
