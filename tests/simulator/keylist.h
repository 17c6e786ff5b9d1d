/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of a collection in byte order, in blocks of up to 512: inserting a key among a million
 * moves few pointers, and two binary searches find a key.
 */
#ifndef SIMULATOR_KEYLIST_H
#define SIMULATOR_KEYLIST_H

#include "common/bytes.h"

struct version;

/* A key with the versions of its object. It exists until history has forgotten the object's
 * deletion. */
struct entry {
	struct version *newest;
	char key[];
};

struct keylist_block;

struct keylist {
	struct keylist_block **blocks;
	size_t n_blocks;
	size_t capacity;
	size_t count;
};

/* A position between keys. Valid until the next insert or remove. */
struct keylist_place {
	size_t block;
	size_t slot;
};

/* Frees the blocks; the entries belong to the caller. */
void keylist_release(struct keylist *list);

struct entry *keylist_find(const struct keylist *list, const char *key);
/* Inserts ENTRY with a new key. */
void keylist_insert(struct keylist *list, struct entry *entry);
void keylist_remove(struct keylist *list, const struct entry *entry);

/* Returns the place of the first key from KEY on. */
struct keylist_place keylist_seek(const struct keylist *list, const char *key);

/* Returns the place of the N-th key, counted from 0. */
struct keylist_place keylist_nth(const struct keylist *list, size_t n);

/* Returns the entry at PLACE and moves PLACE to the next one; NULL after the last. */
struct entry *keylist_next(const struct keylist *list, struct keylist_place *place);

/* Returns the number of keys from PLACE on. */
size_t keylist_left(const struct keylist *list, struct keylist_place place);

#endif
