/* SPDX-License-Identifier: Apache-2.0 */
/* The inbox for reports of damage (store/ring/damage.h): reads a bounded number, and has the
 * feeds check them. */
#ifndef REFLECTOR_REPORTS_H
#define REFLECTOR_REPORTS_H

#include "common/stats.h"
#include "reflector/feed/feeds.h"
#include "store/env/home.h"

struct reports {
	int fd; /* -1: the socket could not be made yet */
};

/* Makes the socket, if it is not made. Without it damage is found when the processor reads it,
 * or not before the next start. */
void reports_make(struct reports *reports, struct home *home);
void reports_close(struct reports *reports);
/* Checks what was reported about the journal of UUID, and counts what is damaged. Returns: 0;
 * the error that ends the reflector. */
int reports_receive(
	struct reports *reports, struct feeds *feeds, const uint8_t uuid[16], struct stats *stats);

#endif
