/* SPDX-License-Identifier: Apache-2.0 */
/* A follower between two passes: it reads objects by name from the index, then takes entries of the
 * delta ring. */
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "store/read/follow_internal.h"

#define PASS_EVERY_NS UINT64_C(1000000000) /* positions advance without events, too */
/* between two passes when there is no ring */
#define NO_RING_NS (25 * UINT64_C(1000000))

/* ---- ranges of objects by name ------------------------------------------ */

static int follow_begin_range(struct follow *f, size_t i)
{
	CLEANUP(buf_release) struct buf from = BUF_INIT;
	struct follow_feed *feed = &f->feeds[i];

	if (feed->stage == STAGE_NEW) {
		feed->stage = STAGE_INITIAL;
		f->positions[i].seq = feed->until;
	}
	buf_bytes_put(&from, buf_bytes(&feed->given));
	if (from.size)
		buf_byte(&from, '\0'); /* the smallest key after it */
	int r = buf_error(&from);
	return r < 0 ? r
		     : names_open(f->snapshot, f->positions[i].feed, BYTES_NONE, buf_bytes(&from),
			       NULL, NULL, &f->names);
}

static int follow_give_object(struct follow *f, size_t i, struct bytes key,
	const struct index_entry *entry, struct follow_item *ret_item)
{
	struct follow_feed *feed = &f->feeds[i];

	*ret_item = (struct follow_item){
		.kind = feed->resync ? FOLLOW_RESYNC : FOLLOW_INITIAL,
		.feed = f->positions[i].feed,
		.seq = feed->until,
		.shown_at = feed->until,
	};
	int r = snapshot_record(f->snapshot, ret_item->feed, key, entry, &ret_item->record);
	if (r != FOUND)
		return r;
	if (feed->resync)
		ret_item->old = ret_item->record;
	f->behind_ns = 0;
	buf_reset(&feed->given);
	buf_bytes_put(&feed->given, key);
	return buf_error(&feed->given);
}

int follow_range_next(struct follow *f, struct follow_item *ret_item)
{
	bool waiting = false;

	for (size_t i = 0; i < f->n; i++) {
		struct follow_feed *feed = &f->feeds[i];
		struct index_entry entry;
		struct bytes key;
		int r = 0;

		if (feed->stage == STAGE_CHANGES && !feed->resync)
			continue;
		if (!feed->ranged) {
			waiting = true;
			f->awaits_index |= feed->listed;
			continue;
		}
		if (!f->names)
			r = follow_begin_range(f, i);
		if (r == 0)
			r = names_next(f->names, &key, &entry);
		if (r == FOUND)
			return follow_give_object(f, i, key, &entry, ret_item);
		if (r != END)
			return r;
		names_close(&f->names);
		feed->stage = STAGE_CHANGES;
		feed->resync = false;
		buf_trim(&feed->given, 0);
	}
	if (waiting)
		return AGAIN;
	f->state = FOLLOW_IDLE; /* the log may go further than the index */
	f->resync_owed = false;
	f->behind_ns = 0;
	if (!f->sync_owed)
		return NOT_FOUND;
	f->sync_owed = false;
	f->synced = true;
	*ret_item = (struct follow_item){.kind = FOLLOW_SYNC};
	return FOUND;
}

/* ---- live --------------------------------------------------------------- */

/* Reads the record of a ring entry. Returns: FOUND; NOT_FOUND: the entry does not concern us; END:
 * a pass is needed; GONE; AGAIN; errors. */
static int follow_live_entry(
	struct follow *f, const struct ring_entry *entry, struct follow_item *ret_item)
{
	struct feed_checkpoint checkpoint;
	struct record record;
	size_t i;
	int r;

	if (!follow_find(f, entry->feed, &i) || entry->seq <= f->positions[i].seq)
		return NOT_FOUND;
	if (entry->type == RECORD_LIST_END || entry->type == RECORD_FEED_REMOVED)
		return END;
	if (entry->type == RECORD_LIST_BEGIN)
		f->feeds[i].in_list = true; /* after its end a pass gives all of it */
	if (!record_is_change(entry->type))
		return NOT_FOUND;
	if (!f->held || snapshot_last(f->snapshot) < entry->seq) {
		r = follow_take_snapshot(f, false);
		if (r != 0) {
			f->state = FOLLOW_IDLE; /* the entry is off the ring: a pass must find it */
			return r;
		}
	}
	r = journal_feed_checkpoint(snapshot_journal(f->snapshot),
		snapshot_journal_txn(f->snapshot), entry->feed, &checkpoint);
	if (r < 0)
		return r;
	uint64_t visible = r == FOUND ? snapshot_log_visible(f->snapshot, &checkpoint) : 0;
	if (r == FOUND && visible < entry->seq && visible < snapshot_last(f->snapshot)) {
		f->feeds[i].in_list = true;
		return NOT_FOUND;
	}
	/* Trimmed, after entries of a list left to a pass, or the feed was removed. */
	if (r != FOUND || f->feeds[i].in_list || entry->seq <= snapshot_horizon(f->snapshot) ||
		visible < entry->seq)
		return END;
	r = snapshot_version(f->snapshot, entry->seq, &record);
	err_ignore(r == ERR_CORRUPT ? r : 0, "the pass comes to it");
	if (r == NOT_FOUND || r == ERR_CORRUPT || (r == FOUND && record.feed != entry->feed))
		return END;
	return r == FOUND ? follow_give_change(f, i, &record, record.seq, ret_item) : r;
}

int follow_live_next(struct follow *f, struct follow_item *ret_item)
{
	struct ring_entry entry;
	int r = AGAIN;

	while (f->ring && (r = ring_next(f->ring, &entry)) == FOUND) {
		/* Entries may be missing between two others: the log has their records. */
		bool is_next = entry.seq <= f->ring_seq + 1;

		if (entry.seq > f->ring_seq)
			f->ring_seq = entry.seq;
		r = is_next ? follow_live_entry(f, &entry, ret_item) : END;
		if (r == END || r < 0)
			f->state = FOLLOW_IDLE;
		if (r != NOT_FOUND || f->state != FOLLOW_LIVE) /* a lapsed feed comes first */
			return r == END ? NOT_FOUND : r;
	}
	if (r == LAPPED) {
		f->ring_seq = ring_to_tail(f->ring);
		r = END;
	}
	/* A batch may have more records than entries, because the writer keeps a bounded number. */
	if (r == AGAIN && f->ring && ring_last_seq(f->ring) > f->ring_seq)
		r = END;
	if (r == GONE) { /* closed or replaced: the pass attaches to its successor */
		ring_detach(&f->ring);
		r = END;
	}
	if (r == AGAIN &&
		proc_monotonic_ns() - f->pass_ns >= (f->ring ? PASS_EVERY_NS : NO_RING_NS))
		r = END;
	if (r != AGAIN)
		f->state = FOLLOW_IDLE;
	return r == END ? NOT_FOUND : r;
}
