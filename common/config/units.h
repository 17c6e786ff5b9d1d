/* SPDX-License-Identifier: Apache-2.0 */
/* Durations and sizes as people write them in kinf.yaml and on command lines. */
#ifndef COMMON_CONFIG_UNITS_H
#define COMMON_CONFIG_UNITS_H

#include <stdint.h>

/* Reads "10m", "1h30m", "500ms", "7d" or "0" as nanoseconds. Returns 0 or ERR_SYNTAX. */
int units_duration(const char *text, uint64_t *ret_ns);

/* Reads "1GiB", "64MiB", "500kB" or "12" as bytes. Returns 0 or ERR_SYNTAX. */
int units_size(const char *text, uint64_t *ret_bytes);

#endif
