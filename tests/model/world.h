/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small cluster and a real store side by side with the model: every step is done to all of them,
 * the store by the daemons' own modules (recorder, pair), and after each the store is compared with
 * the model. A difference prints what and where, and ends the program.
 */
#ifndef TESTS_MODEL_WORLD_H
#define TESTS_MODEL_WORLD_H

#include <stdio.h>

#include "common/config/config.h"
#include "processor/pair.h"
#include "reader/kinf.h"
#include "reflector/record/record.h"
#include "store/read/as_of.h"
#include "store/read/follow.h"
#include "tests/model/listener.h"
#include "tests/model/model.h"
#include "tests/model/reads.h"

/* One change in the cluster: what a watch delivers. */
struct happened {
	int key;
	struct object object;
};

struct cluster_feed {
	struct object object[KEYS];
	struct happened *history;
	size_t n, capacity;
	size_t delivered;           /* the watch has delivered history up to here */
	size_t committed_delivered; /* as of the last commit */
	bool needs_list, committed_needs_list;
	/* The list in progress: the state it began with. */
	struct object listed[KEYS];
	size_t listed_n;
	int next_key;
};

/* What a follower's items amount to. */
struct follower {
	struct follow *follow;
	uint32_t id[FEEDS]; /* 0: not that one */
	size_t n;
	struct latest state[FEEDS][KEYS];
	uint64_t items, lapses;
	/* Kept while the readers are closed; NULL: it begins with the initial state. */
	struct follow_position *positions;
	uint8_t uuid[16];
};

/* A walk over the state of a feed as of an earlier seq. */
struct past_walk {
	struct as_of *as_of; /* NULL: none is under way */
	uint32_t id;
	uint64_t seq;
	int at; /* keys that were given or are not there, in order */
};

struct world {
	char *directory;
	unsigned chance; /* state of the random numbers */
	uint64_t rv, uid;
	struct cluster_feed cluster[FEEDS];
	struct model model;
	struct home *home;
	struct config *config;
	struct processor processor;
	struct journal *journal;
	struct recorder *recorder;
	struct record_feed feed[FEEDS];
	uint32_t id[FEEDS]; /* 0: it is not in the configuration */
	struct pair *pair;
	struct store *store;
	struct snapshot *snapshot;
	bool held; /* it was taken and not reset */
	struct follower follower;
	/* The same store as programs read it. */
	struct kinf *kinf;
	struct kinf_snapshot *reads; /* reset between two steps */
	struct pages pages;
	struct watcher watcher[WATCHERS];
	struct told told;
	uint64_t walks; /* lists in pages that came to their end */
	struct past_walk past;
	uint64_t past_walks; /* those that came to their end */
};

/* By number. */
extern const char *const world_feeds[FEEDS];

unsigned world_random(struct world *world, unsigned below);

void world_open(struct world *world, const char *directory, unsigned seed);
void world_close(struct world *world);

/* One random step; its name. */
const char *world_step(struct world *world);

/* Everything the store holds against the model. */
void world_check(struct world *world);
/* The processor takes all there is, the follower too, and both are as the model. */
void world_settle(struct world *world);

_Noreturn void world_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define MUST(condition, ...)                                                                       \
	do {                                                                                       \
		if (!(condition))                                                                  \
			world_fail(__VA_ARGS__);                                                   \
	} while (0)

/* ---- for the files of the model ---- */

/* Takes the newest snapshot; false: there is no index yet. */
bool world_look(struct world *world);
void world_check_journal(struct world *world);
void world_check_index(struct world *world);
void world_check_as_of(struct world *world);
void past_close(struct world *world);
void world_follow(struct world *world, unsigned items);
void world_follow_check(struct world *world);
void follower_open(struct world *world);
void follower_close(struct world *world);
void world_readers_open(struct world *world);
void world_readers_close(struct world *world);

void cluster_json(unsigned f, int key, const struct object *object, struct buf *out);
/* The record says what OBJECT is, body included. */
void check_object(const struct record *record, const struct object *object, const char *where);

void reflector_open(struct world *world);
void reflector_close(struct world *world);
/* Readers may be open or not; afterwards they are. */
void processor_open(struct world *world, bool anew);
bool processor_step(struct world *world);
void processor_configure(struct world *world);

void step_cluster(struct world *world);
void step_watch(struct world *world);
void step_replay(struct world *world);
void step_list_begin(struct world *world);
void step_list_items(struct world *world);
void step_list_end(struct world *world);
void step_list_abandon(struct world *world);
void step_commit(struct world *world);
void step_reflector_dies(struct world *world);
void step_feed_goes(struct world *world);
void step_feed_comes(struct world *world);
void step_trim(struct world *world);
void step_processor(struct world *world);
void step_processor_dies(struct world *world);
void step_reload(struct world *world);
void step_failpoint(struct world *world);

void key_text(int key, char text[16]);
int key_number(struct bytes key); /* -1: none of ours */

#endif
