/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several paths that are followed in the same document. The keys with which they begin are found in
 * one walk over it, which ends with the last of them; each path is then followed from there. For
 * the index of pods with their labels and three paths this takes a third of the time of path_eval()
 * for each.
 *
 *	path_set_add(set, path, &number);     for each path; PATH stays the caller's, and in use
 *	path_set_find(set, document);         for each document
 *	path_set_eval(set, number, fn, arg);  as path_eval()
 *
 * One thread at a time.
 */
#ifndef COMMON_VALUE_PATH_SET_H
#define COMMON_VALUE_PATH_SET_H

#include "common/value/path.h"

struct path_set_key; /* a key that some paths share, below the keys before it */

struct path_set {
	struct path_set_key *keys; /* number 0 is the document */
	size_t n_keys, keys_room;
	struct path_set_member {
		const struct path *path;
		size_t key; /* the last of its leading keys */
	} *members;
	size_t n_members, members_room;
};

void path_set_release(struct path_set *set);

int path_set_add(struct path_set *set, const struct path *path, size_t *ret_number);

/* Returns: 0 or ERR_CORRUPT. */
int path_set_find(struct path_set *set, struct bytes document);

/* Follows path NUMBER in the document of the last path_set_find(). */
int path_set_eval(const struct path_set *set, size_t number, path_found_fn *found_fn, void *arg);

#endif
