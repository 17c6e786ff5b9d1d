/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow_next() is one loop over four states:
 *
 *	IDLE	holds nothing: takes a snapshot and begins a pass
 *	PASS	reads the log from the smallest position to visible(feed) and gives the changes that the
 *		caller does not know yet
 *	RANGE	reads a feed's objects by name, from the key after the one given last: the initial
 *		state, or a resync
 *	LIVE	takes entries of the event ring and reads their records from the journal
 *
 * After a snapshot was held for long enough it is renewed, and a pass comes first. For a feed whose
 * initial state is still being read, the pass gives only changes of keys that were given already:
 * the range shows the others as they are in the same snapshot. During a resync it gives all.
 */
#include "store/read/follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "store/ring/ring.h"

#define FOLLOW_MAGIC    0x666f6c6cu
#define DEFAULT_HOLD_NS (50 * UINT64_C(1000000))
#define PASS_EVERY_NS   UINT64_C(1000000000) /* positions advance without events, too */
#define NO_RING_MS      50 /* between two passes when there is no ring */
#define NO_RING_NS      (NO_RING_MS * UINT64_C(1000000) / 2)

enum follow_state { FOLLOW_PASS, FOLLOW_RANGE, FOLLOW_LIVE, FOLLOW_IDLE };

enum follow_stage {
	STAGE_NEW,     /* no object was given */
	STAGE_INITIAL, /* the keys up to `given` were */
	STAGE_CHANGES, /* the initial state was given, or is not wanted */
};

struct follow_feed {
	enum follow_stage stage;
	bool skip_initial;
	bool foreign;   /* the position belongs to another journal */
	bool resync;    /* STAGE_CHANGES, but the objects after `given` are to be given again */
	uint64_t until; /* visible(feed) in this snapshot */
	struct buf given; /* the last key of the initial state or resync */
};

struct follow_id {
	uint32_t feed, i; /* its place in positions and feeds */
};

struct follow {
	uint32_t magic;
	struct store *store;
	struct snapshot *snapshot; /* NULL before the first one could be taken */
	bool held, uuid_known, journal_known;
	uint8_t uuid[16];    /* the journal of the positions */
	uint8_t journal[16]; /* the journal of the feeds' ids */
	struct ring_reader *ring;
	enum follow_state state;
	struct journal_walk *log;
	struct index_walk *names;
	struct follow_position *positions; /* in the caller's order, as feeds */
	struct follow_feed *feeds;
	struct follow_id *ids; /* by feed id */
	size_t n;
	bool synced, sync_owed, resync_owed;
	uint64_t examined; /* by this pass: the log up to here */
	uint64_t hold_ns;
	uint64_t pass_ns; /* monotonic time at which the last pass began */
};

static int follow_compare_ids(const void *a, const void *b)
{
	const struct follow_id *x = a, *y = b;

	return (x->feed > y->feed) - (x->feed < y->feed);
}

/* Returns: false: the follower does not follow this feed. */
static bool follow_find(const struct follow *f, uint32_t feed, size_t *ret_i)
{
	const struct follow_id key = {.feed = feed};
	const struct follow_id *id =
		f->n ? bsearch(&key, f->ids, f->n, sizeof(key), follow_compare_ids) : NULL;

	*ret_i = id ? id->i : 0;
	return id != NULL;
}

/* ---- making and freeing ---- */

