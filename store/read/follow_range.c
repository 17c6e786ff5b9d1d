/* SPDX-License-Identifier: Apache-2.0 */
/* The initial state, or a resync's, range by range: by name, each range from its own snapshot. */
#include "store/read/follow_parts.h"

#include "common/err.h"

static int begin_feed(struct follow *f, size_t i)
{
	struct followed *feed = &f->feeds[i];

	if (feed->stage == NOT_BEGUN) {
		feed->stage = INITIAL;
		f->positions[i].seq = feed->until;
	}
	/* The smallest key behind the one passed last. */
	struct buf from = BUF_INIT;
	buf_bytes_put(&from, buf_bytes(&feed->passed));
	if (from.size)
		buf_byte(&from, '\0');
	int r = buf_error(&from);
	if (r == 0)
		r = index_names(snapshot_index(f->snapshot), snapshot_index_txn(f->snapshot),
			f->positions[i].feed, BYTES_NONE, buf_bytes(&from), &f->names);
	buf_release(&from);
	return r;
}

static int give_initial(struct follow *f, size_t i, struct bytes key,
	const struct index_entry *entry, struct follow_item *ret_item)
{
	struct followed *feed = &f->feeds[i];

	*ret_item = (struct follow_item){
		.kind = feed->resync ? FOLLOW_RESYNC : FOLLOW_INITIAL,
		.feed = f->positions[i].feed,
		.seq = feed->until,
	};
	int r = snapshot_record(f->snapshot, ret_item->feed, key, entry, &ret_item->record);
	if (r != FOUND)
		return r;
	buf_reset(&feed->passed);
	buf_bytes_put(&feed->passed, key);
	if (feed->resync)
		ret_item->old = ret_item->record;
	return buf_error(&feed->passed);
}

/* All ranges are read. FOUND: SYNC; NOT_FOUND: it was a resync. */
static int end_ranges(struct follow *f, struct follow_item *ret_item)
{
	f->resync_owed = false;
	if (!f->sync_owed) {
		f->state = LIVE;
		return NOT_FOUND;
	}
	f->sync_owed = false;
	f->synced = true;
	f->state = LIVE;
	*ret_item = (struct follow_item){.kind = FOLLOW_SYNC};
	return FOUND;
}

/* A feed whose first list has not ended, perhaps never will, holds back nothing but SYNC. */
int follow_range_next(struct follow *f, struct follow_item *ret_item)
{
	bool waiting = false;

	for (size_t i = 0; i < f->n; i++) {
		struct index_entry entry;
		struct bytes key;
		int r = 0;

		if (f->feeds[i].stage == BEGUN && !f->feeds[i].resync)
			continue;
		if (!f->feeds[i].until) {
			waiting = true;
			continue;
		}
		if (!f->names)
			r = begin_feed(f, i);
		if (r == 0)
			r = index_walk_next(f->names, &key, &entry);
		if (r == FOUND)
			return give_initial(f, i, key, &entry, ret_item);
		if (r != END)
			return r;
		index_walk_close(&f->names);
		f->feeds[i].stage = BEGUN;
		f->feeds[i].resync = false;
		buf_trim(&f->feeds[i].passed, 0);
	}
	return waiting ? AGAIN : end_ranges(f, ret_item);
}
