/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers of the index as its writer sees them: slots of dead processes are cleared, snapshots that
 * are held for too long (they pin pages, so the file grows) are counted and named once.
 */
#ifndef PROCESSOR_READERS_H
#define PROCESSOR_READERS_H

#include "common/stats.h"
#include "store/env/env.h"

#define READERS_HELD_NS 60000000000ull

struct readers;

int readers_new(struct readers **ret_readers);
void readers_free(struct readers **readers);

/* NOW: proc_monotonic_ns(). */
int readers_check(struct readers *readers, struct env *env, struct stats *stats, uint64_t now);

#endif