int follow_new(struct store *store, const uint32_t *feeds, size_t n_feeds,
	const struct follow_options *options, struct follow **ret_follow)
{
	static const struct follow_options none = {0};
	CLEANUP(follow_free) struct follow *f = calloc(1, sizeof(*f));
	size_t room = n_feeds ? n_feeds : 1, i;

	if (!f)
		return err_set(-ENOMEM, "follower");
	if (!options)
		options = &none;
	*f = (struct follow){.magic = FOLLOW_MAGIC, .store = store, .state = FOLLOW_IDLE, .n = n_feeds};
	f->hold_ns = options->max_hold_ns ? options->max_hold_ns : DEFAULT_HOLD_NS;
	f->positions = calloc(room, sizeof(*f->positions));
	f->feeds = calloc(room, sizeof(*f->feeds));
	f->ids = calloc(room, sizeof(*f->ids));
	if (!f->positions || !f->feeds || !f->ids)
		return err_set(-ENOMEM, "follower of %zu feeds", n_feeds);
	for (i = 0; i < n_feeds; i++) {
		f->positions[i].feed = feeds[i];
		f->feeds[i].skip_initial = options->no_initial;
		f->ids[i] = (struct follow_id){feeds[i], (uint32_t)i};
	}
	qsort(f->ids, n_feeds, sizeof(*f->ids), follow_compare_ids);
	if (options->journal) {
		memcpy(f->journal, options->journal, sizeof(f->journal));
		f->journal_known = true;
	}
	if (options->from && options->from_uuid) {
		memcpy(f->uuid, options->from_uuid, sizeof(f->uuid));
		f->uuid_known = true;
	}
	for (size_t k = 0; options->from && k < options->n_from; k++)
		if (follow_find(f, options->from[k].feed, &i)) {
			f->positions[i].seq = options->from[k].seq;
			f->feeds[i].stage = STAGE_CHANGES;
		}
	f->sync_owed = !options->from;
	for (i = 0; i < n_feeds; i++)
		f->sync_owed |= f->feeds[i].stage != STAGE_CHANGES;
	f->synced = !f->sync_owed;
	*ret_follow = TAKE(f);
	return 0;
}

void follow_free(struct follow **follow)
{
	if (!follow || !*follow)
		return;
	struct follow *f = TAKE(*follow);

	CHECK_OBJ(f, FOLLOW_MAGIC);
	journal_walk_close(&f->log);
	index_walk_close(&f->names);
	for (size_t i = 0; f->feeds && i < f->n; i++)
		buf_release(&f->feeds[i].given);
	ring_detach(&f->ring);
	snapshot_close(&f->snapshot);
	free(f->ids);
	free(f->feeds);
	free(f->positions);
	f->magic = 0;
	free(f);
}

bool follow_synced(const struct follow *follow)
{
	return follow->synced;
}

bool follow_is_resyncing(const struct follow *follow)
{
	return follow->resync_owed;
}

size_t follow_positions(struct follow *follow, const struct follow_position **ret_positions)
{
	*ret_positions = follow->positions;
	return follow->n;
}

const uint8_t *follow_uuid(const struct follow *follow)
{
	return follow->uuid;
}

/* ---- snapshots ---- */

/* Moves the positions to SEQ, where a pass has come to, or to the end of what it may read. */
static void follow_advance(struct follow *f, uint64_t seq)
{
	for (size_t i = 0; i < f->n; i++) {
		uint64_t end = seq < f->feeds[i].until ? seq : f->feeds[i].until;

		if (f->feeds[i].stage != STAGE_NEW && f->positions[i].seq < end)
			f->positions[i].seq = end;
	}
}

static int follow_release(struct follow *f)
{
	if (f->log) /* the pass was cut short */
		follow_advance(f, f->examined);
	journal_walk_close(&f->log);
	index_walk_close(&f->names);
	if (!f->held)
		return 0;
	f->held = false;
	return snapshot_reset(f->snapshot);
}

/* Attaches to the event ring before a snapshot is taken: what the snapshot does not show yet will
 * then come through the ring. Without a ring passes alone do the work. */
static void follow_attach(struct follow *f)
{
	int runtime = home_runtime_fd(store_home(f->store));

	if (f->ring || runtime < 0)
		return;
	int r = ring_attach(runtime, "event.ring", &f->ring);
	if (r < 0) {
		err_ignore(r, "no processor has run here: passes find the changes");
		f->ring = NULL;
		/* The runtime directory may be another one now. */
		err_ignore(home_reopen(store_home(f->store)),
			"the store that is open goes on being read");
	}
}

