/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches the readers of index and journal: removes pin files of dead processes, and counts
 * snapshots held for more than a minute as the oldest of their database, with one log line each.
 * The oldest one keeps pages from being reused: the file grows meanwhile. 'kinf status' lists all.
 */
#ifndef PROCESSOR_READERS_H
#define PROCESSOR_READERS_H

#include <limits.h>

#include "common/stats.h"
#include "store/env/env.h"

#define READERS_HELD_NS 60000000000ull

/* The oldest snapshot of a database. */
struct readers_oldest {
	struct pin_owner reader; /* .oldest 0: there is none */
	char pin_file[PATH_MAX];
	uint64_t since; /* it is the oldest */
	bool warned;
};

struct readers {                         /* zeros at the start */
	struct readers_oldest oldest[3]; /* of the index, the journal, and replaced files */
	bool unreadable;                 /* logged */
	uint64_t due;                    /* the next check */
};

/* NOW: proc_monotonic_ns(). */
void readers_check(struct readers *readers, struct env *index, struct env *journal,
	struct stats *stats, uint64_t now);

#endif
