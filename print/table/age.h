/* SPDX-License-Identifier: Apache-2.0 */
/* Ages as kubectl prints them: at most two units, and less precise the longer ago. */
#ifndef PRINT_TABLE_AGE_H
#define PRINT_TABLE_AGE_H

#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"

#define AGE_SIZE 32

/* Writes SECONDS as "45s", "5m30s", "5d3h". */
void age_from_seconds(uint64_t seconds, char text[AGE_SIZE]);

/* Writes the time from the RFC 3339 text FROM to NOW_NS (CLOCK_REALTIME): NONE if it is no time,
 * "<unknown>" if it is Go's zero time, "<invalid>" if it lies in the future. */
void age_between(struct bytes from, uint64_t now_ns, const char *none, char text[AGE_SIZE]);

/* Sets the moment that ages are counted to, for the whole process: that of a state of the past. 0:
 * now. */
void age_set_now(uint64_t realtime_ns);
uint64_t age_now_ns(void);

/* Writes the time since TIME_NS (CLOCK_REALTIME). */
void age_since(uint64_t time_ns, char text[AGE_SIZE]);

#endif
