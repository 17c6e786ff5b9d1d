/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watch group: watch.c follows the feed and keeps the cursor, watch_print.c formats an event,
 * watch_writer.c writes the output. No other file includes this header.
 */
#ifndef COMMAND_WATCH_H
#define COMMAND_WATCH_H

#include <stdbool.h>

#include "common/buf.h"
#include "print/print.h"
#include "reader/kinf.h"
#include "store/journal/journal.h"

/* ---- watch_writer.c ----------------------------------------------------- */

/*
 * The standard output of a command without an end of its own. It collects text in `text`,
 * watch_writer_flush() writes it, and only then a position of that text may be stored. Every write
 * also waits for signals: a stuck consumer can't keep the command from ending.
 */
struct watch_writer {
	int signals; /* signals_open() */
	bool ended;  /* SIGTERM, SIGINT or SIGHUP came */
	struct buf text;
};

int watch_writer_init(struct watch_writer *writer);
void watch_writer_release(struct watch_writer *writer);

/* Returns true if a signal asked the command to end. */
bool watch_writer_ended(struct watch_writer *writer);

/* Writes all text; without any, checks for the consumer. Returns: 0
 * 	-EPIPE (the consumer is gone), -ENOSPC and the like
 * 	-EINTR: a signal came, and the consumer took nothing for a second
 * After an error unwritten text is lost. */
int watch_writer_flush(struct watch_writer *writer);

/* ---- watch_print.c ------------------------------------------------------ */

struct watch_print_event {
	const char *type; /* ADDED, MODIFIED, DELETED, SYNC, LAPPED */
	uint64_t event;
	bool initial, final_state_unknown;
	const struct record *object; /* NULL: an event without one */
	const struct record *old;    /* NULL: not wanted, or none */
};

/* The formats, for the help of an option and its completion. */
#define WATCH_FORMATS_TEXT \
	"table, wide, name, json, yaml, jsonpath=TEMPLATE, jsonpath-as-json=TEMPLATE, " \
	"jsonpath-file=FILE, custom-columns=HEAD:PATH,... or custom-columns-file=FILE"
#define WATCH_FORMATS_WORDS \
	"table|wide|name|json|yaml|jsonpath=|jsonpath-as-json=|jsonpath-file=|custom-columns=|" \
	"custom-columns-file="

struct watch_print {
	struct print print; /* its format is not PRINT_COUNT */
	bool types;         /* print the type; in table and name SYNC and LAPPED also */
	bool more;          /* YAML: a document was printed */
};

/* Chooses the format TEXT, the table if NULL. Returns 0, ERR_SYNTAX, or an error of reading a file
 * named by TEXT. */
int watch_print_choose(struct watch_print *watch, const char *text);
void watch_print_release(struct watch_print *watch);
/* Prepares for the objects of a feed of SNAPSHOT like INFO. NAMESPACES: a table has a column for
 * them. Returns: 0, errors. */
int watch_print_begin(struct watch_print *watch, struct kinf_snapshot *snapshot,
	const struct kinf_feed_info *info, bool namespaces);
/* Appends EVENT to OUT. */
int watch_print(struct watch_print *watch, const struct watch_print_event *event, struct buf *out);
/* Appends the rows held back for the widths of their columns. */
int watch_print_settle(struct watch_print *watch, struct buf *out);

#endif
