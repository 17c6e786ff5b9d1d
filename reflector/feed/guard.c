/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/guard.h"

void guard_init(struct guard *guard)
{
	*guard = (struct guard){.looked = false};
	buf_init(&guard->at, JOURNAL_KEY_MAX + 1);
}

void guard_release(struct guard *guard)
{
	buf_release(&guard->at);
}

void guard_begin(struct guard *guard)
{
	guard->looked = false;
	guard->heads = guard->missing = guard->known = 0;
	buf_reset(&guard->at);
}

void guard_end(struct guard *guard)
{
	guard->held = false;
}

static bool guard_count(void *arg, struct bytes key, const struct head *head, bool seen)
{
	struct guard *guard = arg;

	(void)key;
	(void)head;
	guard->heads++;
	guard->missing += !seen;
	return true;
}

int guard_look(struct guard *guard, struct record_feed *feed, uint32_t percent)
{
	if (!percent || !feed->listed || guard->looked || guard->held)
		return GUARD_PASS;
	int r = record_walk_heads(feed, &guard->at, guard_count, guard);
	if (r != 0)
		return r;
	guard->looked = true;
	guard->known = guard->heads - feed->added;
	if (guard->missing * 100 <= guard->known * percent)
		return GUARD_PASS;
	guard->held = true;
	return GUARD_HOLD;
}
