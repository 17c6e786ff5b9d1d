/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the simulated cluster: every kind's objects with their history, as etcd keeps them.
 *
 * One counter gives resourceVersions to all kinds. Every change makes a new version of its object
 * and an entry in its kind's log; a version points to the one before it, so that the state at any
 * RV not yet compacted can be listed and a watch knows what an object looked like before.
 * Compaction is one walk over the log: each entry drops its previous version, a deletion drops
 * itself.
 *
 * A list being sent and a watch being read pin the RV they stand at. Forgetting history refuses new
 * requests at once; the memory goes with the next change after the last pin has moved on. A pin
 * that is too far behind is lost, and its request ends (as kube-apiserver ends slow watches).
 *
 * Threads: everything here is called with world->lock held, except world_new and world_free.
 * Pointers into it live as long as the lock is held.
 */
#ifndef SIMULATOR_WORLD_H
#define SIMULATOR_WORLD_H

#include <pthread.h>

#include "tests/simulator/object.h"
#include "tests/simulator/keylist.h"

#define WORLD_KINDS_MAX 64

struct version {
	uint64_t rv;
	struct version *older; /* NULL: none, or trimmed */
	struct entry *entry;
	bool deleted; /* text is the last state, stamped with the deletion's RV */
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
	bool gone; /* its definition was deleted: not served, and its watches end */
	struct keylist keys;
	size_t live;          /* objects that exist now */
	struct version **log; /* changes in RV order: log[begin..end) */
	size_t begin, end, capacity;
	uint64_t trimmed; /* RV of the last change that was dropped from the log */
	struct pin *pins;
	unsigned lists, watches, gets; /* requests since the log of requests was reset */
	unsigned watching;             /* watches open now */
	unsigned swallow;              /* so many changes more are lost on the way to a watch */
};

/* What the control port may change. */
struct settings {
	uint64_t bookmark_ms;    /* interval of bookmarks on each watch; 0: none */
	uint64_t future_wait_ms; /* how long to wait for an RV that is not reached yet */
	uint64_t history;        /* changes kept for each kind without being asked to forget */
	bool watch_list;         /* sendInitialEvents is served */
	bool aggregated;         /* aggregated discovery is served */
};

struct world {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* any change, also of what is below */
	uint64_t rv;
	uint64_t compacted;      /* states below this are refused */
	uint64_t saved;          /* RV of world_save, 0: none */
	uint64_t bookmark_round; /* goes up: every watch sends a bookmark */
	struct settings settings;
	struct collection collections[WORLD_KINDS_MAX];
	size_t n_collections;
};

/* With the built-in kinds and the namespaces that every cluster has. Free it when nothing runs any
 * more that uses it. */
struct world *world_new(void);
void world_free(struct world **world);

/* Waits for a change, at most until DEADLINE_MS (monotonic), and never longer than a second, so
 * that callers notice a client that went away. */
void world_wait(struct world *world, uint64_t deadline_ms);
void world_wake(struct world *world);
uint64_t world_now_ms(void);

/* NULL when unknown or gone or, for add, known or too many. KIND is taken over when it is added. */
struct collection *world_find(
	struct world *world, const char *group, const char *version, const char *resource);
struct collection *world_add(struct world *world, const struct kind *kind);
/* As when a CustomResourceDefinition is deleted: its objects go first. world_add makes it again. */
void world_remove(struct world *world, struct collection *collection);

/* "pods" or "deployments.apps": for the control port. */
struct collection *world_named(struct world *world, const char *name);

/* Creates or replaces. The RV, or 0 when TEXT has no metadata.name (or no namespace). */
uint64_t world_put(struct world *world, struct collection *collection, struct bytes text);

/* The RV of the deletion, or 0 when there is no such object. */
uint64_t world_delete(struct world *world, struct collection *collection, const char *key);

/* The version of ENTRY at RV; NULL when it did not exist then. */
const struct version *version_at(const struct entry *entry, uint64_t rv);

static inline struct bytes version_text(const struct version *version)
{
	return BYTES(version->text, version->size);
}

/* A live entry, chosen at random; NULL when there is none. */
struct entry *collection_any(struct collection *collection);

/* The oldest RV whose state can still be read, and from which a watch can start. */
uint64_t collection_floor(const struct world *world, const struct collection *collection);

/* Index in the log of the first change above RV (collection->end: none). */
size_t collection_after(const struct collection *collection, uint64_t rv);

void pin_set(struct collection *collection, struct pin *pin, uint64_t rv);
void pin_drop(struct pin *pin);

/* Forgets all history up to RV (0: now). */
void world_compact(struct world *world, uint64_t rv);

/* Remembers this RV; restore goes back to it as an etcd restored from a backup does: the counter
 * too. False when nothing was saved. Open lists and watches are lost. */
void world_save(struct world *world);
bool world_restore(struct world *world);

#endif
