/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failing work that a daemon retries: a full disk, a full database map, no memory. The daemon goes
 * on; the status page (state with the remedy, sentence of the error) and the log report it.
 *
 *	r = do_work();
 *	if (r < 0) {
 *		failure_add(&failure, stats, r, err_text(r));
 *		... wait, then try again ...
 *	} else if (failure.failing) {
 *		failure_end(&failure, stats, "running");
 *	}
 *
 * A time of failing lasts from the first failure_add() to failure_end(). It logs each sentence
 * once, and at most FAILURE_SENTENCES of them: a changing number in a sentence must not fill the
 * log.
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

/* Sets state and error of the status page, and logs TEXT once per time of failing. */
void failure_add(struct failure *failure, struct stats *stats, int error, const char *text);

/* Ends a time of failing: sets STATE, clears the error, logs it. Does nothing without one. */
void failure_end(struct failure *failure, struct stats *stats, const char *state);

#endif
