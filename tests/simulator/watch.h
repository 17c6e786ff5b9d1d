/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WATCH: a stream of events from an RV, after the initial state when that is asked for. Events are
 * computed for the view of this watch: an object that comes to match is ADDED, one that ceases to
 * is DELETED with its old content. VIEW is taken over.
 */
#ifndef SIMULATOR_WATCH_H
#define SIMULATOR_WATCH_H

#include "tests/simulator/listoptions.h"
#include "tests/simulator/view.h"

void watch_answer(
	struct view *view, const struct list_options *options, int fd, struct http_answer *answer);

#endif
