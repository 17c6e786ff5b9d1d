/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The progress of long work on a terminal: one line of standard error, rewritten at most ten
 * times a second, and removed at the end:
 *
 *	verifying: 12500 of 20000 records
 *
 * Nothing is shown if standard error is not a terminal.
 */
#ifndef COMMAND_MANAGE_TICKER_H
#define COMMAND_MANAGE_TICKER_H

#include <stdbool.h>
#include <stdint.h>

struct ticker {
	const char *what; /* "verifying" */
	uint64_t shown_ns;
	bool shown;
};

/* TOTAL 0: unknown. */
void ticker_show(struct ticker *ticker, uint64_t done, uint64_t total, const char *unit);
/* Removes the line: before other output to standard error, and at the end. */
void ticker_clear(struct ticker *ticker);

#endif
