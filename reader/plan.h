/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a query is answered on one feed.
 *
 * A condition of the query becomes a term if an index can answer it: a term asked for by name, a
 * label requirement (every label is indexed as `key` and as `key=value`), or a requirement on a
 * field with an index. If the term with the fewest postings has at most SORT_MAX of them, and fewer
 * than half of the namespace's objects, it is the driver: its objects are sorted by key and checked
 * one by one. Otherwise the plan walks all names, or those of the namespace: no dearer then, and in
 * bounded memory. Either way objects come in key order, as continue tokens need.
 *
 * Terms asked for by name, and those that few objects have, are checked in the index; selectors
 * always on the body. The index knows only the newest version of each object, so an older version
 * (PAST) is checked on its body.
 */
#ifndef READER_PLAN_H
#define READER_PLAN_H

#include "reader/handle.h"
#include "reader/query.h"
#include "store/index/terms.h"
#include "store/read/snapshot.h"

#define SORT_MAX         8192 /* objects: about 0.5 MB */
#define ALTERNATIVES_MAX 64   /* values of one label that are looked up */

/* A condition as a term of the feed. */
struct plan_term {
	uint32_t definition;
	struct bytes value; /* in plan.text */
	uint64_t count;     /* of its postings, those of its alternatives included */
	size_t n_more;      /* the next terms are alternatives: other values of the label */
	bool asked;         /* for by name, so it is checked; else a selector checks it */
	bool checked;       /* in the index, before the body: always or because few have it */
};

struct plan {
	struct plan_term *terms;
	size_t n_terms, room;
	size_t driver;       /* in terms, when postings is set */
	bool postings;       /* walk the driver's postings, else the names with the prefix */
	bool empty;          /* a term has no postings at all */
	struct bytes prefix; /* in text */
	struct bytes name;   /* of metadata.name in the selector, the query's; empty: any */
	struct buf text;
	struct terms *on_body; /* definitions of the asked terms, for bodies */
};

/* Makes the plan of QUERY on FEED; PLAN is emptied first. PAST: older versions will be checked too.
 * Returns: 0; AGAIN: an index is being filled; ERR_NO_INDEX. */
int plan_make(struct snapshot *snapshot, const struct snapshot_feed *feed,
	const struct query *query, bool past, struct plan *plan);
void plan_release(struct plan *plan);
void plan_describe(const struct plan *plan, const struct query *query, char *text, size_t size);
/* Describes the checks of each candidate. DRIVEN: the candidates come from the driver's
 * postings. */
void plan_describe_checks(
	const struct plan *plan, const struct query *query, bool driven, char *text, size_t size);

/* Returns true if an index of the field finds all objects matching NEED: one value of a narrow
 * path. An absent field has no term, and neither has an empty value; an object with very many
 * values has none of them (terms.h). */
bool plan_may_use_index(const struct selector_requirement *need);
/* Finds a filled index of PATH, a canonical text. Returns: FOUND, NOT_FOUND; errors. */
int plan_find_index(struct snapshot *snapshot, const struct snapshot_feed *feed, const char *path,
	struct index_definition *ret_definition);

/* Checks a version by its key and the index. Returns: FOUND, NOT_FOUND. */
int plan_accepts(const struct plan *plan, const struct query *query, struct snapshot *snapshot,
	struct bytes key, const struct index_entry *entry);

/* Checks the rest on the body. PAST: RECORD is not the newest version. Returns: FOUND, NOT_FOUND,
 * ERR_CORRUPT. */
int plan_matches(
	const struct plan *plan, const struct query *query, const struct record *record, bool past);

/* ---- advice.c ----------------------------------------------------------- */

#define ADVICE_SIZE 1024

/* A list of FEED has read READ objects and given GIVEN. Writes one sentence with the path of
 * the missing index, or "" if the list was cheap or no index would help. An index helps a field
 * selector for one value, and a page in the order of a field. Returns: 0 or an error. */
int advice_write(struct snapshot *snapshot, const struct snapshot_feed *feed,
	const struct query *query, uint64_t read, uint64_t given, char text[ADVICE_SIZE]);

#endif
