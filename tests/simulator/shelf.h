/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of a collection in byte order: blocks of up to 512, so that inserting in the middle of a
 * million stays cheap and a list page is found by two binary searches.
 */
#ifndef SIMULATOR_SHELF_H
#define SIMULATOR_SHELF_H

#include "common/bytes.h"

struct version;

/* One key that ever was; lives until its deletion has been trimmed. */
struct entry {
	struct version *newest;
	char key[];
};

struct shelf_block;

struct shelf {
	struct shelf_block **blocks;
	size_t n_blocks;
	size_t capacity;
	size_t count;
};

/* Valid until the next insert or remove. */
struct shelf_place {
	size_t block;
	size_t slot;
};

void shelf_release(struct shelf *shelf); /* not the entries */

struct entry *shelf_find(const struct shelf *shelf, const char *key);
void shelf_insert(struct shelf *shelf, struct entry *entry); /* its key is not there yet */
void shelf_remove(struct shelf *shelf, const struct entry *entry);

/* First key not below KEY. */
struct shelf_place shelf_seek(const struct shelf *shelf, const char *key);

/* The N-th key, counted from 0. */
struct shelf_place shelf_nth(const struct shelf *shelf, size_t n);

/* The entry at PLACE, which moves on; NULL behind the last. */
struct entry *shelf_next(const struct shelf *shelf, struct shelf_place *place);

/* Keys from PLACE on. */
size_t shelf_left(const struct shelf *shelf, struct shelf_place place);

#endif
