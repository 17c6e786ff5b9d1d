/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/handled.h"

#include <string.h>

static _Thread_local struct {
	struct handled handler, keys;
	uint64_t n_keys; /* in work by the thread */
	uint64_t number; /* of the thread; 0: it has taken no key yet */
} mine;

struct handled handled_get(void)
{
	struct handled newest = mine.keys;

	handled_merge(&newest, &mine.handler);
	return newest;
}

void handled_merge(struct handled *to, const struct handled *from)
{
	if (from->event && (from->event > to->event ||
				   memcmp(from->journal, to->journal, sizeof(to->journal)) != 0))
		*to = *from;
}

struct handled handled_set(const struct handled *to)
{
	const struct handled before = mine.handler;

	mine.handler = *to;
	return before;
}

uint64_t handled_take_key(const struct handled *given)
{
	static uint64_t threads; /* atomic: keys taken */

	if (!mine.number)
		mine.number = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
	if (mine.n_keys++)
		handled_merge(&mine.keys, given);
	else
		mine.keys = *given;
	return mine.number;
}

void handled_end_key(uint64_t taker)
{
	if (taker == mine.number && mine.n_keys && --mine.n_keys == 0)
		mine.keys = (struct handled){0};
}
