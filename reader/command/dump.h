/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `kinf dump` prints: one row a line, as text (`journal seq=7 key=web/a ...`) or JSON, with
 * the names of store/FORMAT.md. The sections read the store's parts as they are; an index that does
 * not exist leaves its sections empty.
 */
#ifndef READER_COMMAND_DUMP_H
#define READER_COMMAND_DUMP_H

#include "common/buf.h"
#include "store/env/home.h"
#include "store/index/index.h"
#include "store/journal/journal.h"

struct dump {
	struct home *home;
	struct journal *journal; /* NULL: there is none */
	struct txn *journal_txn;
	struct index *index;     /* NULL: there is none */
	struct txn *index_txn;
	/* What is wanted. */
	uint32_t *feeds;         /* ids; NULL: all */
	size_t n_feeds;
	const char *key;         /* NULL: all */
	uint64_t from, to;       /* seqs */
	bool body;
	/* What is printed. */
	bool json;
	bool first;              /* nothing is in this row yet */
	struct buf out;
};

bool dump_wants_feed(const struct dump *dump, uint32_t feed);
bool dump_wants(const struct dump *dump, uint32_t feed, struct bytes key);

/* Rows. Texts are quoted where a space or quote would be misread. */
void dump_begin(struct dump *dump, const char *what);
void dump_number(struct dump *dump, const char *name, uint64_t number);
void dump_text(struct dump *dump, const char *name, struct bytes text);
void dump_flag(struct dump *dump, const char *name, bool flag); /* only when set */
void dump_uuid(struct dump *dump, const char *name, const uint8_t uuid[16]);
int dump_body(struct dump *dump, struct bytes body); /* when bodies are wanted */
/* Ends the row and writes it. */
int dump_end(struct dump *dump);

/* The sections. */
int dump_feeds(struct dump *dump);
int dump_log(struct dump *dump, bool changes_only);
int dump_meta(struct dump *dump);
int dump_objects(struct dump *dump);
int dump_terms(struct dump *dump);
int dump_postings(struct dump *dump);
int dump_cursors(struct dump *dump);
int dump_rings(struct dump *dump);

#endif
