/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One loop, four states:
 *
 *	PASS   read the log from the smallest position to visible(feed), give what is not yet known
 *	RANGE  read the initial state of a feed by name, from the key after the last one given; likewise
 *	       the state asked for by follow_resync
 *	LIVE   take entries of the event ring, resolve each in the journal
 *	IDLE   nothing held, nothing to do
 *
 * Whenever a snapshot was held for long enough it is taken anew, and a pass from the positions comes
 * first: for a feed whose initial state is being read it gives only keys already passed, since the
 * range will show the others as they are in that very snapshot. A resync gives all changes in its
 * passes, so what its ranges show is what was given last.
 */
#include "store/read/follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "store/read/follow_parts.h"

#define DEFAULT_HOLD_NS (50 * UINT64_C(1000000))
#define PASS_EVERY_NS   (1000 * UINT64_C(1000000)) /* positions move on without events too */
#define NO_RING_MS      50
#define NO_RING_NS      (NO_RING_MS * UINT64_C(1000000) / 2)

/* ---- making and freeing ---- */

static int follow_start_from(struct follow *f, const struct follow_options *options)
{
	for (size_t i = 0; i < f->n; i++)
		for (size_t k = 0; k < options->n_from; k++)
			if (options->from[k].feed == f->positions[i].feed) {
				f->positions[i].seq = options->from[k].seq;
				f->feeds[i].stage = BEGUN;
			}
	if (options->from_uuid) {
		memcpy(f->uuid, options->from_uuid, sizeof(f->uuid));
		f->uuid_known = true;
	}
	return 0;
}

int follow_new(struct store *store, const uint32_t *feeds, size_t n_feeds,
	const struct follow_options *options, struct follow **ret_follow)
{
	static const struct follow_options none = {0};
	CLEANUP(follow_free) struct follow *f = calloc(1, sizeof(*f));

	if (!f)
		return err_set(-ENOMEM, "follower");
	f->magic = FOLLOW_MAGIC;
	f->store = store;
	f->state = IDLE;
	f->positions = calloc(n_feeds ? n_feeds : 1, sizeof(*f->positions));
	f->feeds = calloc(n_feeds ? n_feeds : 1, sizeof(*f->feeds));
	if (!f->positions || !f->feeds)
		return err_set(-ENOMEM, "follower of %zu feeds", n_feeds);
	if (!options)
		options = &none;
	f->hold_ns = options->max_hold_ns ? options->max_hold_ns : DEFAULT_HOLD_NS;
	if (options->journal) {
		memcpy(f->journal, options->journal, sizeof(f->journal));
		f->journal_known = true;
	}
	f->n = n_feeds;
	for (size_t i = 0; i < n_feeds; i++) {
		f->positions[i].feed = feeds[i];
		f->feeds[i].skip_initial = options->no_initial;
	}
	f->sync_owed = true;
	if (options->from) {
		(void)follow_start_from(f, options);
		f->sync_owed = false;
		for (size_t i = 0; i < n_feeds; i++)
			f->sync_owed |= f->feeds[i].stage != BEGUN;
		f->synced = !f->sync_owed;
	}
	*ret_follow = TAKE(f);
	return 0;
}

static void close_walks(struct follow *f)
{
	journal_walk_close(&f->log);
	index_walk_close(&f->names);
}

void follow_free(struct follow **follow)
{
	if (!follow || !*follow)
		return;
	struct follow *f = TAKE(*follow);

	CHECK_OBJ(f, FOLLOW_MAGIC);
	close_walks(f);
	for (size_t i = 0; f->feeds && i < f->n; i++)
		buf_release(&f->feeds[i].passed);
	ring_detach(&f->ring);
	snapshot_close(&f->snapshot);
	free(f->feeds);
	free(f->positions);
	f->magic = 0;
	free(f);
}

bool follow_synced(const struct follow *follow)
{
	CHECK_OBJ(follow, FOLLOW_MAGIC);
	return follow->synced;
}

size_t follow_positions(struct follow *follow, const struct follow_position **ret_positions)
{
	CHECK_OBJ(follow, FOLLOW_MAGIC);
	*ret_positions = follow->positions;
	return follow->n;
}

const uint8_t *follow_uuid(const struct follow *follow)
{
	CHECK_OBJ(follow, FOLLOW_MAGIC);
	return follow->uuid;
}

/* ---- snapshots ---- */

