/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow_next() is one loop over four states:
 *
 *	IDLE	holds nothing: takes a snapshot and begins a pass
 *	PASS	reads the log from the smallest position to visible(feed) and gives new changes
 *	RANGE	reads a feed's objects by name, from the key after the last one: the initial state,
 *		or a resync
 *	LIVE	takes entries of the delta ring and reads their records from the journal
 *
 * Changes come from the journal alone, so a follower goes on while the index is rebuilt or no
 * processor runs. Only RANGE reads the index, in a snapshot of both. If the index is behind the
 * log, the pass before a range ends at the index, and the pass after the last range finds the rest.
 * Before the end of a feed's initial state a pass gives only changes of keys already given: the
 * range shows the others as they are in the same snapshot. During a resync it gives all. A snapshot
 * held for long is renewed, and a pass comes first.
 */
#include "store/read/follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "store/read/follow_internal.h"

#define DEFAULT_HOLD_NS (50 * UINT64_C(1000000))
#define NO_RING_MS      50 /* between two passes when there is no ring */
/* changes of other feeds wait for as long, while the index is waited for */
#define INDEX_WAIT_MS 10

static int follow_compare_ids(const void *a, const void *b)
{
	const struct follow_id *x = a, *y = b;

	return (x->feed > y->feed) - (x->feed < y->feed);
}

bool follow_find(const struct follow *f, uint32_t feed, size_t *ret_i)
{
	const struct follow_id *id = ARRAY_FIND(f->ids, f->n, .feed, feed);

	*ret_i = id ? id->i : 0;
	return id != NULL;
}

/* ---- making and freeing ------------------------------------------------- */

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
	*f = (struct follow){
		.magic = FOLLOW_MAGIC, .store = store, .state = FOLLOW_IDLE, .n = n_feeds};
	f->not_before = options->not_before;
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
	names_close(&f->names);
	for (size_t i = 0; f->feeds && i < f->n; i++)
		buf_release(&f->feeds[i].given);
	ring_detach(&f->ring);
	taken_detach(&f->taken);
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

bool follow_awaits_index(const struct follow *follow)
{
	return follow->awaits_index;
}

const uint8_t *follow_uuid(const struct follow *follow)
{
	return follow->uuid;
}

/* ---- the loop ----------------------------------------------------------- */

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
	if (f->held) /* a copy written meanwhile makes the item wrong */
		r = r == FOUND ? snapshot_check(f->snapshot) : snapshot_result(f->snapshot, r);
	if (r == FOUND) {
		err_ignore(failpoint_pass(FAILPOINT_FOLLOW_ITEM), "a test stops here");
		return FOUND;
	}
	int released = follow_rest(f);
	return released < 0 ? released : r;
}

int follow_checked(const struct follow *follow, int r)
{
	CHECK_OBJ(follow, FOLLOW_MAGIC);
	return follow->held ? snapshot_made(follow->snapshot, r) : r;
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
	if (follow->awaits_index) {
		store_wait_index(follow->store, &follow->taken,
			timeout_ms < 0 || timeout_ms > INDEX_WAIT_MS ? INDEX_WAIT_MS : timeout_ms);
		return 0;
	}
	if (follow->ring)
		return ring_wait(follow->ring, timeout_ms) == AGAIN ? AGAIN : 0;
	int ms = timeout_ms < 0 || timeout_ms > NO_RING_MS ? NO_RING_MS : timeout_ms;
	const struct timespec pause = {.tv_nsec = (long)ms * 1000000};
	(void)nanosleep(&pause, NULL); /* a signal may end it early */
	return 0;
}
