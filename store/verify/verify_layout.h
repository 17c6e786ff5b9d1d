/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of verify share. Nobody else includes this. */
#ifndef STORE_VERIFY_VERIFY_LAYOUT_H
#define STORE_VERIFY_VERIFY_LAYOUT_H

#include "common/buf.h"
#include "store/read/snapshot.h"
#include "store/verify/verify.h"

/* A feed as journal and index know it. */
struct verify_feed {
	uint32_t id;
	bool in_journal, in_index;
	bool wanted; /* its objects are compared */
	char name[64];
	struct feed_checkpoint checkpoint; /* without rv */
	struct index_feed index;
	uint64_t list_begin; /* open list that the log shows up to where it was read */
	uint64_t visible;
	uint64_t expected; /* objects that the journal has at visible */
};

/* A value of the index and how many postings there are of it. */
struct verify_term {
	uint64_t id, count, seen;
	uint32_t definition;
};

/* A version in the log; whether something comes after it. */
struct verify_version {
	uint64_t seq;
	uint32_t feed;
	bool followed;
};

struct verify {
	const struct verify_options *options;
	struct verify_report report;
	struct journal *journal;
	struct txn *journal_txn;
	struct journal_meta meta;
	uint64_t history; /* bytes of records above the horizon, as found */
	struct snapshot *snapshot; /* NULL: there is no index to check */
	bool index_is_broken;      /* cannot be walked: not compared with anything */
	struct verify_feed *feeds; /* by id */
	size_t n_feeds, feeds_room;
	struct verify_version *versions; /* by seq */
	size_t n_versions, versions_room;
	struct verify_term *terms; /* by id */
	size_t n_terms, terms_room;
};

void verify_fault(struct verify *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A negative result of the code under check is a fault and checking goes on; only -ENOMEM ends it.
 */
int verify_failed(struct verify *v, int r, const char *what);
struct verify_feed *verify_feed(struct verify *v, uint32_t id);
/* Finds or adds; NULL without memory. */
struct verify_feed *verify_feed_add(struct verify *v, uint32_t id);
/* Makes room for one more of SIZE in the array at *ARRAY. */
int verify_room(void *array, size_t n, size_t *room, size_t size);

int verify_journal(struct verify *v);
int verify_index(struct verify *v);
/* Each feed of the index is what the journal says as of visible(feed); in verify_state.c. */
int verify_state(struct verify *v);
/* Deep: the terms of each body are exactly its postings; in verify_terms.c. */
int verify_terms(struct verify *v);

#endif