/* A pass that is cut short has examined every feed up to where it is. */
static void note_examined(struct follow *f)
{
	for (size_t i = 0; i < f->n; i++) {
		uint64_t seq = f->examined < f->feeds[i].until ? f->examined : f->feeds[i].until;

		if (f->feeds[i].stage != NOT_BEGUN && f->positions[i].seq < seq)
			f->positions[i].seq = seq;
	}
}

static int follow_release(struct follow *f)
{
	if (f->log)
		note_examined(f);
	close_walks(f);
	if (!f->held)
		return 0;
	f->held = false;
	return snapshot_reset(f->snapshot);
}

/* Before the snapshot, so that whatever it does not show will come through the ring. */
static void follow_attach(struct follow *f)
{
	int runtime = home_runtime_fd(store_home(f->store));
	uint64_t seq;

	if (f->ring || runtime < 0)
		return;
	if (ring_attach(runtime, "event.ring", &f->ring) < 0) {
		f->ring = NULL; /* no processor runs here: passes alone will do */
		home_refresh(store_home(f->store));
	} else if (ring_to_tail(f->ring, &seq) != 0) {
		ring_detach(&f->ring);
	}
}

/*
 * A ring that lost its name, because the runtime folder was removed or the ring replaced by a writer that
 * came after one that was killed: nobody says so in it. It goes on being looked at until there is another.
 * Only where a pass follows, which reads what the old ring had still to tell.
 */
static void follow_attach_anew(struct follow *f)
{
	struct ring_reader *before = f->ring;

	if (!before || !ring_is_replaced(before))
		return;
	f->ring = NULL;
	follow_attach(f);
	if (f->ring)
		ring_detach(&before);
	else
		f->ring = before;
}

/* What the ring has told until now the pass will find; follow_wait sleeps until it tells of more, also
 * while none of it is taken because a first list is waited for. */
static void follow_to_tail(struct follow *f)
{
	uint64_t seq;

	if (f->ring)
		(void)ring_to_tail(f->ring, &seq); /* has no error */
}

/* Another journal than the positions are of: lapped, when they came from a cursor; else the feeds
 * themselves are others now. */
static int follow_other_journal(struct follow *f)
{
	if (f->passed_ns)
		return GONE;
	memcpy(f->uuid, snapshot_uuid(f->snapshot), sizeof(f->uuid));
	for (size_t i = 0; i < f->n; i++)
		f->feeds[i].foreign = true;
	return 0;
}

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
	if (f->journal_known &&
		memcmp(f->journal, snapshot_uuid(f->snapshot), sizeof(f->journal)) != 0)
		return GONE;
	if (!f->uuid_known) {
		memcpy(f->uuid, snapshot_uuid(f->snapshot), sizeof(f->uuid));
		f->uuid_known = true;
	}
	if (memcmp(f->uuid, snapshot_uuid(f->snapshot), sizeof(f->uuid)) != 0)
		return follow_other_journal(f);
	/* A ring of another journal, that the processor is about to replace: its seqs mean nothing
	 * here. */
	if (f->ring && memcmp(ring_uuid(f->ring), f->uuid, sizeof(f->uuid)) != 0)
		ring_detach(&f->ring);
	return 0;
}

/* ---- passes over the log ---- */

static int lapse(struct follow *f, size_t i, struct follow_item *ret_item)
{
	f->feeds[i].stage = NOT_BEGUN;
	f->feeds[i].skip_initial = f->feeds[i].foreign = f->feeds[i].resync = false;
	buf_reset(&f->feeds[i].passed);
	f->synced = false;
	f->sync_owed = true;
	*ret_item = (struct follow_item){.kind = FOLLOW_LAPPED, .feed = f->positions[i].feed};
	return FOUND;
}

/* Below what is kept; or beyond all there is, in a store whose journal was put back from a copy: the same
 * numbers are given again, for other changes. */
static bool is_lost(const struct follow *f, size_t i, const struct feed_checkpoint *checkpoint)
{
	uint64_t seq = f->positions[i].seq;

	return f->feeds[i].stage != NOT_BEGUN &&
		(seq < checkpoint->trimmed || seq > snapshot_taken(f->snapshot));
}

