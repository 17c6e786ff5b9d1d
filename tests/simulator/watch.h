/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WATCH: a stream of events from an RV on, after the initial state if the request asks for it. An
 * object is ADDED if it begins to match the selectors, and DELETED with its old content if it
 * ceases to match. Takes VIEW over.
 */
#ifndef SIMULATOR_WATCH_H
#define SIMULATOR_WATCH_H

#include "tests/simulator/listoptions.h"
#include "tests/simulator/view.h"

void watch_answer(
	struct view *view, const struct list_options *options, int fd, struct http_answer *answer);

#endif
