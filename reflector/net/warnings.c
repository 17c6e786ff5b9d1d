/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/warnings.h"

#include "common/bytes.h"
#include "common/hash.h"

bool warnings_are_new(struct warnings *warnings, const char *text)
{
	/* Two texts with one hash cost a line in the log, no more. */
	uint64_t hash = hash_bytes(bytes_str(text), 0);

	for (size_t i = 0; i < warnings->n; i++)
		if (warnings->said[i] == hash)
			return false;
	if (warnings->n == WARNINGS_MAX)
		return false;
	warnings->said[warnings->n++] = hash;
	return true;
}
