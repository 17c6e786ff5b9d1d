/* SPDX-License-Identifier: Apache-2.0 */
/* A moment as RFC 3339 text in UTC, as the API server and the log write it. */
#ifndef COMMON_TIMESTAMP_H
#define COMMON_TIMESTAMP_H

#include <stdint.h>

#define TIMESTAMP_SIZE 48

/* Write REALTIME_NS (CLOCK_REALTIME): "2026-01-31T23:59:59Z", and with milliseconds,
 * "2026-01-31T23:59:59.123Z". */
void timestamp_seconds(uint64_t realtime_ns, char text[TIMESTAMP_SIZE]);
void timestamp_milliseconds(uint64_t realtime_ns, char text[TIMESTAMP_SIZE]);

#endif
