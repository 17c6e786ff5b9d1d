/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A query of kinf.h, checked and parsed once for all its feeds, and the continue token of its next
 * page.
 *
 * All pages of a list show the state as of its first page (store/read/as_of.h). A token is
 * base64url of
 *
 *	"c2", CRC-32C u32 of what follows it here, CRC-32C u32 of what is selected and of the order,
 *	first 8 bytes of the journal's uuid, seq u64, RV (its size u8 first),
 *	of a sorted list the sort value, key
 *
 * The value and the key are those of the last object given; the next page begins after it. A token
 * is refused by a query for anything else: its pages would be no list.
 */
#ifndef READER_QUERY_H
#define READER_QUERY_H

#include "common/buf.h"
#include "common/value/path.h"
#include "common/value/selector.h"
#include "reader/kinf.h"
#include "reader/sort_value.h"
#include "store/index/index.h"
#include "store/journal/journal.h"

#define QUERY_JOURNAL_SIZE 8

/* The end of a page. */
struct query_place {
	uint8_t journal[QUERY_JOURNAL_SIZE];
	uint64_t seq;    /* all pages show the state as of it */
	struct bytes rv; /* of that state; empty: not known, or of several feeds */
	struct sort_value value;
	struct bytes key;
};

/* Owns all it points to. */
struct query {
	const char *namespace_;  /* NULL: all */
	const char *prefix;      /* NULL: any */
	struct kinf_term *terms; /* one allocation, with the texts */
	size_t n_terms;
	struct selector *labels, *fields; /* NULL: none */
	struct path *sort_path;           /* NULL: by key */
	uint64_t limit;                   /* 0: none */
	uint64_t at_event;                /* the state as of it; 0: the newest */
	uint32_t identity;                /* of selection and order, without the feed */
	/* there is a token; AFTER is of it and borrows from it, once query_continue has read it */
	bool continues;
	struct query_place after;
	struct bytes next_key; /* the smallest key after AFTER's */
	struct bytes from;     /* the smallest key wanted: next_key; empty for a sorted list */
	struct buf token;
};

/* Copies everything from GIVEN. */
int query_init(struct query *query, const struct kinf_query *given);
void query_release(struct query *query);

/* Returns: 0; ERR_SYNTAX: the query selects or sorts by a dropped field. */
int query_check_feed(const struct query *query, const struct feed_definition *feed);

/* Returns: 0; ERR_SYNTAX: the term's value lacks parts of its compound index. */
int query_check_term(const struct kinf_term *term, const struct index_definition *definition);

/* Puts the token of the page of FEED after PLACE into TOKEN. */
int query_token(const struct query *query, const char *feed, const struct query_place *place,
	struct buf *token);
/* Reads where the page before ended. FEED: the name of the feed. Returns: 0; ERR_SYNTAX: the
 * token is of another list. */
int query_continue(struct query *query, const char *feed);

/* Checks namespace and prefix. A key without a namespace is of a cluster-scoped kind: only the
 * prefix counts. */
bool query_accepts_key(const struct query *query, struct bytes key);
/* Checks the selectors. Returns: FOUND, NOT_FOUND, ERR_CORRUPT. */
int query_accepts_body(const struct query *query, struct bytes body);

#endif