/* Returns: 0; AGAIN: there is no index yet; GONE: the feeds belong to another journal; errors. */
static int follow_take_snapshot(struct follow *f)
{
	int r = follow_release(f);

	if (r < 0)
		return r;
	follow_attach(f);
	r = f->snapshot ? snapshot_renew(f->snapshot) : snapshot_open(f->store, &f->snapshot);
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
	/* The processor is about to replace a ring of another journal. */
	if (f->ring && memcmp(ring_uuid(f->ring), uuid, sizeof(f->uuid)) != 0)
		ring_detach(&f->ring);
	return 0;
}

/* ---- passes over the log ---- */

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
	feed->until = snapshot_visible(f->snapshot, position->feed);
	if (feed->stage == STAGE_NEW && feed->skip_initial && feed->until) {
		feed->stage = STAGE_CHANGES;
		position->seq = feed->until;
	}
	/* A position above `taken` is from before the journal was restored from a copy: the same
	 * seqs are given to other changes now. */
	bool lost =
		feed->stage != STAGE_NEW &&
		(position->seq < checkpoint.trimmed || position->seq > snapshot_taken(f->snapshot));
	if (!feed->foreign && !lost)
		return NOT_FOUND;
	feed->stage = STAGE_NEW;
	feed->skip_initial = feed->foreign = feed->resync = false;
	buf_reset(&feed->given);
	f->synced = false;
	f->sync_owed = true;
	*ret_item = (struct follow_item){.kind = FOLLOW_LAPPED, .feed = position->feed};
	return FOUND;
}

/* Takes a snapshot and opens the log after the smallest position. Returns: NOT_FOUND: the pass can
 * begin; FOUND: an item comes first, then begin again; AGAIN: there is no index yet; GONE;
 * errors. */
static int follow_begin_pass(struct follow *f, struct follow_item *ret_item)
{
	struct ring_reader *old = f->ring;
	uint64_t from = UINT64_MAX, seq;

	/* Attach to a newer file that has taken the ring's name: the old one never says so. */
	if (old && ring_is_replaced(old)) {
		f->ring = NULL;
		follow_attach(f);
		if (f->ring)
			ring_detach(&old);
		else
			f->ring = old;
	}
	/* The pass finds in the log all that the ring has announced. */
	if (f->ring)
		(void)ring_to_tail(f->ring, &seq); /* has no error */
	int r = follow_take_snapshot(f);

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
	r = journal_walk_open(snapshot_journal(f->snapshot), snapshot_journal_txn(f->snapshot),
		from + 1, &f->log);
	return r < 0 ? r : NOT_FOUND;
}

/* Makes an item of a record and the state before it. The position stays where it is after an error:
 * a caller that continues gets the record again. */
static int follow_give_change(struct follow *f, size_t i, const struct record *record,
	struct follow_item *ret_item)
{
	*ret_item = (struct follow_item){
		.kind = FOLLOW_CHANGE,
		.feed = record->feed,
		.seq = record->seq,
		.record = *record,
	};
	int r = record->prev ? snapshot_version(f->snapshot, record->prev, &ret_item->old) : FOUND;
	if (r == NOT_FOUND)
		return err_say(ERR_CORRUPT, "record %llu: the version before it, %llu, is missing",
			(unsigned long long)record->seq, (unsigned long long)record->prev);
	if (r == FOUND)
		f->positions[i].seq = record->seq;
	return r;
}

