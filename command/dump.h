/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf dump: the records of the store's files, one row a line, as text (`record seq=7 key=web/a
 * ...`) or JSON, with the names of store/FORMAT.md.
 *
 * The dump group: dump.c is the command and opens the store, dump_journal.c and dump_index.c print
 * the sections, dump_row.c formats a row. A section reads its part of the store as it is; without
 * an index the index's sections are empty. Rows missing in the journal's trees are salvaged from
 * its pages, with salvaged=true.
 */
#ifndef COMMAND_DUMP_H
#define COMMAND_DUMP_H

#include "common/buf.h"
#include "reader/kinf.h"
#include "store/env/home.h"
#include "store/index/index.h"
#include "store/journal/journal.h"
#include "store/journal/salvage.h"

struct dump {
	struct kinf *kinf;
	/* of both databases, which are borrowed from it; NULL: each was opened by itself */
	struct kinf_snapshot *snapshot;
	struct home *home;       /* KINF's, or without that our own */
	struct journal *journal; /* NULL if there is none */
	struct txn *journal_txn;
	struct salvage *salvage; /* NULL: not searched, or nothing was found */
	bool has_salvaged;       /* the search was done */
	struct index *index;     /* NULL if there is none */
	struct txn *index_txn;
	/* Selection: */
	uint32_t *feeds; /* ids; NULL: all */
	size_t n_feeds, feeds_room;
	const char *key;   /* NULL: all */
	uint64_t from, to; /* seqs */
	bool body;
	/* Output: */
	bool json;
	bool first; /* the row is empty */
	struct buf out;
};

/* Return whether the feed, or the object, is selected. */
bool dump_wants_feed(const struct dump *dump, uint32_t feed);
bool dump_wants(const struct dump *dump, uint32_t feed, struct bytes key);

/* ---- rows --------------------------------------------------------------- */

/* Begins a row of the kind WHAT. */
void dump_begin(struct dump *dump, const char *what);
void dump_number(struct dump *dump, const char *name, uint64_t number);
/* Quotes TEXT if it has blanks or quotes. */
void dump_text(struct dump *dump, const char *name, struct bytes text);
/* Does nothing if FLAG is false. */
void dump_flag(struct dump *dump, const char *name, bool flag);
void dump_uuid(struct dump *dump, const char *name, const uint8_t uuid[16]);
/* Does nothing unless bodies were asked for. After an error the row goes on without the body. */
int dump_body(struct dump *dump, struct bytes body);
/* Ends the row and writes it to stdout. */
int dump_end(struct dump *dump);

/* Steps WALK to the next feed of the journal, or of those found in its pages. FOUND, END. */
int dump_next_feed(const struct dump *dump, struct feed_walk *walk);

/* Salvages the rest of the journal from its pages, once, and reports it; `salvage` is NULL without
 * it. */
void dump_salvage(struct dump *dump);

/* Reports R and returns 0 if it is damage: the next section, or the rest of this one, may be good.
 * Else returns R. */
int dump_pass_damage(int r);

/* ---- sections ----------------------------------------------------------- */

int dump_meta(struct dump *dump);
int dump_feeds(struct dump *dump);
int dump_log(struct dump *dump, bool changes_only);
int dump_objects(struct dump *dump);
int dump_terms(struct dump *dump, bool postings);
int dump_cursors(struct dump *dump);
int dump_rings(struct dump *dump);

#endif
