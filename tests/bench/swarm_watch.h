/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command `watch` of swarm.c: the time of a change to the last of many watches, and the
 * server's cost.
 */
#ifndef TESTS_BENCH_SWARM_WATCH_H
#define TESTS_BENCH_SWARM_WATCH_H

#include "tests/bench/swarm_run.h"

/* The calls of RUN's clients. */
void swarm_watch_data(struct swarm_request *request, const uint8_t *bytes, size_t size);
void swarm_watch_ended(struct swarm_request *request, bool complete);

void swarm_watch(struct swarm_run *run, int argc, char **argv);

#endif
