/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A listener is a handler of an informer, with its view: the sum of its calls. Each call must fit
 * the view, and whenever the handler is synced the view must be the model's state as of the
 * handler's position.
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
	uint64_t reached;     /* its position when it was killed; UINT64_MAX: it was not synced */
	uint64_t uncommitted; /* the first change since the last commit; 0: none */
};

/* A program with one informer, killed and restarted. */
struct watcher {
	struct world *world;
	uint32_t flags;  /* of the informer */
	bool slow;       /* it runs seldom */
	char cursor[16]; /* its name; "": none */
	unsigned feed;
	struct kinf_informer *informer; /* NULL: it does not run */
	struct listener listener[LISTENERS];
};

/* The number of calls, for the summary at the end. */
struct call_counts {
	uint64_t calls, resyncs, syncs, lapses, resumed, waits, reads, worked;
};

/* Adds a handler. Its view begins with feed ID's state as of SEQ; ID 0: empty. */
void listener_begin(struct listener *listener, uint32_t id, uint64_t seq);
/* Asserts that a synced handler's view is the model's state as of its position. */
void listener_check(const struct listener *listener);

bool listener_is(const struct listener *listener, uint32_t id, uint64_t seq);

/* ---- informers ---------------------------------------------------------- */

void watchers_open(struct world *world);
/* Ends the programs without a commit, as kill -9 does. */
void watchers_kill(struct world *world);
void step_watchers(struct world *world);
/* Lets the quick programs, and sometimes the slow ones, handle all events. */
void watchers_settle(struct world *world);

#endif
