/* SPDX-License-Identifier: Apache-2.0 */
/* The snapshots of a follower, and its passes over the log. */
#include <string.h>

#include "common/err.h"
#include "common/proc.h"
#include "store/read/follow_internal.h"

#define RESYNC_HOLD_NS (100 * UINT64_C(1000000)) /* changes wait this long for a resync's index */

/* ---- snapshots ---------------------------------------------------------- */

/* Moves the positions to SEQ, but not beyond `until`. */
static void follow_advance(struct follow *f, uint64_t seq)
{
	for (size_t i = 0; i < f->n; i++) {
		uint64_t end = seq < f->feeds[i].until ? seq : f->feeds[i].until;

		if (f->feeds[i].stage != STAGE_NEW && f->positions[i].seq < end)
			f->positions[i].seq = end;
	}
}

int follow_release(struct follow *f)
{
	if (f->log) /* the pass was cut short */
		follow_advance(f, f->examined);
	journal_walk_close(&f->log);
	names_close(&f->names);
	if (!f->held)
		return 0;
	f->held = false;
	return snapshot_reset_pins(f->snapshot);
}

/* Attaches to the delta ring, unless attached. The caller takes a snapshot after this: everything
 * newer then comes through the ring. Without a ring passes alone do the work. */
static void follow_attach(struct follow *f)
{
	int runtime = home_runtime_fd(store_home(f->store));

	if (f->ring || runtime < 0)
		return;
	int r = ring_attach(runtime, DELTA_RING, &f->ring);
	if (r < 0) {
		err_ignore(r, "no reflector runs here: passes find what there is");
		/* The runtime directory may be another one now. */
		err_ignore(home_reopen(store_home(f->store)),
			"the store that is open goes on being read");
	}
	if (f->ring)
		f->ring_seq = ring_to_tail(f->ring);
}

/* Renews index and journal if both are asked for and there, else the journal. */
static int follow_renew(struct follow *f, bool whole, bool *ret_whole)
{
	int r = AGAIN;

	*ret_whole = false;
	if (whole)
		r = f->snapshot ? snapshot_renew(f->snapshot)
				: snapshot_open(f->store, &f->snapshot);
	if (r == 0 && snapshot_is_torn(f->snapshot))
		r = err_say(ERR_CORRUPT,
			"the index and the journal of this copy are of different moments, so "
			"changes can't be followed: 'kinf get' shows the objects");
	*ret_whole = r == 0;
	if (r == 0 || r == ERR_SNAPSHOT_EXPIRED || (r < 0 && f->sync_owed))
		return r;
	err_ignore(r, "the log is followed, and the objects that are owed are read later");
	return f->snapshot ? snapshot_renew_log(f->snapshot)
			   : snapshot_open_log(f->store, &f->snapshot);
}

int follow_take_snapshot(struct follow *f, bool whole)
{
	int r = follow_release(f);

	if (r < 0)
		return r;
	follow_attach(f);
	if (f->taken)
		taken_look(f->taken);
	r = follow_renew(f, whole, &f->whole);
	if (r != 0)
		return r;
	f->held = true;
	const uint8_t *uuid = snapshot_uuid(f->snapshot);

	if (f->journal_known && memcmp(f->journal, uuid, 16) != 0)
		return GONE;
	if (f->uuid_known && memcmp(f->uuid, uuid, sizeof(f->uuid)) != 0) {
		if (f->pass_ns)
			return GONE;
		/* The positions came from a cursor of another journal: each feed has lapsed. */
		for (size_t i = 0; i < f->n; i++)
			f->feeds[i].foreign = true;
	}
	memcpy(f->uuid, uuid, sizeof(f->uuid));
	f->uuid_known = true;
	/* The ring is of another journal: the next or an old one. */
	if (f->ring && memcmp(ring_uuid(f->ring), uuid, sizeof(f->uuid)) != 0)
		ring_detach(&f->ring);
	return 0;
}

/* ---- passes over the log ------------------------------------------------ */

/* Sets the end of a pass, and whether the feed's objects can be read by name in this snapshot. The
 * index must have everything given: an object never goes back. A resync holds its feed's changes
 * until then, but not for long. */
