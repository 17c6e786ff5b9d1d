/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifies the service manager for `kinf run`: READY=1 as soon as readers get answers, or as
 * soon as it is known why they get none yet (the API server is away, the disk is full, a daemon
 * fails), and STATUS= in words whenever they change. While the first lists come in without a
 * fault it is not ready, and asks for more time.
 */
#ifndef COMMAND_READINESS_H
#define COMMAND_READINESS_H

#include "command/children.h"
#include "common/config/config.h"

struct run_readiness {
	const struct config *config; /* set by the caller; the rest begins as zeroes */
	bool ready;
	uint64_t checked_ns;
	char text[512]; /* the last STATUS */
};

/* Reads the daemons' status pages, once a second at most, and notifies the service manager, if
 * there is one. */
void readiness_check(struct run_readiness *readiness, const struct children *children);

#endif
