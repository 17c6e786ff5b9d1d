/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a query to a way of answering it on one feed.
 *
 * A query's conditions become terms where an index has them: the index terms asked for, label
 * requirements (every label is indexed as `key` and `key=value`), field requirements whose path is
 * an index. The term with the fewest postings drives when it has at most SORT_MAX: its objects are
 * sorted by key and looked at one by one. Else all names are walked. Terms that were asked for are
 * checked in the index, selectors always on the body.
 */
#ifndef READER_PLAN_H
#define READER_PLAN_H

#include "common/buf.h"
#include "reader/handle.h"
#include "store/index/terms.h"

#define SORT_MAX 8192

/* A query, parsed; the same for all feeds. Owns all it points to. */
struct query {
	const char *namespace_; /* NULL: all */
	const char *prefix;     /* NULL: any */
	struct kinf_term *terms; /* one allocation with all texts behind them */
	size_t n_terms;
	struct selector *labels, *fields; /* NULL: none */
	struct buf from; /* smallest key wanted; empty: from the start */
	const char *sort_by; /* NULL: by key */
	const char *token;   /* of a sorted list: sorted.h reads it; else it became FROM */
	uint64_t limit;      /* 0: none */
};

int query_init(struct query *query, const struct kinf_query *from);
void query_release(struct query *query);

/* Is an object of this key wanted, by namespace and prefix? Keys without a namespace are of kinds
 * that have none: then only the prefix counts. */
bool query_takes_key(const struct query *query, struct bytes key);
/* Is a body wanted, by the selectors? FOUND, NOT_FOUND, ERR_CORRUPT. */
int query_takes_body(const struct query *query, struct bytes body);

/* The token of the page that follows KEY, put into TOKEN. */
int query_token(struct bytes key, struct buf *token);

/* One condition as a term of the feed at hand. */
struct plan_term {
	uint32_t definition;
	struct bytes value; /* in plan.text */
	uint64_t count;     /* of its postings */
	bool asked;         /* for by name: to be checked; else a selector checks it on the body */
};

struct plan {
	struct plan_term *terms;
	size_t n_terms, capacity;
	size_t driver;         /* in terms, when postings is set */
	bool postings;         /* walk the driver's postings, else the names that begin with prefix */
	bool empty;            /* a term has no postings at all */
	struct bytes prefix;   /* in text */
	struct buf text;
	struct terms *long_values; /* to verify values the index keeps as a hash; NULL: none */
};

/* 0, AGAIN (an index is still being filled), ERR_NO_INDEX. PLAN is emptied first. */
int plan_make(struct snapshot *snapshot, const struct snapshot_feed *feed,
	const struct query *query, struct plan *plan);
void plan_release(struct plan *plan);
void plan_describe(const struct plan *plan, const struct query *query, char *text, size_t size);
/* Its second half: what is checked of each candidate. DRIVEN: they have one of the terms already. */
void plan_describe_checks(const struct query *query, bool driven, char *text, size_t size);

/* Of an entry, by its key and the index alone: FOUND, NOT_FOUND. */
int plan_accepts(const struct plan *plan, const struct query *query, struct snapshot *snapshot,
	struct bytes key, const struct index_entry *entry);

/* Of a version, by everything the index can't tell: FOUND, NOT_FOUND. */
int plan_matches(const struct plan *plan, const struct query *query, const struct record *record);

/* The driver's objects, sorted by key; at most SORT_MAX. */
struct run {
	struct snapshot_object *objects;
	size_t n, capacity, next;
};

int run_fill(struct run *run, struct snapshot *snapshot, uint32_t feed, const struct plan *plan,
	const struct query *query);
int run_next(struct run *run, struct snapshot *snapshot, struct bytes *ret_key,
	struct index_entry *ret_entry);
void run_reset(struct run *run);
void run_release(struct run *run);

#endif
