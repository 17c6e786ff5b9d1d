/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a stored version becomes index terms. One rule, used by the processor to enter them, by
 *verify to compare, and by readers to check values that the index keeps only as a hash:
 *
 *	namespace  the part of the object key before '/'; none for cluster-scoped objects
 *	label      of each label `key` and `key=value`
 *	one path   the text of each scalar it finds; null is as good as absent
 *	several    for each combination of what the paths find, the parts escaped and joined by
 *commas; none when one path finds nothing
 *
 * Maps and arrays are no values: they are counted as unindexable, and so is a definition of which
 *an object would have more than TERMS_MAX terms; it gets none of it then.
 *
 *	struct terms *terms;            (one per feed, made again when its definitions change)
 *	terms_new(&terms); terms_add(terms, &definition); ...
 *	struct term_list list = {0};    (one per version that is needed at the same time)
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

/* Copies DEFINITION. ERR_SYNTAX when its paths are none (they were checked when it was made, so the
 * index is damaged then). */
int terms_add(struct terms *terms, const struct index_definition *definition);

struct term_list {
	struct index_term *terms; /* duplicates are possible */
	size_t n, capacity;
	size_t unindexable; /* values left out in this collection */
	struct buf text;
};
void term_list_release(struct term_list *list);

/* The terms of RECORD in all definitions added; LIST is emptied first. A record without body has
 * none. ERR_CORRUPT, -ENOMEM. The values are copies, RECORD need not live on. */
int terms_collect(struct terms *terms, const struct record *record, struct term_list *list);

/* Does RECORD have exactly this value in the definition (one of those added)? FOUND, NOT_FOUND. */
int terms_has(
	struct terms *terms, const struct record *record, uint32_t definition, struct bytes value);

#endif
