/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store with journal and index in the scratch folder, written in the order the daemons write it:
 * records of one feed "pods" (indexes namespace, label, node), then small_store_take(). For tests
 * of readers.
 */
#ifndef UNIT_SMALL_STORE_H
#define UNIT_SMALL_STORE_H

#include "processor/processor.h"
#include "store/index/index.h"
#include "store/journal/journal.h"

struct json_parser;

struct small_store {
	const char *path;
	struct home *home;
	struct journal *journal;
	struct index *index;
	uint32_t feed;
	uint32_t namespace_, label, node; /* definitions */
	uint64_t rv;                      /* of the newest object */
	struct processor p;
	struct config *config;
	struct json_parser *parser;
};

/* With the feed, its first list ended and taken: visible and empty. */
void small_store_open(struct small_store *s);
/* Closes both environments in order, as an ordered shutdown does. */
void small_store_close(struct small_store *s);

/* One more feed of pods, never listed, without indexes; later writes go to it. */
void small_store_add_feed(struct small_store *s, const char *name);

/* Each in its own transaction; the seq. SIZE: of a text in the body, to make it large. */
uint64_t small_store_put(struct small_store *s, const char *key, const char *node, size_t size);
uint64_t small_store_delete(struct small_store *s, const char *key);
uint64_t small_store_list_begin(struct small_store *s);
uint64_t small_store_list_end(struct small_store *s);

/* Takes all there is into the index, in one transaction; an open list's records wait for its end.
 */
void small_store_take(struct small_store *s);

#endif
