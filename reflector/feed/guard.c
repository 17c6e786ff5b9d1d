/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/guard.h"

#include "common/cleanup.h"
#include "common/err.h"
#include "reflector/record/recorder.h"

#define SLICE 4096 /* heads */

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

/* Counts a slice, from the end of the last one. Returns: 0, AGAIN while there are more. */
static int guard_count(struct guard *guard, struct record_feed *feed)
{
	struct journal *journal = recorder_journal(feed->recorder);
	CLEANUP(head_walk_close) struct head_walk *walk = NULL;
	struct bytes key = BYTES_NONE;
	struct head head;
	int r = head_walk_open(
		journal, journal_txn(journal), feed->id, buf_bytes(&guard->at), &walk);

	for (size_t i = 0; r >= 0 && i < SLICE; i++) {
		r = head_walk_next(walk, &key, &head);
		if (r != FOUND)
			return r == END ? 0 : r;
		guard->heads++;
		guard->missing += !record_was_seen(feed, head.seq);
	}
	if (r < 0)
		return r;
	buf_reset(&guard->at);
	buf_bytes_put(&guard->at, key);
	buf_byte(&guard->at, '\0'); /* the first key after this one */
	r = buf_error(&guard->at);
	return r < 0 ? r : AGAIN;
}

int guard_look(struct guard *guard, struct record_feed *feed, uint32_t percent)
{
	if (!percent || !feed->listed || guard->looked || guard->held)
		return GUARD_PASS;
	int r = recorder_begin(feed->recorder);
	if (r < 0)
		return r;
	r = guard_count(guard, feed);
	if (r < 0)
		return recorder_fail(feed->recorder, r);
	if (r == AGAIN)
		return AGAIN;
	guard->looked = true;
	guard->known = guard->heads - feed->added;
	if (guard->missing * 100 <= guard->known * percent)
		return GUARD_PASS;
	guard->held = true;
	return GUARD_HOLD;
}
