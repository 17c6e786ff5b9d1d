/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a transaction of the index will write, collected in memory, so that each database is written
 * in key order and each term is looked up and counted once. Knows no database:
 * index_write.c asks for the collected objects, terms and postings and writes them.
 *
 * Everything refers to everything by number, so that arrays may move while they grow. Numbers and
 * pointers handed out are valid until the next call that adds something, numbers until
 * changes_reset().
 */
#ifndef STORE_INDEX_CHANGES_H
#define STORE_INDEX_CHANGES_H

#include "common/buf.h"
#include "store/index/index.h"

/* One name: what the index holds of it, and what it shall hold. */
struct change_object {
	uint32_t feed;
	uint32_t key_at, key_size;
	bool present;           /* shall be there */
	bool changed;           /* else it was only looked up */
	uint64_t stored_object; /* id in the database, 0: the name is not there */
	struct index_entry to;  /* valid when present */
};

/* One term by its key in the database (definition, value or its short form). */
struct change_term {
	uint32_t key_at, key_size;
	uint32_t stamp;      /* of the comparison that saw it last */
	bool old, new;       /* sides of that comparison it was on */
	uint32_t begin, end; /* its postings in order, after changes_sort() */
	uint64_t id;         /* filled in by the writer */
};

struct change_posting {
	uint64_t object;
	uint32_t term;
	int32_t delta; /* +1 enter, -1 take out; after changes_sort() the sum for this object */
};

struct changes {
	struct buf text;
	struct change_object *objects;
	size_t n_objects, objects_room;
	struct change_term *terms;
	size_t n_terms, terms_room;
	struct change_posting *postings;
	size_t n_postings, postings_room;
	uint32_t *object_slots, *term_slots; /* open addressing; number + 1, 0: free */
	size_t object_slots_size, term_slots_size;
	uint32_t *touched; /* terms of the comparison at work */
	size_t n_touched, touched_room;
	uint32_t stamp;
};

void changes_release(struct changes *changes);
/* Forgets everything, keeps a moderate amount of memory. */
void changes_reset(struct changes *changes);
/* Bytes in use; a transaction is flushed when they pass its limit. */
size_t changes_size(const struct changes *changes);

static inline struct bytes changes_key(const struct changes *changes, uint32_t at, uint32_t size)
{
	return BYTES(changes->text.data + at, size);
}

/* FOUND or NOT_FOUND. */
int changes_find(
	const struct changes *changes, uint32_t feed, struct bytes key, uint32_t *ret_object);
/* A name that changes_find() does not know. */
int changes_add(struct changes *changes, const struct change_object *object, struct bytes key,
	uint32_t *ret_object);

/* The comparison of the terms an object had and has: begin, a call per term and side with its key
 * in the database, end. Only terms that are on one side become postings. */
void changes_compare_begin(struct changes *changes);
int changes_compare_term(struct changes *changes, struct bytes key, bool is_new);
int changes_compare_end(struct changes *changes, uint64_t object);


/*
 * Groups the postings by term, by object inside, summed per object; those that cancel each other
 * are gone. RET_ORDER gets the terms that have postings left, in the order of their keys (an array
 * the caller frees). ERR_CORRUPT when a posting would be entered or taken out twice.
 */
int changes_sort(struct changes *changes, uint32_t **ret_order, size_t *ret_n);

/* The numbers of all objects in the order of feed and key (an array the caller frees). */
int changes_sort_names(const struct changes *changes, uint32_t **ret_order);

#endif
