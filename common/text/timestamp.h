/* SPDX-License-Identifier: Apache-2.0 */
/* A timestamp as RFC 3339 text, as in the API server and the log. */
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

/* Parses an RFC 3339 text into nanoseconds since 1970. Returns false if TEXT is none. */
bool timestamp_parse(struct bytes text, int64_t *ret_ns);

#endif
