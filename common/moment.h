/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stored timestamp for an age asked later, perhaps by another process, after restarts and clock
 * changes. CLOCK_BOOTTIME measures the age; after a reboot only the wall clock is left.
 */
#ifndef COMMON_MOMENT_H
#define COMMON_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

struct moment {
	uint64_t realtime_ns; /* CLOCK_REALTIME; 0: unset */
	uint64_t boottime_ns; /* CLOCK_BOOTTIME */
	uint64_t boot;        /* the first half of the boot's id; 0: unknown */
};

void moment_now(struct moment *ret_moment);

/* Returns true if the age is known: the timestamp is set, and not in the future (the clock was set
 * back before a reboot). */
bool moment_age_ns(const struct moment *moment, uint64_t *ret_age_ns);

#endif
