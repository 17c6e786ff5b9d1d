/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints objects to stdout in the formats of -o. A list is streamed: a JSON or YAML List is opened,
 * filled and closed; a table measures its columns over the first rows (table.h).
 *
 *	print_choose(&p, "json"); print_begin(&p, single, &info);
 *	print_object(&p, &object)...; print_end(&p, rv, token); print_release(&p);
 */
#ifndef READER_COMMAND_PRINT_H
#define READER_COMMAND_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "common/buf.h"
#include "reader/table/age.h"
#include "reader/table/columns.h"
#include "reader/table/table.h"
#include "reader/table/template.h"
#include "reader/kinf.h"

enum print_format {
	PRINT_TABLE,
	PRINT_WIDE,
	PRINT_JSON,
	PRINT_YAML,
	PRINT_NAME,
	PRINT_COUNT,
	PRINT_CUSTOM_COLUMNS, /* =HEAD:PATH,... */
	PRINT_JSONPATH,       /* =TEMPLATE */
	PRINT_FORMAT_MAX
};

/* The cells of an object in a table: NAMESPACE (only for namespaced kinds), NAME, AGE. */
#define PRINT_COLUMNS 3
struct print_cells {
	char namespace_[64];
	char name[320];
	char age[AGE_SIZE];
};
void print_cells(const struct kinf_object *object, struct print_cells *ret_cells);

struct print {
	enum print_format format;
	bool single;     /* JSON and YAML print one object without a List around it */
	bool namespaced; /* the table has a NAMESPACE column */
	char singular[256]; /* "pod", "deployment.apps": for -o name */
	uint64_t count;
	struct buf text;
	struct table table;
	struct columns *columns;
	struct template *template;
};

/* Chooses the format that TEXT, the argument of -o, names (NULL: table). Returns 0 or ERR_SYNTAX.
 * The caller calls print_release() in any case. */
int print_choose(struct print *print, const char *text);

/* Writes what stands before the slash in -o name: "pod", "deployment.apps". */
void print_singular(const struct kinf_feed_info *info, char *ret_singular, size_t size);
/* Returns the name part of an object's key. */
struct bytes print_name(const struct kinf_object *object);

/* Begins the output for objects of a feed like INFO. */
int print_begin(struct print *print, bool single, const struct kinf_feed_info *info);
int print_object(struct print *print, const struct kinf_object *object);
/* Ends and flushes the output. RV and TOKEN ("" and NULL if there is none) go into the List's
 * metadata. */
int print_end(struct print *print, const char *rv, const char *token);
void print_release(struct print *print);

/* Writes OUT to stdout and empties it. */
int print_write(struct buf *out);
/* Flushes stdout. Returns 0, or -EPIPE, -ENOSPC and the like, also of earlier writes. */
int print_flush(void);
/* Does both, for a complete result. */
int print_text(struct buf *out);

/* Appends TEXT, with each line after the first moved right by INDENT. */
void print_indented(struct buf *out, struct bytes text, int indent);

#endif
