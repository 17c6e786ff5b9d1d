/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/wire/warnings.h"

/* FNV-1a. Two texts of one hash cost a line in the log, no more. */
static uint64_t hash_of(const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}

bool warnings_are_new(struct warnings *warnings, const char *text)
{
	uint64_t hash = hash_of(text);

	for (size_t i = 0; i < warnings->n; i++)
		if (warnings->said[i] == hash)
			return false;
	if (warnings->n == WARNINGS_MAX)
		return false;
	warnings->said[warnings->n++] = hash;
	return true;
}
