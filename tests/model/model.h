/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model: what the store must hold, in the plainest form that can be checked against it. It knows
 * the rules of architecture.md only as arithmetic on arrays: a log of all records ever committed, the
 * newest state of each object, and which feed has a list open. No code of the store is used here.
 *
 * The world is small on purpose (FEEDS feeds of KEYS objects), so that everything happens to
 * everything.
 */
#ifndef TESTS_MODEL_MODEL_H
#define TESTS_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FEEDS 2
#define KEYS  20
#define NODES 4
#define KEY_GROUPS 3 /* key k is in namespace k % KEY_GROUPS */

enum { ADDED = 1, MODIFIED, DELETED, LIST_BEGIN, LIST_END, FEED_ADDED }; /* FORMAT.md, types */
enum { STATE_UNKNOWN = 1, ABANDONED = 2 };                           /* FORMAT.md, flags */

struct object {
	bool there;
	uint64_t uid, rv;
	unsigned node;
};

/* A record as the log must have it. */
struct entry {
	uint64_t seq, prev;
	unsigned feed; /* 0 .. FEEDS - 1 */
	uint8_t type, flags;
	int key; /* -1: none */
	struct object object;
};

/* What the reflector knows of a feed after all that was put so far. */
struct feed_model {
	bool exists, listed, attempt, owed;
	uint64_t list_begin; /* 0: none */
	struct latest {
		uint64_t seq;
		struct object object;
	} head[KEYS];
	bool seen[KEYS];
};

struct model {
	struct entry *log; /* by seq, from 1: log[0] is seq 1 */
	size_t n, capacity;
	uint64_t horizon;
	struct feed_model feed[FEEDS];
	/* As of the last commit: where a crash goes back to. */
	size_t committed_n;
	struct feed_model committed[FEEDS];
};

void model_release(struct model *model);
void model_commit(struct model *model);
void model_crash(struct model *model);

void model_feed_added(struct model *model, unsigned feed);

/* The watch of the feed delivers OBJECT's new state (there false: deleted). */
void model_event(struct model *model, unsigned feed, int key, struct object object);

void model_list_begin(struct model *model, unsigned feed);
void model_list_item(struct model *model, unsigned feed, int key, struct object object);
void model_list_end(struct model *model, unsigned feed);
void model_list_abandon(struct model *model, unsigned feed);

/* The i-th key in the order of the keys' bytes: by namespace, then by number. */
int model_key_in_order(int i);

/* State of the feed's objects after all records up to SEQ. */
void model_state(const struct model *model, unsigned feed, uint64_t seq, struct latest state[KEYS]);

/* Must the log still hold this entry, now that the horizon is where it is? */
bool model_survives(const struct model *model, const struct entry *entry);

#endif
