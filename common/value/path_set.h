/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several paths in one document: one pass over an object finds all values for a table, an index or
 * a selector. One walk over the document matches the tree of the paths' leading keys and [*], and
 * ends with the last of them. Each path is then followed from there.
 *
 *	path_set_add(set, path, &number);       for each path; PATH stays the caller's, and in use
 *	path_set_add_keys(set, "a.b", &number); for keys alone
 *	path_set_find(set, document);           for each document
 *	path_set_eval(set, number, fn, arg);    as path_eval()
 *	path_set_value(set, number);            the value at the keys
 *
 * A path added between two documents counts from the next one on. One thread at a time.
 */
#ifndef COMMON_VALUE_PATH_SET_H
#define COMMON_VALUE_PATH_SET_H

#include "common/value/path.h"

struct path_set_key; /* a key of several paths, below the keys before it */
struct path_set_found;

struct path_set {
	struct path_set_key *keys; /* number 0 is the document */
	size_t n_keys, keys_room;
	struct path_set_member {
		const struct path *path;
		size_t key;   /* the last of its keys in the tree */
		size_t steps; /* in the tree */
	} * members;
	size_t n_members, members_room;
	struct path_set_found *found; /* the values in the document */
	size_t n_found, found_room;
	uint64_t maps; /* visited, in all documents */
};

void path_set_release(struct path_set *set);

int path_set_add(struct path_set *set, const struct path *path, size_t *ret_number);

/* Adds the path KEYS, names without dots in them, separated by dots, up to one of "[:|}". The
 * caller must keep the text. Other paths of SET have no [*], or path_use_arrays_only(). */
int path_set_add_keys(struct path_set *set, const char *keys, size_t *ret_number);

/* Returns: 0, ERR_CORRUPT or -ENOMEM. */
int path_set_find(struct path_set *set, struct bytes document);

/* Returns the value of path NUMBER, of path_set_add_keys(), in the document of the last
 * path_set_find(); NULL: none. Borrowed until the next document. */
const struct value *path_set_value(const struct path_set *set, size_t number);

/* Follows path NUMBER, of path_set_add(), in the document of the last path_set_find(). */
int path_set_eval(const struct path_set *set, size_t number, path_found_fn *found_fn, void *arg);

/* Returns its first value in RET_VALUE: FOUND, NOT_FOUND or an error. */
int path_set_first(const struct path_set *set, size_t number, struct value *ret_value);

#endif
