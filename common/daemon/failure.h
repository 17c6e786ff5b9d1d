/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failing work of a daemon, tried again: a full disk, a full database map, no memory. The daemon
 * goes on, so people learn of it from two places only: the status page (a state with the remedy,
 * and the error's sentence) and the log.
 *
 *	r = do_work();
 *	if (r < 0) {
 *		failure_add(&failure, stats, r, err_text(r));
 *		... wait, then try again ...
 *	} else if (failure.failing) {
 *		failure_end(&failure, stats, "running");
 *	}
 *
 * A time of failing lasts from the first failure_add() to failure_end(). Within it each sentence is
 * logged once, and at most FAILURE_SENTENCES of them, because a sentence with a changing number
 * would fill the log.
 */
#ifndef COMMON_DAEMON_FAILURE_H
#define COMMON_DAEMON_FAILURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/stats.h"

#define FAILURE_SENTENCES 8

struct failure {
	bool failing;
	uint64_t since_ns; /* proc_monotonic_ns() of the first failure */
	size_t n_logged;
	uint32_t logged[FAILURE_SENTENCES]; /* checksums of the sentences */
};

/* The daemon's state while it waits for ERROR to pass, with the remedy if people can do
 * something. */
const char *failure_state(int error);

/* Sets state and error of the status page, and logs TEXT unless this time of failing has logged
 * it. */
void failure_add(struct failure *failure, struct stats *stats, int error, const char *text);

/* The work succeeds again: sets STATE, clears the error, and logs it. Does nothing when nothing
 * failed. */
void failure_end(struct failure *failure, struct stats *stats, const char *state);

#endif
