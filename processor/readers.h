/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches the readers of index and journal: removes pin files of dead processes, and counts
 * snapshots held for more than a minute, with one log line each. Such a snapshot keeps pages from
 * being reused: the file grows meanwhile.
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
void readers_check(struct readers *readers, struct env *index, struct env *journal,
	struct stats *stats, uint64_t now);

#endif