/* Returns: FOUND: a change; NOT_FOUND: the pass is over; GONE; errors. */
static int follow_pass_next(struct follow *f, struct follow_item *ret_item)
{
	struct record record;
	size_t i;
	int r = END;

	for (; f->log && (r = journal_walk_next(f->log, &record)) == FOUND;
		f->examined = record.seq) {
		if (!follow_find(f, record.feed, &i))
			continue;
		if (record.type == RECORD_FEED_REMOVED)
			return GONE;
		if (!record_is_change(record.type) || record.seq <= f->positions[i].seq ||
			record.seq > f->feeds[i].until || f->feeds[i].stage == STAGE_NEW ||
			(f->feeds[i].stage == STAGE_INITIAL &&
				bytes_compare(record.key, buf_bytes(&f->feeds[i].given)) > 0))
			continue;
		r = follow_give_change(f, i, &record, ret_item);
		if (r == FOUND)
			f->examined = record.seq;
		return r;
	}
	if (r != END)
		return r;
	journal_walk_close(&f->log);
	follow_advance(f, UINT64_MAX);
	f->state = f->sync_owed || f->resync_owed ? FOLLOW_RANGE : FOLLOW_LIVE;
	return NOT_FOUND;
}

/* ---- ranges of objects by name ---- */

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
		     : index_names(snapshot_index(f->snapshot), snapshot_index_txn(f->snapshot),
			       f->positions[i].feed, BYTES_NONE, buf_bytes(&from), &f->names);
}

static int follow_give_object(struct follow *f, size_t i, struct bytes key,
	const struct index_entry *entry, struct follow_item *ret_item)
{
	struct follow_feed *feed = &f->feeds[i];

	*ret_item = (struct follow_item){
		.kind = feed->resync ? FOLLOW_RESYNC : FOLLOW_INITIAL,
		.feed = f->positions[i].feed,
		.seq = feed->until,
	};
	int r = snapshot_record(f->snapshot, ret_item->feed, key, entry, &ret_item->record);
	if (r != FOUND)
		return r;
	if (feed->resync)
		ret_item->old = ret_item->record;
	buf_reset(&feed->given);
	buf_bytes_put(&feed->given, key);
	return buf_error(&feed->given);
}

/* Gives the next object that is owed. A feed whose first list has not ended holds back only SYNC.
 * Returns: FOUND: an object, or SYNC at the end; NOT_FOUND: the resync is over; AGAIN: only feeds
 * without a first list are left; errors. */
static int follow_range_next(struct follow *f, struct follow_item *ret_item)
{
	bool waiting = false;

	for (size_t i = 0; i < f->n; i++) {
		struct follow_feed *feed = &f->feeds[i];
		struct index_entry entry;
		struct bytes key;
		int r = 0;

		if (feed->stage == STAGE_CHANGES && !feed->resync)
			continue;
		if (!feed->until) {
			waiting = true;
			continue;
		}
		if (!f->names)
			r = follow_begin_range(f, i);
		if (r == 0)
			r = index_walk_next(f->names, &key, &entry);
		if (r == FOUND)
			return follow_give_object(f, i, key, &entry, ret_item);
		if (r != END)
			return r;
		index_walk_close(&f->names);
		feed->stage = STAGE_CHANGES;
		feed->resync = false;
		buf_trim(&feed->given, 0);
	}
	if (waiting)
		return AGAIN;
	f->state = FOLLOW_LIVE;
	f->resync_owed = false;
	if (!f->sync_owed)
		return NOT_FOUND;
	f->sync_owed = false;
	f->synced = true;
	*ret_item = (struct follow_item){.kind = FOLLOW_SYNC};
	return FOUND;
}

/* ---- live ---- */

/* Reads the record of a ring entry. Returns: FOUND; NOT_FOUND: the entry does not concern us; END:
 * a pass is needed; GONE; AGAIN; errors. */
static int follow_live_entry(struct follow *f, const struct ring_entry *entry,
	struct follow_item *ret_item)
{
	struct record record;
	size_t i;
	int r;

