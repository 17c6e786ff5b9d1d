/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The health of the daemons of `kinf run`, read from their status pages once a second.
 *
 * A daemon writes a heartbeat into its page once a second, also while it waits for a lock, a disk
 * or the API server. After a silence of `hangLimit` it is killed and restarted. A long transaction
 * is no hang: a daemon that uses the processor or waits for a disk has ten times as long.
 *
 * The service manager gets READY=1 as soon as readers get answers, or the reason for none is known
 * (the API server is away, the disk is full, a daemon fails), and STATUS= in words at each change.
 * During first lists without a fault it is asked for more time.
 *
 * A terminal shows the progress of the first lists in one line: "listing: 12500 of 20000 objects".
 */
#ifndef COMMAND_MANAGE_HEALTH_H
#define COMMAND_MANAGE_HEALTH_H

#include "command/manage/children.h"
#include "command/manage/ticker.h"
#include "common/config/config.h"

#define HEALTH_MAX 4 /* children */

struct health {
	const struct config *config; /* set by the caller; the rest begins as zeroes */
	uint64_t checked_ns;
	struct silence {
		pid_t pid;          /* of this child */
		uint64_t since_ns;  /* monotonic: its last heartbeat, else its start */
		uint64_t cpu_ticks; /* at the last check */
		uint64_t idle_ns;   /* monotonic: idle since; 0: busy */
	} silence[HEALTH_MAX];
	bool ready;
	char status[512]; /* the last STATUS */
	bool has_listed;  /* no progress is shown on the terminal any more */
	struct ticker ticker;
};

/* Reads the pages, at most once a second. Kills hung children; children_reap() plans their
 * restart. */
void health_check(struct health *health, const struct children *children);
/* Removes the line on the terminal for good. */
void health_end(struct health *health);

#endif
