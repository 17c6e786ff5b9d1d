/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The changes of one transaction of the index, collected in memory: each database is written in key
 * order, and each term looked up and counted once. This module knows no database: index_write.c
 * fills it, index_flush.c writes its content.
 *
 * Items refer to each other by number: arrays move as they grow. A number is valid until
 * changes_reset(), a pointer until the next addition.
 */
#ifndef STORE_INDEX_CHANGES_H
#define STORE_INDEX_CHANGES_H

#include "common/buf.h"
#include "common/hashtable.h"
#include "store/index/entry.h"

/* One name: the state in the database and the state after the transaction. */
struct change_object {
	uint32_t feed;
	uint32_t key_at, key_size;
	bool present;           /* exists after the transaction */
	bool changed;           /* else it was only looked up */
	uint64_t stored_object; /* id in the database, 0: the name is not there */
	struct index_entry to;  /* valid if present */
};

/* One term by its key in the database (definition, value or its short form). */
struct change_term {
	uint32_t key_at, key_size;
	uint32_t stamp;      /* of the last comparison with this term */
	bool old, new;       /* on this side of the comparison */
	uint32_t begin, end; /* its postings, after changes_sort() */
	uint64_t id;         /* set by the writer */
};

struct change_posting {
	uint64_t object;
	uint32_t term;
	int32_t delta; /* +1 add, -1 remove; after changes_sort() the sum for this object */
};

#define CHANGES_LAST 64

struct changes {
	struct buf text;
	struct change_object *objects;
	size_t n_objects, objects_room;
	struct change_term *terms;
	size_t n_terms, terms_room;
	struct change_posting *postings;
	size_t n_postings, postings_room;
	struct hashtable object_numbers, term_numbers; /* by key */
	uint32_t *touched;                             /* terms of the current comparison */
	size_t n_touched, touched_room;
	uint32_t stamp;
	uint32_t last[CHANGES_LAST]; /* terms of the object before, by place: number + 1; 0: none */
};

void changes_release(struct changes *changes);
/* Forgets everything, keeps a moderate amount of memory. */
void changes_reset(struct changes *changes);
/* Bytes in use; the writer flushes the transaction above a limit. */
size_t changes_size(const struct changes *changes);

static inline struct bytes changes_key(const struct changes *changes, uint32_t at, uint32_t size)
{
	return BYTES(changes->text.data + at, size);
}

/* Returns: FOUND, NOT_FOUND. */
int changes_find(
	const struct changes *changes, uint32_t feed, struct bytes key, uint32_t *ret_object);
/* Adds a name unknown to changes_find(). */
int changes_add(struct changes *changes, const struct change_object *object, struct bytes key,
	uint32_t *ret_object);

/* Compares an object's old terms with its new ones: begin, one call per term and side with its
 * key in the database, end. Only terms on one side become postings. PLACE: of the term in the
 * object's list; most objects have most terms in common with the one before, in the same places. */
void changes_compare_begin(struct changes *changes);
int changes_compare_term(struct changes *changes, size_t place, struct bytes key, bool is_new);
/* Does the same if the object before had this value at this place. Returns: FOUND; NOT_FOUND:
 * nothing is done; errors. */
int changes_compare_same(struct changes *changes, size_t place, uint32_t definition,
	struct bytes value, bool is_new);
int changes_compare_end(struct changes *changes, uint64_t object);

/*
 * Groups the postings by term and each group by object, adds up postings of one object, and removes
 * zero sums. RET_ORDER: the terms left with postings, in key order (the caller frees the array).
 * ERR_CORRUPT: a posting would be added or removed twice.
 */
int changes_sort(struct changes *changes, uint32_t **ret_order, size_t *ret_n);

/* The numbers of all objects in the order of feed and key (an array the caller frees). */
int changes_sort_names(const struct changes *changes, uint32_t **ret_order);

#endif
