/* SPDX-License-Identifier: Apache-2.0 */
/* A moment as RFC 3339 text, as the API server and the log write it. */
#ifndef COMMON_TEXT_TIMESTAMP_H
#define COMMON_TEXT_TIMESTAMP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"

#define TIMESTAMP_SIZE 48

/* Write REALTIME_NS (CLOCK_REALTIME) in UTC: "2026-01-31T23:59:59Z", and with milliseconds,
 * "2026-01-31T23:59:59.123Z". */
void timestamp_seconds(uint64_t realtime_ns, char text[TIMESTAMP_SIZE]);
void timestamp_milliseconds(uint64_t realtime_ns, char text[TIMESTAMP_SIZE]);

/* Parses an RFC 3339 text into nanoseconds since 1970. Returns whether TEXT is one. */
bool timestamp_parse(struct bytes text, int64_t *ret_ns);

/* ---- moments --------------------------------------------------------------- */

/*
 * A moment that is stored and whose age is asked for later, perhaps by another process, after
 * restarts and after the clock was set. The age is measured by the clock that counts from the boot,
 * also during suspend; after a reboot by the wall clock, which is all that is left.
 */

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