/* Where the feed stands in this snapshot. NOT_FOUND: in it; FOUND: lapped, an item; GONE. */
static int look_at_feed(struct follow *f, size_t i, struct follow_item *ret_item)
{
	struct feed_checkpoint checkpoint;
	struct followed *feed = &f->feeds[i];
	int r = journal_feed_checkpoint(snapshot_journal(f->snapshot),
		snapshot_journal_txn(f->snapshot), f->positions[i].feed, &checkpoint);

	if (r == NOT_FOUND || (r == FOUND && checkpoint.phase == FEED_REMOVED))
		return GONE;
	if (r < 0)
		return r;
	feed->until = snapshot_visible(f->snapshot, f->positions[i].feed);
	if (feed->stage == NOT_BEGUN && feed->skip_initial && feed->until) {
		feed->stage = BEGUN;
		f->positions[i].seq = feed->until;
	}
	if (feed->foreign || is_lost(f, i, &checkpoint))
		return lapse(f, i, ret_item);
	return NOT_FOUND;
}

/* Takes a snapshot and gets ready to read the log from the smallest position on. NOT_FOUND: ready;
 * FOUND: an item came first (lapped), begin again; AGAIN: no index yet; GONE. */
static int begin_pass(struct follow *f, struct follow_item *ret_item)
{
	uint64_t from = UINT64_MAX;

	follow_attach_anew(f);
	follow_to_tail(f);
	int r = follow_take_snapshot(f);

	if (r != 0)
		return r;
	f->passed_ns = proc_monotonic_ns();
	f->state = PASS;
	for (size_t i = 0; i < f->n; i++) {
		r = look_at_feed(f, i, ret_item);
		if (r != NOT_FOUND) {
			f->state = IDLE; /* comes back here */
			return r;
		}
		if (f->feeds[i].stage != NOT_BEGUN && f->positions[i].seq < f->feeds[i].until &&
			f->positions[i].seq < from)
			from = f->positions[i].seq;
	}
	if (from == UINT64_MAX)
		return NOT_FOUND; /* nothing to read: pass_next ends at once */
	f->examined = from;
	r = journal_walk_open(snapshot_journal(f->snapshot), snapshot_journal_txn(f->snapshot),
		from + 1, &f->log);
	return r < 0 ? r : NOT_FOUND;
}

static struct followed *find_feed(struct follow *f, uint32_t id, size_t *ret_i)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->positions[i].feed == id) {
			*ret_i = i;
			return &f->feeds[i];
		}
	return NULL;
}

/* A record as an item, with the state before it. The position stays where it is when that can't be
 * read: whoever goes on after an error gets the record again. */
