/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One handler of an informer, and what its calls amount to: the view. Each call has to fit the view, and
 * whenever the handler is synced the view is the model's state as of the handler's position.
 */
#ifndef TESTS_MODEL_LISTENER_H
#define TESTS_MODEL_LISTENER_H

#include "tests/model/selection.h"

#define WATCHERS  6
#define LISTENERS 3 /* of each */

struct watcher;

struct listener {
	struct watcher *watcher;
	struct kinf_handler *handler; /* NULL: none */
	bool filtered;
	struct selection selection;
	struct latest view[KEYS];
	uint64_t reached;     /* when it was killed; UINT64_MAX: it was not synced */
	uint64_t uncommitted; /* first change told since the last commit; 0: none */
};

/* A program with one informer, which is killed and comes again. */
struct watcher {
	struct world *world;
	uint32_t flags;  /* of the informer */
	bool slow;       /* seldom has time */
	char cursor[16]; /* its name; "": none */
	unsigned feed;
	struct kinf_informer *informer; /* NULL: it does not run */
	struct listener listener[LISTENERS];
};

/* What was told, for the sum at the end. */
struct told {
	uint64_t calls, syncs, lapses, resumed;
};

/* Adds a handler, whose view begins with feed ID's state as of SEQ; ID 0: empty. */
void listener_begin(struct listener *listener, uint32_t id, uint64_t seq);
/* The view is the state as of the position, when it is synced. */
void listener_check(const struct listener *listener);

bool listener_is(const struct listener *listener, uint32_t id, uint64_t seq);

/* ---- informers ---- */

void watchers_open(struct world *world);
/* As by kill -9. */
void watchers_kill(struct world *world);
void step_watchers(struct world *world);
/* Those that are quick, and now and then the slow ones, take all there is. */
void watchers_settle(struct world *world);

#endif
