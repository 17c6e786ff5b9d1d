/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LIST: pages of one consistent state, composed during sending: a list of any size needs one block
 * of memory. Takes VIEW over, also if it refuses the request.
 */
#ifndef SIMULATOR_LIST_H
#define SIMULATOR_LIST_H

#include "tests/simulator/listoptions.h"
#include "tests/simulator/view.h"

void list_answer(struct view *view, const struct list_options *options, struct http_answer *answer);

/* Waits until the collection's cache has reached RV. Returns false, and 504 in ANSWER, if it
 * does not in time. The caller holds world->lock. Gets use it also. */
bool list_await_rv(struct world *world, struct collection *collection, uint64_t rv,
	struct http_answer *answer);

#endif