static void follow_set_end(struct follow *f, size_t i, const struct feed_checkpoint *checkpoint)
{
	struct follow_feed *feed = &f->feeds[i];
	uint64_t last = snapshot_last(f->snapshot);
	uint64_t given = feed->stage != STAGE_NEW ? f->positions[i].seq
			 : f->not_before < last   ? f->not_before
						  : last;
	bool by_name = feed->stage != STAGE_CHANGES || feed->resync;
	uint64_t log = snapshot_log_visible(f->snapshot, checkpoint), visible = 0;

	feed->listed = log > 0;
	feed->in_list = checkpoint->list_begin != 0;
	if (by_name && f->whole && snapshot_taken(f->snapshot) >= given)
		visible = snapshot_visible(f->snapshot, f->positions[i].feed);
	/* A pass from a state before damage would come to it once more. */
	if (feed->stage == STAGE_NEW && visible < f->not_before && visible < log)
		visible = 0;
	feed->ranged = visible > 0;
	if (feed->resync && !feed->ranged && !f->behind_ns)
		f->behind_ns = proc_monotonic_ns();
	bool held = feed->resync && !feed->ranged &&
		    proc_monotonic_ns() - f->behind_ns < RESYNC_HOLD_NS;
	if (feed->ranged)
		feed->until = visible > f->positions[i].seq ? visible : f->positions[i].seq;
	else
		feed->until = feed->stage == STAGE_CHANGES && !held ? log : f->positions[i].seq;
}

/* Checks a feed in the new snapshot. Returns: NOT_FOUND: all is well; FOUND: it has lapsed, an
 * item; GONE. */
static int follow_check_feed(struct follow *f, size_t i, struct follow_item *ret_item)
{
	struct follow_position *position = &f->positions[i];
	struct follow_feed *feed = &f->feeds[i];
	struct feed_checkpoint checkpoint;
	int r = journal_feed_checkpoint(snapshot_journal(f->snapshot),
		snapshot_journal_txn(f->snapshot), position->feed, &checkpoint);

	if (r == NOT_FOUND || (r == FOUND && checkpoint.phase == FEED_REMOVED))
		return GONE;
	if (r < 0)
		return r;
	uint64_t visible = snapshot_log_visible(f->snapshot, &checkpoint);
	if (feed->stage == STAGE_NEW && feed->skip_initial && visible) {
		feed->stage = STAGE_CHANGES;
		position->seq = visible;
	}
	/* A position after the end of the log is from before a copy replaced the journal: the same
	 * seqs are given to other changes now. */
	bool lost = feed->stage != STAGE_NEW &&
		    (position->seq < checkpoint.trimmed ||
			    position->seq > snapshot_last(f->snapshot) || feed->damaged);
	if (!feed->foreign && !lost) {
		follow_set_end(f, i, &checkpoint);
		return NOT_FOUND;
	}
	if (position->seq > f->not_before && !feed->foreign &&
		position->seq <= snapshot_last(f->snapshot))
		f->not_before = position->seq;
	position->seq = 0;
	feed->stage = STAGE_NEW;
	feed->skip_initial = feed->foreign = feed->damaged = feed->resync = false;
	buf_reset(&feed->given);
	f->synced = false;
	f->sync_owed = true;
	*ret_item = (struct follow_item){.kind = FOLLOW_LAPPED, .feed = position->feed};
	return FOUND;
}

static bool follow_owes_objects(const struct follow *f)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct follow_feed *feed = &f->feeds[i];

		if (feed->resync || feed->stage == STAGE_INITIAL ||
			(feed->stage == STAGE_NEW && !feed->skip_initial) || feed->foreign)
			return true;
	}
	return false;
}

