/* SPDX-License-Identifier: Apache-2.0 */
/* One line per event of a watch, into a buf. */
#ifndef READER_COMMAND_WATCH_PRINT_H
#define READER_COMMAND_WATCH_PRINT_H

#include "reader/table/table.h"
#include "reader/kinf.h"
#include "store/journal/journal.h"

enum watch_format { WATCH_TABLE, WATCH_NAME, WATCH_JSON, WATCH_FORMAT_MAX };

/* FOUND or ERR_SYNTAX. NULL: table. */
int watch_format(const char *text, enum watch_format *ret_format);

struct watch_event {
	const char *type; /* ADDED, MODIFIED, DELETED, SYNC, LAPPED */
	uint64_t event;
	bool initial, final_state_unknown;
	const struct record *object; /* NULL: an event without one */
	const struct record *old;    /* NULL: not asked for, or none */
};

struct watch_print {
	enum watch_format format;
	bool types; /* table and name: say the type, and print SYNC and LAPPED too */
	bool namespaced;
	char singular[256];
	const char *heads[4];
	struct table table;
};

/* STATUS: of the feed, for what a name looks like. */
void watch_print_begin(struct watch_print *print, const struct kinf_feed_info *status);
int watch_print(struct watch_print *print, const struct watch_event *event, struct buf *out);
/* Rows held back until their columns were measured. */
int watch_print_settle(struct watch_print *print, struct buf *out);
void watch_print_release(struct watch_print *print);

#endif
