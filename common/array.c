/* SPDX-License-Identifier: Apache-2.0 */
#include "common/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/err.h"

#define FIRST_ROOM 8

int array_grow(void *array, size_t n, size_t more, size_t *room, size_t size, const char *what)
{
	if (more <= *room - n)
		return 0;
	size_t need, bytes, wanted = *room < FIRST_ROOM / 2 ? FIRST_ROOM : *room * 2;
	void *old, *moved = NULL;

	memcpy(&old, array, sizeof(old));
	if (!__builtin_add_overflow(n, more, &need)) {
		wanted = wanted < need ? need : wanted;
		if (!__builtin_mul_overflow(wanted, size, &bytes))
			moved = realloc(old, bytes);
	}
	if (!moved)
		return err_set(-ENOMEM, "growing %s", what);
	memcpy(array, &moved, sizeof(moved));
	*room = wanted;
	return 0;
}

int array_by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int array_by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int array_by_bytes(const void *a, const void *b)
{
	return bytes_compare(*(const struct bytes *)a, *(const struct bytes *)b);
}
