/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects on stdout in the forms that -o names. Lists are streamed: a JSON or YAML List is opened,
 * filled and closed, a table's columns are measured over its first rows (table.h).
 *
 *	print_choose(&p, "json"); print_begin(&p, single, status);
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

/* An object's cells in a table: NAMESPACE (of namespaced kinds), NAME, AGE. */
#define PRINT_COLUMNS 3
struct print_cells {
	char namespace_[64];
	char name[320];
	char age[AGE_SIZE];
};
void print_cells(const struct kinf_object *object, struct print_cells *ret_cells);

struct print {
	enum print_format format;
	bool single;     /* one named object: JSON and YAML without the List around it */
	bool namespaced; /* the table has a NAMESPACE column */
	char singular[256]; /* "pod", "deployment.apps": for -o name */
	uint64_t count;
	struct buf text;
	struct table table;
	struct columns *columns;
	struct template *template;
};

/* What -o says (NULL: table). 0 or ERR_SYNTAX; the sentence lists what there is. Print_release
 * it. */
int print_choose(struct print *print, const char *text);

/* "pod", "deployment.apps": what stands before the slash in -o name. */
void print_singular(const struct kinf_feed_info *status, char *ret_singular, size_t size);
/* The part of a key behind the slash, if there is one. */
struct bytes print_name(const struct kinf_object *object);

/* STATUS: of the feed that is printed: what a name looks like. */
int print_begin(struct print *print, bool single, const struct kinf_feed_info *status);
int print_object(struct print *print, const struct kinf_object *object);
/* RV and TOKEN ("" and NULL when there is none) go into the List's metadata. */
int print_end(struct print *print, const char *rv, const char *token);
void print_release(struct print *print);

/* Writes OUT to stdout and empties it: a complete result. */
int print_text(struct buf *out);
/* Flushes stdout: -EPIPE, -ENOSPC and the like. */
int print_flush(void);

#endif
