/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the index with the journal. The state of a feed as of visible(feed) follows from the
 * journal alone: each head, and the last state of each object deleted since, followed back to the
 * first version at or below visible. Each key comes out at most once. So the two are equal if each
 * of these is in the index, and the index has as many. It deliberately does not use as_of.c, built
 * on the index.
 */
#include "store/verify/verify_internal.h"

#include <inttypes.h>

#include "common/cleanup.h"
#include "common/err.h"

/* Finds an object's version as of VISIBLE from its later version SEQ. Returns: FOUND; NOT_FOUND:
 * the object did not exist. Before its first list a feed has no state, and its versions may have
 * been trimmed. */
static int state_at(struct verify *v, uint64_t seq, uint64_t visible, struct record *ret_record)
{
	if (!visible)
		return NOT_FOUND;
	while (seq) {
		int r = journal_get(v->journal, v->journal_txn, seq, ret_record);

		if (r < 0)
			return r;
		if (r != FOUND)
			return err_say(ERR_CORRUPT, "journal: version %" PRIu64 " is missing", seq);
		if (seq <= visible)
			return FOUND;
		if (ret_record->prev >= seq)
			return err_say(ERR_CORRUPT, "journal: version %" PRIu64 " follows %" PRIu64,
				seq, ret_record->prev);
		seq = ret_record->prev;
	}
	return NOT_FOUND;
}

static int state_compare_object(struct verify *v, struct verify_feed *feed, uint64_t seq)
{
	struct record record, got;
	struct index_entry entry;
	int r = state_at(v, seq, feed->visible, &record);

	if (r != FOUND)
		return r < 0 ? r : 0;
	feed->expected++;
	r = index_get(snapshot_index(v->snapshot), snapshot_index_txn(v->snapshot), feed->id,
		record.key, &entry);
	if (r < 0)
		return r;
	if (r == NOT_FOUND) {
		verify_fault(v,
			"index: '%.*s' of feed %u is missing, the journal has version %" PRIu64,
			BYTES_ARG(record.key), feed->id, record.seq);
		return 0;
	}
	if (entry.seq != record.seq)
		verify_fault(v,
			"index: '%.*s' of feed %u is version %" PRIu64 ", the journal has %" PRIu64,
			BYTES_ARG(record.key), feed->id, entry.seq, record.seq);
	r = snapshot_record(v->snapshot, feed->id, record.key, &entry, &got);
	return r < 0 ? r : 0;
}

static bool state_is_compared(const struct verify_feed *feed)
{
	return feed->compared && feed->in_journal && feed->in_index && !feed->index.removed &&
	       feed->checkpoint.phase != FEED_REMOVED;
}

/* Compares the objects deleted above visible(feed); no head leads to them. */
static int state_compare_deleted(struct verify *v)
{
	CLEANUP(journal_walk_close) struct journal_walk *walk = NULL;
	uint64_t from = UINT64_MAX;
	struct record record;

	for (size_t i = 0; i < v->n_feeds; i++)
		if (state_is_compared(&v->feeds[i]) && v->feeds[i].visible &&
			v->feeds[i].visible < from)
			from = v->feeds[i].visible;
	if (from == UINT64_MAX)
		return 0;
	int r = journal_walk_open(v->journal_txn, from + 1, &walk);

	while (r == 0) {
		r = journal_walk_next_sound(walk, &record); /* the others were reported */
		if (r != FOUND)
			break;
		struct verify_feed *feed = verify_feed(v, record.feed);

		if (record.type == RECORD_DELETED && feed && state_is_compared(feed) &&
			record.seq > feed->visible)
			r = verify_failed(v, state_compare_object(v, feed, record.prev), "index");
	}
	return verify_failed(v, r, "journal: reading the log");
}

int verify_state(struct verify *v)
{
	int r = 0;

	for (size_t i = 0; i < v->n_feeds && r == 0; i++) {
		CLEANUP(head_walk_close) struct head_walk *walk = NULL;
		struct verify_feed *feed = &v->feeds[i];
		struct bytes key;
		struct head head;

		if (!state_is_compared(feed))
			continue;
		r = head_walk_open(v->journal_txn, feed->id, BYTES_NONE, &walk);
		while (r == 0) {
			r = verify_tick(v);
			if (r == 0)
				r = head_walk_next(walk, &key, &head);
			if (r == FOUND)
				r = verify_failed(
					v, state_compare_object(v, feed, head.seq), "index");
		}
		r = verify_failed(v, r, "journal: reading heads");
	}
	if (r == 0)
		r = state_compare_deleted(v);
	for (size_t i = 0; i < v->n_feeds && r == 0; i++) {
		const struct verify_feed *feed = &v->feeds[i];

		if (state_is_compared(feed) && !v->heads_are_cut &&
			feed->expected != feed->index.objects)
			verify_fault(v,
				"index: feed %u has %" PRIu64 " objects, the journal %" PRIu64
				" as of %" PRIu64,
				feed->id, feed->index.objects, feed->expected, feed->visible);
	}
	return r;
}
