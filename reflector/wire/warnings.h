/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an API server warns its clients of (the Warning header: deprecated versions and the like). It
 * says so in every answer; one line in the log for each text is what people want.
 */
#ifndef REFLECTOR_WIRE_WARNINGS_H
#define REFLECTOR_WIRE_WARNINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WARNINGS_MAX 64 /* texts: a server that makes them up must not fill the log */

/* Begins as zeroes. */
struct warnings {
	uint64_t said[WARNINGS_MAX]; /* hashes */
	size_t n;
};

/* TEXT was not asked for before. Counts it; false for all new ones when there is no more room. */
bool warnings_are_new(struct warnings *warnings, const char *text);

#endif
