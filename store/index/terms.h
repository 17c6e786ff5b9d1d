/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Terms: the index values of a stored version. The processor enters them, verify compares them, and
 * readers check long values with them (the index keeps only a hash). All use this one rule:
 *
 *	namespace  the part of the object key before '/'; none for cluster-scoped objects
 *	label      `key` and `key=value` of each label
 *	one path   the text of each scalar found by the path; null counts as absent
 *	several    one value for each combination of the paths' values: the parts, escaped and
 *		   joined by commas; none if a path finds nothing
 *
 * Maps and arrays are not values and count as unindexable. An object with more than TERMS_MAX terms
 * in one definition gets none of them, and counts as unindexable.
 *
 *	struct terms *terms;            (one per feed, made again when its definitions change)
 *	terms_new(&terms); terms_add(terms, &definition); ...
 *	struct term_list list = {0};    (one per version)
 *	terms_collect(terms, &record, &list);
 *	... list.terms, list.n ...      (until the next terms_collect into LIST)
 *	term_list_release(&list); terms_free(&terms);
 *
 * One thread at a time per struct terms.
 */
#ifndef STORE_INDEX_TERMS_H
#define STORE_INDEX_TERMS_H

#include "common/buf.h"
#include "store/index/index.h"
#include "store/journal/journal.h"

#define TERMS_MAX 4096 /* of one object in one definition */

struct terms;

int terms_new(struct terms **ret_terms);
void terms_free(struct terms **terms);

/* Copies DEFINITION unless its id is known. ERR_SYNTAX: its paths can't be parsed: the index is
 * damaged, for they were checked before. */
int terms_add(struct terms *terms, const struct index_definition *definition);

struct term_list {
	struct index_term *terms; /* duplicates are possible */
	size_t n, capacity;
	size_t unindexable; /* values left out in this collection */
	struct buf text;
};
void term_list_release(struct term_list *list);

/* Empties LIST and fills it with the terms of RECORD in all definitions. A record without body has
 * none. ERR_CORRUPT, -ENOMEM. The values are copies. */
int terms_collect(struct terms *terms, const struct record *record, struct term_list *list);

/* Finds the terms of RECORD in all definitions, for terms_has(). Errors as of terms_collect(). */
int terms_evaluate(struct terms *terms, const struct record *record);
/* Returns whether the last evaluated record has exactly this value in the definition. */
bool terms_has(const struct terms *terms, uint32_t definition, struct bytes value);

#endif
