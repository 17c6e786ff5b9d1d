/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of a collection in byte order: blocks of up to 512, so that inserting in the middle of a
 * million stays cheap and a list page is found by two binary searches.
 */
#ifndef SIMULATOR_KEYLIST_H
#define SIMULATOR_KEYLIST_H

#include "common/bytes.h"

struct version;

/* One key that ever was; lives until its deletion has been trimmed. */
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

/* Valid until the next insert or remove. */
struct keylist_place {
	size_t block;
	size_t slot;
};

void keylist_release(struct keylist *list); /* not the entries */

struct entry *keylist_find(const struct keylist *list, const char *key);
void keylist_insert(struct keylist *list, struct entry *entry); /* its key is not there yet */
void keylist_remove(struct keylist *list, const struct entry *entry);

/* First key not below KEY. */
struct keylist_place keylist_seek(const struct keylist *list, const char *key);

/* The N-th key, counted from 0. */
struct keylist_place keylist_nth(const struct keylist *list, size_t n);

/* The entry at PLACE, which moves on; NULL behind the last. */
struct entry *keylist_next(const struct keylist *list, struct keylist_place *place);

/* Keys from PLACE on. */
size_t keylist_left(const struct keylist *list, struct keylist_place place);

#endif
