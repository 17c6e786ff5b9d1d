/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers the API server's Warning headers (deprecated versions and the like). The server repeats
 * a warning with every answer; the log gets each text once.
 */
#ifndef REFLECTOR_NET_WARNINGS_H
#define REFLECTOR_NET_WARNINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WARNINGS_MAX 64 /* texts: a server with ever new ones can't fill the log */

/* Zeroes: nothing said yet. */
struct warnings {
	uint64_t said[WARNINGS_MAX]; /* hashes */
	size_t n;
};

/* Remembers TEXT. Returns: whether it is new and there was room for it. */
bool warnings_are_new(struct warnings *warnings, const char *text);

#endif
