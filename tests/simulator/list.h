/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LIST: pages of one consistent state, composed while they are sent, so that a list of any size
 * needs one block of memory. VIEW is taken over, also when the request is refused.
 */
#ifndef SIMULATOR_LIST_H
#define SIMULATOR_LIST_H

#include "tests/simulator/listoptions.h"
#include "tests/simulator/view.h"

void list_answer(struct view *view, const struct list_options *options, struct http_answer *answer);

/* Under the world's lock: waits until it has reached RV; false and 504 when it does not. For gets too. */
bool list_await_rv(struct world *world, uint64_t rv, struct http_answer *answer);

#endif
