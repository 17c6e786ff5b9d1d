/* SPDX-License-Identifier: Apache-2.0 */
/* Lists: the bracket, the seen items, and the deletion of the others (record.h). */
#include "reflector/record/record_internal.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "reflector/record/recorder.h"

#define SLICE_HEADS 4096 /* read in one slice */
#define MISSING_MAX 512  /* found in one slice */

/* ---- seen items --------------------------------------------------------- */

/* Sorts, and keeps each seq once: servers may list an object as often as they like. */
static void record_sort_seen(struct record_feed *feed)
{
	size_t n = 0;

	if (!feed->n_seen)
		return;
	qsort(feed->seen, feed->n_seen, sizeof(*feed->seen), array_by_number);
	for (size_t i = 0; i < feed->n_seen; i++)
		if (!n || feed->seen[n - 1] != feed->seen[i])
			feed->seen[n++] = feed->seen[i];
	feed->n_seen = n;
}

/* Remembers the list's object by its head at SEQ. Heads written by this attempt are known by their
 * seq. */
static int record_remember(struct record_feed *feed, uint64_t seq)
{
	int r = 0;

	if (seq >= feed->attempt_seq)
		return 0;
	if (feed->n_seen == feed->seen_room) {
		record_sort_seen(feed);
		/* Half of the room stays free: duplicates do not make every item sort. */
		if (feed->n_seen >= feed->seen_room / 2)
			r = ARRAY_ROOM(feed->seen, feed->n_seen, feed->seen_room,
				feed->seen_room - feed->n_seen + 1, "the items of a list");
	}
	if (r < 0)
		return recorder_fail(feed->recorder, r);
	feed->seen[feed->n_seen++] = seq;
	return 0;
}

static int record_walk_slice(
	struct record_feed *feed, struct buf *at, record_head_fn *fn, void *arg)
{
	struct journal *journal = recorder_journal(feed->recorder);
	CLEANUP(head_walk_close) struct head_walk *walk = NULL;
	struct bytes key = BYTES_NONE;
	struct head head;
	bool more = true;
	int r = head_walk_open(journal_txn(journal), feed->id, buf_bytes(at), &walk);

	if (!feed->sorted)
		record_sort_seen(feed);
	feed->sorted = true;
	for (size_t i = 0; r >= 0 && i < SLICE_HEADS && more; i++) {
		r = head_walk_next(walk, &key, &head);
		if (r != FOUND)
			return r == END ? 0 : r;
		bool was_seen = head.seq >= feed->attempt_seq ||
				(feed->n_seen && bsearch(&head.seq, feed->seen, feed->n_seen,
							 sizeof(head.seq), array_by_number));
		more = fn(arg, key, &head, was_seen);
	}
	if (r < 0)
		return r;
	buf_reset(at);
	buf_bytes_put(at, key);
	buf_byte(at, '\0'); /* the first key after this one */
	r = buf_error(at);
	return r < 0 ? r : AGAIN;
}

int record_walk_heads(struct record_feed *feed, struct buf *at, record_head_fn *fn, void *arg)
{
	int r = recorder_begin(feed->recorder);

	if (r < 0)
		return r;
	r = record_walk_slice(feed, at, fn, arg);
	return r < 0 ? recorder_fail(feed->recorder, r) : r;
}

static void record_forget_seen(struct record_feed *feed)
{
	free(feed->seen);
	feed->seen = NULL;
	feed->n_seen = feed->seen_room = 0;
	buf_reset(&feed->reconcile_at);
	feed->sorted = false;
	feed->attempt_seq = UINT64_MAX;
}

/* ---- the bracket -------------------------------------------------------- */

