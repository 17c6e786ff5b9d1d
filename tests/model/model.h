/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model: the expected content of the store, in the simplest form to compare with. It knows the
 * rules of docs/architecture.md as arithmetic on arrays: a log of all records ever committed, the
 * newest state of each object, and the feeds with an open list. It uses no code of the store.
 *
 * The world is small (FEEDS feeds of KEYS objects): random steps soon reach all combinations.
 */
#ifndef TESTS_MODEL_MODEL_H
#define TESTS_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FEEDS      2
#define KEYS       20
#define NODES      4
#define KEY_GROUPS 3 /* key k is in namespace k % KEY_GROUPS */

enum {
	ADDED = 1,
	MODIFIED,
	DELETED,
	LIST_BEGIN,
	LIST_END,
	FEED_ADDED,
	FEED_LEFT
};                                         /* FORMAT.md, types */
enum { STATE_UNKNOWN = 1, ABANDONED = 2 }; /* FORMAT.md, flags */

struct object {
	bool there;
	uint64_t uid, rv;
	unsigned node;
};

/* A record expected in the log. */
struct entry {
	uint64_t seq, prev;
	uint64_t next; /* of the same object; 0: none yet */
	unsigned feed; /* 0 .. FEEDS - 1 */
	uint32_t id;   /* the feed's id at the time */
	uint8_t type, flags;
	int key; /* -1: none */
	struct object object;
};

/* An object's newest version. */
struct latest {
	uint64_t seq;
	struct object object;
};

/* The reflector's knowledge of a feed after all records, committed or not. */
struct feed_model {
	uint32_t id; /* 0: it is not in the configuration */
	bool listed, attempt, owed;
	uint64_t list_begin; /* 0: none */
	struct latest head[KEYS];
	bool seen[KEYS];
};

/* A feed removed from the configuration. */
struct left_feed {
	uint32_t id;
	uint64_t seq; /* of its FEED_LEFT */
	struct latest head[KEYS];
};

struct model {
	struct entry *log; /* by seq, from 1: log[0] is seq 1 */
	size_t n, capacity;
	uint64_t horizon;
	struct feed_model feed[FEEDS];
	struct left_feed *left;
	size_t n_left;
	/* The state as of the last commit, restored by a crash. */
	size_t committed_n, committed_left;
	struct feed_model committed[FEEDS];
};

void model_release(struct model *model);
void model_commit(struct model *model);
void model_crash(struct model *model);

void model_feed_added(struct model *model, unsigned feed, uint32_t id);
void model_feed_left(struct model *model, unsigned feed);
/* Returns the seq of feed ID's FEED_LEFT record; 0 if it has not left. */
uint64_t model_left_at(const struct model *model, uint32_t id);

/* Adds the record of a watch event: OBJECT is the new state (there false: deleted). */
void model_event(struct model *model, unsigned feed, int key, struct object object);

void model_list_begin(struct model *model, unsigned feed);
void model_list_item(struct model *model, unsigned feed, int key, struct object object);
void model_list_end(struct model *model, unsigned feed);
void model_list_abandon(struct model *model, unsigned feed);

/* Returns the I-th key in the order of the keys' bytes: by namespace, then by number. */
int model_key_in_order(int i);

/* Computes the state of the feed's objects after all records up to SEQ. */
void model_state(const struct model *model, uint32_t id, uint64_t seq, struct latest state[KEYS]);

/* Returns whether the log must still have ENTRY at the present horizon. The records of a removed
 * feed are deleted in slices while the horizon is before its FEED_LEFT record, so some of them may
 * be gone. */
enum survival { IS_GONE, IS_KEPT, MAY_BE_GONE };
enum survival model_survives(const struct model *model, const struct entry *entry);

#endif
