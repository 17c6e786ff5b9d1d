/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the simulated cluster: the objects of every kind with their history, as etcd keeps
 * them.
 *
 * One counter gives resourceVersions (RVs) to all kinds. A change makes a new version of its object
 * and an entry in the log of its kind. A version points to the one before it. So a list can show
 * the state of any RV after the compacted one, and a watch knows an object's state before a change.
 * Compaction walks over the log once: each entry frees its previous version, a deletion also
 * itself.
 *
 * A list and a watch under way pin the RV they have been sent up to. Compaction refuses new
 * requests at once; the memory is freed with the next change after the last pin has moved. A pin is
 * lost if too old, and its request ends, as kube-apiserver ends slow watches.
 *
 * Threads: the caller holds world->lock for all functions but world_new and world_free. Pointers
 * into the world are valid while it holds the lock.
 */
#ifndef SIMULATOR_WORLD_H
#define SIMULATOR_WORLD_H

#include <pthread.h>

#include "tests/simulator/keylist.h"
#include "tests/simulator/object.h"

#define WORLD_KINDS_MAX 64

struct version {
	uint64_t rv;
	struct version *older; /* NULL: none, or trimmed */
	struct entry *entry;
	bool deleted; /* text is the last state, with the deletion's RV */
	size_t size;
	char text[];
};

struct pin {
	uint64_t rv;
	bool lost;
	struct pin *next;
	struct pin **link;
};

struct collection {
	const struct kind *kind;
	bool gone; /* its definition was deleted: it is not served, and its watches end */
	struct keylist keys;
	size_t live;          /* existing objects */
	struct version **log; /* changes in RV order: log[begin..end) */
	size_t begin, end, capacity;
	uint64_t trimmed; /* RV of the last change dropped from the log */
	uint64_t fresh;   /* its cache is complete up to this RV */
	struct pin *pins;
	unsigned lists, watches, gets; /* requests since the log of requests was reset */
	unsigned watching;             /* watches open now */
	unsigned swallow;              /* watches lose this many events more */
};

/* Settings of the control port. */
struct settings {
	uint64_t bookmark_ms;    /* interval of bookmarks on each watch; 0: none */
	uint64_t future_wait_ms; /* how long a request waits for an RV of the future */
	/* 0: a cache knows each RV at once. Else it learns the RVs of other kinds' changes only
	 * when a request waits for one, by this time later: the API server asks etcd then. */
	uint64_t progress_ms;
	uint64_t history; /* changes kept of each kind */
	bool watch_list;  /* sendInitialEvents is served */
	bool aggregated;  /* aggregated discovery is served */
};

struct world {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* signals any change of the world or its settings */
	uint64_t rv;
	uint64_t seed;           /* of generated objects */
	bool short_names;        /* of generated objects */
	uint64_t compacted;      /* requests for states below this RV are refused */
	uint64_t saved;          /* RV of world_save, 0: none */
	uint64_t bookmark_round; /* every watch sends a bookmark when it increases */
	struct settings settings;
	struct collection collections[WORLD_KINDS_MAX];
	size_t n_collections;
	const struct kind
		*former[WORLD_KINDS_MAX]; /* descriptions of resources removed and made again */
	size_t n_former;
};

/* Makes a world with the built-in kinds and every cluster's namespaces. No thread may use it when
 * it is freed. */
struct world *world_new(void);
void world_free(struct world **world);

/* Waits for a change, at most until DEADLINE_MS (monotonic) and at most a second. The caller checks
 * its client's connection in between. */
void world_wait(struct world *world, uint64_t deadline_ms);
void world_wake(struct world *world);
uint64_t world_now_ms(void);

/* world_find returns NULL for an unknown or removed resource. world_add takes KIND over; it returns
 * NULL if the resource exists or there are too many. */
struct collection *world_find(
	struct world *world, const char *group, const char *version, const char *resource);
struct collection *world_add(struct world *world, const struct kind *kind);
/* Deletes all objects of a resource and then the resource, as the deletion of a
 * CustomResourceDefinition does. world_add makes it again. */
void world_remove(struct world *world, struct collection *collection);

/* Finds a resource by its name on the control port, "pods" or "deployments.apps"; also a removed
 * one. */
struct collection *world_named(struct world *world, const char *name);

/* Creates or replaces an object. Returns its RV, or 0 if TEXT has no metadata.name (or no
 * namespace). */
uint64_t world_put(struct world *world, struct collection *collection, struct bytes text);

/* Deletes an object. Returns the RV of the deletion, or 0 if there is no such object. */
uint64_t world_delete(struct world *world, struct collection *collection, const char *key);

/* Returns the version of ENTRY at RV; NULL if the object did not exist then. */
const struct version *version_at(const struct entry *entry, uint64_t rv);

static inline struct bytes version_text(const struct version *version)
{
	return BYTES(version->text, version->size);
}

/* Returns a random existing object; NULL if there is none. */
struct entry *collection_any(struct collection *collection);

/* Returns the oldest RV to list or to start a watch from. */
uint64_t collection_floor(const struct world *world, const struct collection *collection);

/* Returns the RV of the collection's cache. */
uint64_t collection_fresh(const struct world *world, const struct collection *collection);
/* Waits until the cache reaches RV, as long as requests wait for the future. Returns true if it
 * did. The caller holds world->lock. */
bool collection_await(struct world *world, struct collection *collection, uint64_t rv);
/* The caches know each RV from now on, or those up to now. */
void world_set_fresh(struct world *world);

/* Returns the log's index of the first change after RV; collection->end: none. */
size_t collection_after(const struct collection *collection, uint64_t rv);

void pin_set(struct collection *collection, struct pin *pin, uint64_t rv);
void pin_drop(struct pin *pin);

/* Forgets all history up to RV (0: now). */
void world_compact(struct world *world, uint64_t rv);

/* world_save remembers the present RV. world_restore returns the world to it, including the counter
 * of RVs, as an etcd restored from a backup; open lists and watches are lost. Returns false if
 * nothing was saved. */
void world_save(struct world *world);
bool world_restore(struct world *world);

#endif