int follow_begin_pass(struct follow *f, struct follow_item *ret_item)
{
	struct ring_reader *old = f->ring;
	uint64_t from = UINT64_MAX;

	/* Attach to a newer file of the ring's name: the old one never ends. */
	if (old && ring_is_replaced(old)) {
		f->ring = NULL;
		follow_attach(f);
		if (f->ring)
			ring_detach(&old);
		else
			f->ring = old;
	}
	/* The pass finds all announced records in the log. */
	if (f->ring)
		f->ring_seq = ring_to_tail(f->ring);
	f->awaits_index = false;
	int r = follow_take_snapshot(f, follow_owes_objects(f));

	if (r != 0)
		return r;
	f->pass_ns = proc_monotonic_ns();
	for (size_t i = 0; i < f->n; i++) {
		r = follow_check_feed(f, i, ret_item);
		if (r != NOT_FOUND)
			return r;
		if (f->feeds[i].stage != STAGE_NEW && f->positions[i].seq < f->feeds[i].until &&
			f->positions[i].seq < from)
			from = f->positions[i].seq;
	}
	f->state = FOLLOW_PASS;
	if (from == UINT64_MAX)
		return NOT_FOUND; /* nothing to read */
	f->examined = from;
	r = snapshot_open_walk(f->snapshot, from + 1, &f->log);
	return r < 0 ? r : NOT_FOUND;
}

/* Makes feed I lapse once: record SEQ is damaged. It begins again with a state not before it. */
static void follow_lapse(struct follow *f, size_t i, uint64_t seq)
{
	f->feeds[i].damaged = true;
	f->state = FOLLOW_IDLE;
	if (f->not_before < seq)
		f->not_before = seq;
}

int follow_give_change(struct follow *f, size_t i, const struct record *record, uint64_t shown_at,
	struct follow_item *ret_item)
{
	*ret_item = (struct follow_item){
		.kind = FOLLOW_CHANGE,
		.feed = record->feed,
		.seq = record->seq,
		.shown_at = shown_at,
		.record = *record,
	};
	int r = snapshot_before(f->snapshot, record, &ret_item->old);

	if (r == FOUND)
		f->positions[i].seq = record->seq;
	if (r != ERR_CORRUPT || store_is_copy(f->store))
		return r;
	err_ignore(r, "the feed lapses, and begins again with the current state");
	follow_lapse(f, i, record->seq);
	return NOT_FOUND;
}

/* Makes the feeds lapse that need the log after its damage (FAILED). Returns: NOT_FOUND: a
 * feed has lapsed; END: none needs it; FAILED. */
static int follow_log_failed(struct follow *f, int failed)
{
	int r = snapshot_result(f->snapshot, failed);

	if (r != ERR_CORRUPT || store_is_copy(f->store))
		return r;
	for (size_t i = 0; i < f->n; i++)
		if (f->feeds[i].stage != STAGE_NEW && f->feeds[i].until > f->examined)
			follow_lapse(f, i, f->examined + 1);
	err_ignore(failed, "the feeds that it concerns lapse");
	return f->state == FOLLOW_IDLE ? NOT_FOUND : END;
}

/* Returns whether to give feed I the change RECORD. */
static bool follow_wants(const struct follow *f, size_t i, const struct record *record)
{
	const struct follow_feed *feed = &f->feeds[i];

	return record_is_change(record->type) && record->seq > f->positions[i].seq &&
	       record->seq <= feed->until && feed->stage != STAGE_NEW &&
	       (feed->stage != STAGE_INITIAL ||
		       bytes_compare(record->key, buf_bytes(&feed->given)) <= 0);
}

int follow_pass_next(struct follow *f, struct follow_item *ret_item)
{
	struct record record;
	size_t i;
	int r = f->log ? FOUND : END;

	while (r == FOUND) {
		r = journal_walk_next(f->log, &record);
		if (r == ERR_CORRUPT)
			r = follow_log_failed(f, r);
		if (r != FOUND)
			break;
		if (follow_find(f, record.feed, &i)) {
			if (record.type == RECORD_FEED_REMOVED)
				return GONE;
			/* The record may be of a list: the index shows it with the list's end. */
			if (follow_wants(f, i, &record)) {
				r = follow_give_change(
					f, i, &record, snapshot_last(f->snapshot), ret_item);
				if (r == FOUND)
					f->examined = record.seq;
				return r;
			}
		}
		f->examined = record.seq;
	}
	if (r != END)
		return r;
	journal_walk_close(&f->log);
	follow_advance(f, UINT64_MAX);
	f->state = f->sync_owed || f->resync_owed ? FOLLOW_RANGE : FOLLOW_LIVE;
	return NOT_FOUND;
}