static int give_change(struct follow *f, size_t i, const struct record *record,
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

static bool is_change(const struct record *record)
{
	return record->type == RECORD_ADDED || record->type == RECORD_MODIFIED ||
		record->type == RECORD_DELETED;
}

/* Does this pass give the record? */
static bool wants(const struct follow *f, size_t i, const struct record *record)
{
	const struct followed *feed = &f->feeds[i];

	if (record->seq <= f->positions[i].seq || record->seq > feed->until)
		return false;
	return feed->stage == BEGUN ||
		(feed->stage == INITIAL &&
			bytes_compare(record->key, buf_bytes(&feed->passed)) <= 0);
}

static void end_pass(struct follow *f)
{
	journal_walk_close(&f->log);
	for (size_t i = 0; i < f->n; i++)
		if (f->feeds[i].stage != NOT_BEGUN && f->positions[i].seq < f->feeds[i].until)
			f->positions[i].seq = f->feeds[i].until;
	f->state = f->sync_owed || f->resync_owed ? RANGE : LIVE;
}

/* FOUND; NOT_FOUND when the pass is over. */
static int pass_next(struct follow *f, struct follow_item *ret_item)
{
	struct record record;
	size_t i;
	int r = END;

	while (f->log && (r = journal_walk_next(f->log, &record)) == FOUND) {
		bool ours = find_feed(f, record.feed, &i) != NULL;

		if (ours && record.type == RECORD_FEED_REMOVED)
			return GONE;
		if (ours && is_change(&record) && wants(f, i, &record)) {
			r = give_change(f, i, &record, ret_item);
			if (r == FOUND)
				f->examined = record.seq;
			return r;
		}
		f->examined = record.seq;
	}
	if (r != END)
		return r;
	end_pass(f);
	return NOT_FOUND;
}

/* ---- live ---- */

/* One entry of the ring. FOUND: given; NOT_FOUND: nothing of ours; END: a pass has to look. */
static int live_entry(struct follow *f, const struct ring_entry *entry,
	struct follow_item *ret_item)
{
	struct record record;
	size_t i;

	if (!find_feed(f, entry->feed, &i) || entry->seq <= f->positions[i].seq)
		return NOT_FOUND;
	if (entry->type == RING_LIST || entry->type == RECORD_FEED_REMOVED)
		return END;
	if (entry->type != RECORD_ADDED && entry->type != RECORD_MODIFIED &&
		entry->type != RECORD_DELETED)
		return NOT_FOUND;
	if (!f->held || snapshot_taken(f->snapshot) < entry->seq) {
		int r = follow_take_snapshot(f);
		/* The entry is off the ring: whatever comes of this, the next look is a pass. */
		f->state = r == 0 ? LIVE : IDLE;
		if (r != 0)
			return r;
	}
	/* Trimmed already, or no longer the whole truth: the pass finds out. */
	if (entry->seq <= snapshot_horizon(f->snapshot) ||
		snapshot_visible(f->snapshot, entry->feed) < entry->seq)
		return END;
	int r = snapshot_version(f->snapshot, entry->seq, &record);
	if (r == NOT_FOUND || (r == FOUND && record.feed != entry->feed))
		return END;
	return r == FOUND ? give_change(f, i, &record, ret_item) : r;
}

/* FOUND; AGAIN: nothing new; END: a pass has to look. */
static int live_next(struct follow *f, struct follow_item *ret_item)
{
	struct ring_entry entry;
	uint64_t seq;
	int r = AGAIN;

	while (f->ring && (r = ring_next(f->ring, &entry)) == FOUND) {
		r = live_entry(f, &entry, ret_item);
		if (r != NOT_FOUND)
			return r;
	}
	if (r == LAPPED)
		r = ring_to_tail(f->ring, &seq) == 0 ? END : GONE;
	if (r == GONE) { /* closed or replaced: attached anew before the pass */
		ring_detach(&f->ring);
		r = END;
	}
	if (r == AGAIN && proc_monotonic_ns() - f->passed_ns >= (f->ring ? PASS_EVERY_NS : NO_RING_NS))
		r = END;
	return r;
}

/* ---- the loop ---- */

/* FOUND: an item; NOT_FOUND: the state has changed, go on; else what follow_next returns. */
static int step(struct follow *f, struct follow_item *ret_item)
{
	switch (f->state) {
	case IDLE:
		return begin_pass(f, ret_item);
	case PASS:
		return pass_next(f, ret_item);
	case RANGE:
		return follow_range_next(f, ret_item);
	case LIVE:
		break;
	}
	int r = live_next(f, ret_item);
	if (r == END || r < 0)
		f->state = IDLE;
	return r == END ? NOT_FOUND : r;
}

/* What the snapshot was held for begins with a pass again. */
int follow_rest(struct follow *follow)
{
	CHECK_OBJ(follow, FOLLOW_MAGIC);
	if (follow->state != LIVE)
		follow->state = IDLE;
	return follow_release(follow);
}

static int follow_renew(struct follow *f)
{
	return f->held && snapshot_age_ns(f->snapshot) > f->hold_ns ? follow_rest(f) : 0;
}

bool follow_is_resyncing(const struct follow *follow)
{
	CHECK_OBJ(follow, FOLLOW_MAGIC);
	return follow->resync_owed;
}

bool follow_resync(struct follow *follow)
{
	CHECK_OBJ(follow, FOLLOW_MAGIC);
	if (!follow->synced || follow->resync_owed)
		return false;
	for (size_t i = 0; i < follow->n; i++) {
		follow->feeds[i].resync = true;
		buf_reset(&follow->feeds[i].passed);
	}
	follow->resync_owed = true;
	follow->state = IDLE; /* a pass comes first */
	return true;
}

int follow_next(struct follow *follow, struct follow_item *ret_item)
{
	CHECK_OBJ(follow, FOLLOW_MAGIC);
	int r = follow_renew(follow);

	if (r < 0)
		return r;
	do {
		r = step(follow, ret_item);
	} while (r == NOT_FOUND);
	if (r == FOUND && follow->held) /* a copy that somebody writes is no news to give out */
		r = snapshot_check(follow->snapshot);
	if (r == FOUND)
		return FOUND;
	int released = follow_rest(follow);
	return released < 0 ? released : r;
}

int follow_wait(struct follow *follow, int timeout_ms)
{
	CHECK_OBJ(follow, FOLLOW_MAGIC);
	if (follow->ring) {
		int r = ring_wait(follow->ring, timeout_ms);

		return r == AGAIN ? AGAIN : 0;
	}
	int ms = timeout_ms < 0 || timeout_ms > NO_RING_MS ? NO_RING_MS : timeout_ms;
	struct timespec pause = {.tv_nsec = (long)ms * 1000000};
	(void)nanosleep(&pause, NULL); /* woken early: looks early */
	return 0;
}