	if (!follow_find(f, entry->feed, &i) || entry->seq <= f->positions[i].seq)
		return NOT_FOUND;
	if (entry->type == RING_LIST || entry->type == RECORD_FEED_REMOVED)
		return END;
	if (!record_is_change(entry->type))
		return NOT_FOUND;
	if (!f->held || snapshot_taken(f->snapshot) < entry->seq) {
		r = follow_take_snapshot(f);
		if (r != 0) {
			f->state = FOLLOW_IDLE; /* the entry is off the ring: a pass must find it */
			return r;
		}
	}
	/* Already trimmed, or within an open list: the pass finds out. */
	if (entry->seq <= snapshot_horizon(f->snapshot) ||
		snapshot_visible(f->snapshot, entry->feed) < entry->seq)
		return END;
	r = snapshot_version(f->snapshot, entry->seq, &record);
	if (r == NOT_FOUND || (r == FOUND && record.feed != entry->feed))
		return END;
	return r == FOUND ? follow_give_change(f, i, &record, ret_item) : r;
}

/* Returns: FOUND; NOT_FOUND: a pass comes next; AGAIN: nothing new; GONE; errors. */
static int follow_live_next(struct follow *f, struct follow_item *ret_item)
{
	struct ring_entry entry;
	uint64_t seq;
	int r = AGAIN;

	while (f->ring && (r = ring_next(f->ring, &entry)) == FOUND) {
		r = follow_live_entry(f, &entry, ret_item);
		if (r == END || r < 0)
			f->state = FOLLOW_IDLE;
		if (r != NOT_FOUND)
			return r == END ? NOT_FOUND : r;
	}
	if (r == LAPPED)
		r = ring_to_tail(f->ring, &seq) == 0 ? END : GONE;
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

/* ---- the loop ---- */

int follow_next(struct follow *follow, struct follow_item *ret_item)
{
	struct follow *f = follow;
	int r = NOT_FOUND;

	CHECK_OBJ(f, FOLLOW_MAGIC);
	if (f->held && snapshot_age_ns(f->snapshot) > f->hold_ns) {
		r = follow_rest(f);
		if (r < 0)
			return r;
	}
	do {
		r = f->state == FOLLOW_IDLE    ? follow_begin_pass(f, ret_item)
		    : f->state == FOLLOW_PASS  ? follow_pass_next(f, ret_item)
		    : f->state == FOLLOW_RANGE ? follow_range_next(f, ret_item)
					       : follow_live_next(f, ret_item);
	} while (r == NOT_FOUND);
	if (r == FOUND &&
		f->held) /* a copy may have been written meanwhile: then the item is wrong */
		r = snapshot_check(f->snapshot);
	if (r == FOUND)
		return FOUND;
	int released = follow_rest(f);
	return released < 0 ? released : r;
}

int follow_rest(struct follow *follow)
{
	CHECK_OBJ(follow, FOLLOW_MAGIC);
	if (follow->state != FOLLOW_LIVE)
		follow->state = FOLLOW_IDLE;
	return follow_release(follow);
}

bool follow_resync(struct follow *follow)
{
	CHECK_OBJ(follow, FOLLOW_MAGIC);
	if (!follow->synced || follow->resync_owed)
		return false;
	for (size_t i = 0; i < follow->n; i++) {
		follow->feeds[i].resync = true;
		buf_reset(&follow->feeds[i].given);
	}
	follow->resync_owed = true;
	follow->state = FOLLOW_IDLE; /* a pass comes first */
	return true;
}

int follow_wait(struct follow *follow, int timeout_ms)
{
	CHECK_OBJ(follow, FOLLOW_MAGIC);
	if (follow->ring)
		return ring_wait(follow->ring, timeout_ms) == AGAIN ? AGAIN : 0;
	int ms = timeout_ms < 0 || timeout_ms > NO_RING_MS ? NO_RING_MS : timeout_ms;
	const struct timespec pause = {.tv_nsec = (long)ms * 1000000};
	(void)nanosleep(&pause, NULL); /* a signal may end it early */
	return 0;
}
