/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the simulator. Out of memory ends the process with the place in the source: a test
 * without memory would prove nothing, and the callers stay short.
 */
#ifndef SIMULATOR_MEMORY_H
#define SIMULATOR_MEMORY_H

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/check.h"

static inline void *memory_take(size_t size)
{
	void *memory = calloc(1, size);

	REQUIRE(memory != NULL);
	return memory;
}

static inline void *memory_resize(void *memory, size_t size)
{
	memory = realloc(memory, size);
	REQUIRE(memory != NULL);
	return memory;
}

static inline char *memory_text(struct bytes text)
{
	char *copy = memory_take(text.size + 1);

	if (text.size)
		memcpy(copy, text.data, text.size);
	return copy;
}

#endif
