/* SPDX-License-Identifier: Apache-2.0 */
/* kinf top: top_rows.c makes a page with the rates of two samples of the status, for top.c. */
#ifndef COMMAND_TOP_H
#define COMMAND_TOP_H

#include "print/status/status.h"

struct top_sample {
	struct store_status status;
	uint64_t taken_ns; /* CLOCK_MONOTONIC; 0: none */
	uint64_t wall_ns;  /* CLOCK_REALTIME */
	int result;        /* of status_gather() */
};
void top_sample_release(struct top_sample *sample);

/* Appends the page. BEFORE: an earlier sample for rates, if taken. ROWS: of the table of feeds; 0:
 * all. Returns 0, -ENOMEM. */
int top_put_page(const struct top_sample *before, const struct top_sample *now, size_t rows,
	struct buf *out);

#endif
