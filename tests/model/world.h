/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small cluster, a real store and the model. Each step is made in all of them; in the store the
 * daemons' own modules (recorder, pair) make it. After each step the store is compared with the
 * model. A difference is printed and ends the program.
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

/* A change in the cluster, delivered by a watch. */
struct cluster_event {
	int key;
	struct object object;
};

struct cluster_feed {
	struct object object[KEYS];
	struct cluster_event *history;
	size_t n, capacity;
	size_t delivered;           /* the watch has delivered history up to here */
	size_t committed_delivered; /* as of the last commit */
	bool needs_list, committed_needs_list;
	/* The list in progress, with the state at its begin. */
	struct object listed[KEYS];
	size_t listed_n;
	int next_key;
};

/* A follower, and the sum of its items. */
struct follower {
	struct follow *follow;
	uint32_t id[FEEDS]; /* 0: it does not follow this feed */
	size_t n;
	struct latest state[FEEDS][KEYS];
	uint64_t items, lapses;
	/* Kept while the readers are closed; NULL: it begins with the initial state. */
	struct follow_position *positions;
	uint8_t uuid[16];
};

/* The newest change of a key in the work queue. */
struct queued {
	uint32_t id;
	uint64_t event;
};

/* A walk over the state of a feed as of an earlier seq. */
struct as_of_walk {
	struct as_of *as_of; /* NULL: none is under way */
	uint32_t id;
	uint64_t seq;
	int at; /* number of keys, in order, passed by the walk */
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
	bool held; /* the snapshot is open */
	struct follower follower;
	/* The same store, read through libkinf. */
	struct kinf *kinf;
	struct kinf_snapshot *reads; /* reset between two steps */
	struct kinf_queue *queue;    /* the handlers' keys */
	struct queued queued[FEEDS][KEYS];
	struct pages pages;
	struct watcher watcher[WATCHERS];
	struct call_counts counts;
	uint64_t walks; /* completed lists in pages */
	struct as_of_walk as_of_walk;
	uint64_t as_of_walks; /* completed walks */
};

/* By number. */
extern const char *const world_feeds[FEEDS];

unsigned world_random(struct world *world, unsigned below);

void world_open(struct world *world, const char *directory, unsigned seed);
void world_close(struct world *world);

/* Makes one random step; returns its name. */
const char *world_step(struct world *world);

/* Compares the whole store with the model. */
void world_check(struct world *world);
/* Lets the processor and the follower read everything, and compares both with the model. */
void world_settle(struct world *world);

_Noreturn void world_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define MUST(condition, ...) \
	do { \
		if (!(condition)) \
			world_fail(__VA_ARGS__); \
	} while (0)

/* ---- for the files of the model ----------------------------------------- */

/* Renews the snapshot; returns false if there is no index yet. */
bool world_renew_snapshot(struct world *world);
void world_check_journal(struct world *world);
void world_check_index(struct world *world);
void world_check_as_of(struct world *world);
void as_of_walk_close(struct world *world);
void world_follow(struct world *world, unsigned items);
void world_follow_check(struct world *world);
void follower_open(struct world *world);
void follower_close(struct world *world);
void world_readers_open(struct world *world);
void world_readers_close(struct world *world);

/* Asserts that the calling handler or worker reads EVENT of feed ID, and the model's state. Returns
 * false if it can't read because no processor runs. */
bool cached_check(struct world *world, unsigned f, uint32_t id, uint64_t event);
/* Adds a key to the work queue, from a handler called with EVENT. */
void worker_add(struct world *world, unsigned f, uint32_t id, int key, uint64_t event);
void step_worker(struct world *world);

void cluster_json(unsigned f, int key, const struct object *object, struct buf *out);
/* Asserts that the record, body included, describes OBJECT. */
void check_object(const struct record *record, const struct object *object, const char *where);

void reflector_open(struct world *world);
void reflector_close(struct world *world);
/* Opens the processor, and the closed readers. */
void processor_open(struct world *world, bool index_damaged);
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