static int record_open_bracket(struct record_feed *feed)
{
	/* The RV of the state before the list: a watcher at this RV can get the list as changes. */
	struct record record = {
		.feed = feed->id, .type = RECORD_LIST_BEGIN, .rv = buf_bytes(&feed->rv)};

	if (feed->list_begin)
		return 0;
	int r = recorder_append(feed->recorder, &record, &feed->list_begin);
	feed->list_ns = proc_realtime_ns();
	feed->list_mono_ns = proc_monotonic_ns();
	return r;
}

int record_list_begin(struct record_feed *feed)
{
	record_forget_seen(feed);
	feed->attempt = true;
	feed->items = feed->added = 0;
	record_clear_passed(feed);
	/* A first list has a bracket even if it is empty; a relist only if it differs. */
	return feed->listed ? 0 : record_open_bracket(feed);
}

static int record_take_item(
	struct record_feed *feed, const struct arrival *arrival, struct bytes item)
{
	uint64_t seq;
	int r;

	if (arrival->has_head && record_same_uid(arrival) &&
		bytes_equal(arrival->head.rv, arrival->identity.rv)) {
		r = record_compare(feed, arrival, item);
		if (r != RECORD_DIFFERS)
			return r == RECORD_TAKEN ? record_remember(feed, arrival->head.seq) : r;
	}
	r = record_open_bracket(feed);
	if (r >= 0)
		r = record_append_version(feed, arrival, item, &seq);
	feed->added += r == RECORD_TAKEN && !arrival->has_head;
	if (r == RECORD_TAKEN && seq < feed->attempt_seq)
		feed->attempt_seq = seq;
	return r;
}

static int record_end_item(
	struct record_feed *feed, const struct arrival *arrival, int r, bool tolerant)
{
	bool stored = r == RECORD_TAKEN;

	r = record_end(feed, arrival, r, tolerant);
	/* The server has the object: the stored version is not deleted. */
	if (r == RECORD_TAKEN && !stored && arrival->has_head)
		r = record_remember(feed, arrival->head.seq);
	return r == RECORD_TAKEN ? recorder_bound(feed->recorder) : r;
}

int record_item(struct record_feed *feed, struct bytes item, bool cut, bool tolerant)
{
	struct arrival arrival;
	int r = record_arrive(feed, item, cut, &arrival);

	feed->items++;
	if (r == RECORD_TAKEN)
		r = record_take_item(feed, &arrival, item);
	return record_end_item(feed, &arrival, r, tolerant);
}

int record_initial(struct record_feed *feed, const struct api_event *event, bool tolerant)
{
	struct arrival arrival;
	int r = record_arrive(feed, event->object, event->cut, &arrival);

	feed->items += event->type == WATCH_ADDED;
	bool deleted = event->type == WATCH_DELETED;
	/* Older than a version in this very list. */
	bool replay = arrival.has_head && arrival.head.seq >= feed->attempt_seq &&
		      record_same_uid(&arrival) &&
		      rv_compare(arrival.identity.rv, arrival.head.rv) == -1;
	if (r == RECORD_UNFIT && deleted) {
		r = record_drop_event(feed); /* the journal does not have it */
	} else if (r == RECORD_TAKEN && (deleted ? !record_is_deletion(&arrival) : replay)) {
		r = record_drop_event(feed);
	} else if (r == RECORD_TAKEN && deleted) {
		r = record_open_bracket(feed);
		if (r >= 0)
			r = record_append_deleted(feed, &arrival, event->object, tolerant);
	} else if (r == RECORD_TAKEN) {
		r = record_take_item(feed, &arrival, event->object);
	}
	return record_end_item(feed, &arrival, r, tolerant);
}

/* ---- reconciling -------------------------------------------------------- */

/* Objects missing in the list, copied out of the walk: deleting invalidates its pointers. */
struct missing {
	struct buf text; /* per object: u16 key size, u16 uid size, key, uid */
	size_t n;
};

