/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stored moment, for its age later, perhaps in another process, after restarts and changes of the
 * clock. The age is measured by the clock since the boot, also during suspend; after a reboot by
 * the wall clock, for want of another.
 */
#ifndef COMMON_MOMENT_H
#define COMMON_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

struct moment {
	uint64_t realtime_ns; /* CLOCK_REALTIME; 0: no moment */
	uint64_t boottime_ns; /* CLOCK_BOOTTIME */
	uint64_t boot;        /* the first half of the boot's id; 0: unknown */
};

void moment_now(struct moment *ret_moment);

/* Returns whether the age is known. It is not if there is no moment, or if the moment is in the
 * future because the clock was set back before a reboot. */
bool moment_age_ns(const struct moment *moment, uint64_t *ret_age_ns);

#endif
