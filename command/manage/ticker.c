/* SPDX-License-Identifier: Apache-2.0 */
#include "command/manage/ticker.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "common/proc.h"

#define TICKER_NS UINT64_C(100000000)

void ticker_show(struct ticker *ticker, uint64_t done, uint64_t total, const char *unit)
{
	uint64_t now = proc_monotonic_ns();

	if (now - ticker->shown_ns < TICKER_NS || !isatty(STDERR_FILENO))
		return;
	ticker->shown_ns = now;
	ticker->shown = true;
	if (total)
		(void)fprintf(stderr, "\r\033[K%s: %" PRIu64 " of %" PRIu64 " %s\r", ticker->what,
			done, total, unit);
	else
		(void)fprintf(stderr, "\r\033[K%s: %" PRIu64 " %s\r", ticker->what, done, unit);
}

void ticker_clear(struct ticker *ticker)
{
	if (ticker->shown)
		(void)fputs("\r\033[K", stderr);
	ticker->shown = false;
}
