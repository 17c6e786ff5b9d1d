/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of the verify group. */
#ifndef STORE_VERIFY_VERIFY_INTERNAL_H
#define STORE_VERIFY_VERIFY_INTERNAL_H

#include "common/array.h"
#include "store/read/snapshot.h"
#include "store/verify/verify.h"

/* A feed in the journal and in the index. */
struct verify_feed {
	uint32_t id;
	bool in_journal, in_index;
	bool compared; /* its objects are */
	char name[64];
	struct feed_checkpoint checkpoint; /* without rv */
	struct index_feed index;
	uint64_t list_begin; /* the open list at the point the log was read to */
	uint64_t visible;
	uint64_t expected; /* the journal's objects at visible */
};

/* A value of the index, its count, and the number of its postings found. */
struct verify_term {
	uint64_t id, count, seen, last; /* the object of the last posting seen */
	uint32_t definition;
	bool dropping; /* its definition is being removed: postings may outlive their objects */
};

/* A version in the log. */
struct verify_version {
	uint64_t seq;
	uint32_t feed;
	bool followed; /* by a later record or the head */
};

struct verify {
	const struct verify_options *options;
	struct verify_report report;
	uint64_t checked; /* objects with terms compared */
	struct journal *journal;
	struct txn *journal_txn;
	struct journal_meta meta;
	uint64_t history;          /* bytes of records found above the horizon */
	struct snapshot *snapshot; /* NULL: there is no index to check */
	bool log_is_cut; /* a part of the log is unreadable: missing records may be there */
	bool heads_are_cut;
	bool index_is_broken;      /* can't be walked, so it is not compared with anything */
	struct verify_feed *feeds; /* by id */
	size_t n_feeds, feeds_room;
	struct verify_version *versions; /* by seq */
	size_t n_versions, versions_room;
	struct verify_term *terms; /* by id */
	size_t n_terms, terms_room;
	unsigned ticks;
	struct snapshot_feed *chosen; /* the feeds of options->feed */
	size_t n_chosen;
};

void verify_fault(struct verify *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Counts a negative result of the code under check as a fault. Returns: 0; only -ENOMEM and the
 * like and ERR_SNAPSHOT_EXPIRED are passed on. */
int verify_failed(struct verify *v, int r, const char *what);
/* Calls options->tick. Returns: 0; its negative result. */
int verify_tick(struct verify *v);
/* Returns NULL if the feed is unknown. Borrowed until the next verify_feed_add(). */
struct verify_feed *verify_feed(struct verify *v, uint32_t id);
/* Returns true if the bodies, terms and state of FEED are to be checked. */
bool verify_wants(const struct verify *v, uint32_t feed);
/* Finds the feed or adds it. */
int verify_feed_add(struct verify *v, uint32_t id, struct verify_feed **ret_feed);

/* Each in the file of its name. Checks the journal by itself. */
int verify_journal(struct verify *v);
/* Checks the index by itself. */
int verify_index(struct verify *v);
/* Compares each feed of the index with the journal as of visible(feed). */
int verify_state(struct verify *v);
/* Compares the terms of each body with its postings (deep). */
int verify_terms(struct verify *v);

#endif