static bool record_put_missing(void *arg, struct bytes key, const struct head *head, bool seen)
{
	struct missing *missing = arg;
	uint8_t sizes[4];

	if (seen)
		return true;
	le16_put(sizes, (uint16_t)key.size);
	le16_put(sizes + 2, (uint16_t)head->uid.size);
	buf_put(&missing->text, sizes, sizeof(sizes));
	buf_bytes_put(&missing->text, key);
	buf_bytes_put(&missing->text, head->uid);
	return ++missing->n < MISSING_MAX;
}

/* Deletes a slice of the objects missing in the list. Returns: AGAIN, 0 after the last head, or an
 * error. */
static int record_reconcile(struct record_feed *feed, struct bytes rv)
{
	struct missing missing = {.text = BUF_INIT};
	int r = record_walk_heads(feed, &feed->reconcile_at, record_put_missing, &missing),
	    deleted = 0;

	if (r >= 0 && buf_error(&missing.text) < 0)
		r = recorder_fail(feed->recorder, buf_error(&missing.text));
	const uint8_t *p = missing.text.data;
	for (size_t i = 0; r >= 0 && deleted >= 0 && i < missing.n; i++) {
		struct bytes key = BYTES(p + 4, le16_get(p));
		struct bytes uid = BYTES(p + 4 + key.size, le16_get(p + 2));
		struct record record = {.feed = feed->id,
			.type = RECORD_DELETED,
			.flags = RECORD_FINAL_STATE_UNKNOWN,
			.key = key,
			.uid = uid,
			.rv = rv};
		uint64_t seq;

		p += 4 + key.size + uid.size;
		deleted = record_open_bracket(feed);
		if (deleted >= 0)
			deleted = recorder_append(feed->recorder, &record, &seq);
	}
	buf_release(&missing.text);
	return deleted < 0 ? deleted : r;
}

static int record_close_bracket(struct record_feed *feed, struct bytes rv, uint8_t flags)
{
	struct record record = {
		.feed = feed->id, .type = RECORD_LIST_END, .flags = flags, .rv = rv};
	uint64_t seq;

	if (!feed->list_begin)
		return 0;
	int r = recorder_append(feed->recorder, &record, &seq);
	feed->list_begin = 0;
	if (!(flags & RECORD_ABANDONED))
		feed->list_ns = 0;
	return r;
}

int record_list_end(struct record_feed *feed, struct bytes rv)
{
	int r = record_reconcile(feed, rv);

	if (r == AGAIN) {
		r = recorder_bound(feed->recorder);
		return r < 0 ? r : AGAIN;
	}
	/* After an abandoned list the next one needs a bracket, even an empty one. */
	if (r >= 0 && feed->list_ns)
		r = record_open_bracket(feed);
	if (r >= 0)
		r = record_close_bracket(feed, rv, 0);
	if (r < 0)
		return r;
	r = record_store_passed(feed);
	if (r < 0)
		return r;
	feed->phase = FEED_SYNCED;
	feed->listed = true;
	feed->attempt = false;
	/* Also to an older RV: the list is the truth. */
	buf_reset(&feed->rv);
	buf_bytes_put(&feed->rv, rv);
	recorder_touch(feed->recorder, feed);
	record_forget_seen(feed);
	return 0;
}

int record_has_objects(struct record_feed *feed)
{
	struct journal *journal = recorder_journal(feed->recorder);
	CLEANUP(head_walk_close) struct head_walk *walk = NULL;
	struct bytes key;
	struct head head;
	int r = recorder_begin(feed->recorder);

	if (r >= 0)
		r = head_walk_open(journal_txn(journal), feed->id, BYTES_NONE, &walk);
	if (r >= 0)
		r = head_walk_next(walk, &key, &head);
	return r < 0 ? recorder_fail(feed->recorder, r) : r == FOUND;
}

int record_list_abandon(struct record_feed *feed)
{
	int r = recorder_begin(feed->recorder);

	return r < 0 ? r : record_close_bracket(feed, BYTES_NONE, RECORD_ABANDONED);
}
