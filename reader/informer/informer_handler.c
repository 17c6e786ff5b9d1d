/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One handler: its walk through the log, and the callback for each item.
 *
 * After a lapse the walk begins again with the initial state. Without keys the handler gets
 * on_lapped and all objects as initial ones. With keys it gets the differences: a replay compares
 * the initial state with the keys, and at its SYNC the missing keys are reported as deleted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "reader/handled.h"
#include "reader/informer/informer.h"

/* ---- making and freeing ------------------------------------------------- */

static int handler_copy_options(struct kinf_handler *h, const struct kinf_handler_options *options)
{
	if (!options)
		return err_say(-EINVAL, "the kinf_handler_options are NULL");
	int r = kinf_check_size("kinf_handler_options", options->size, sizeof(*options));
	if (r < 0)
		return r;
	if (options->flags & ~(uint32_t)KINF_OWN_RESYNC)
		return err_set(
			ERR_UNSUPPORTED, "kinf_handler_options with flags %x", options->flags);
	h->options = *options;
	h->options.filter = NULL;
	if (!options->filter)
		return 0;
	struct kinf_query query = *options->filter;
	r = kinf_check_size("kinf_query", query.size, sizeof(query));
	if (r < 0)
		return r;
	query.feed = h->informer->feed;
	query.continue_token = query.sort_by = NULL;
	h->filtered = true;
	return filter_init(&h->filter, &query);
}

int handler_new(struct kinf_informer *informer, const struct kinf_handler_options *options,
	struct kinf_handler **ret_handler)
{
	CLEANUP(handler_free) struct kinf_handler *h = calloc(1, sizeof(*h));

	if (!h)
		return err_set(-ENOMEM, "handler");
	h->magic = KINF_HANDLER_MAGIC;
	h->informer = informer;
	h->early = !informer->started;
	int r = handler_copy_options(h, options);
	if (r == 0 && informer->flags & KINF_TRACK_KEYS)
		r = handler_keys_new(&h->keys);
	h->keys_known = true;
	if (r == 0)
		*ret_handler = TAKE(h);
	return r;
}

void handler_free(struct kinf_handler **handler)
{
	if (!handler || !*handler)
		return;
	struct kinf_handler *h = TAKE(*handler);

	CHECK_OBJ(h, KINF_HANDLER_MAGIC);
	follow_free(&h->follow);
	handler_keys_free(&h->keys);
	if (h->filtered)
		filter_release(&h->filter);
	h->magic = 0;
	free(h);
}

int handler_find_indexes(struct kinf_handler *h)
{
	CLEANUP(kinf_snapshot_close) struct kinf_snapshot *snapshot = NULL;
	const struct feed_set *set;

	if (!h->filtered || h->has_indexes)
		return 0;
	/* A snapshot of its own: the informer's may be in use, if a callback adds this handler. */
	int r = kinf_snapshot_take(h->informer->kinf, &snapshot);
	if (r == 0)
		r = feed_set_get(snapshot, h->informer->feed, &set);
	if (r == FOUND)
		r = filter_find_indexes(&h->filter, snapshot->snapshot, set->feeds, set->n);
	h->has_indexes = r == 0;
	return r;
}

/* ---- beginning, and beginning again ------------------------------------- */

int handler_begin(struct kinf_handler *h)
{
	struct kinf_informer *informer = h->informer;
	struct follow_options options = {0};
	int r = NOT_FOUND;

	if (h->early) {
		r = informer_cursor_begin(informer, &options);
		h->informed |= r != NOT_FOUND; /* perhaps by an earlier process */
		h->lapse_owed = r == LAPPED;
		h->keys_known = r == NOT_FOUND;
		h->early = false;
	}
	if (r < 0)
		return r;
	options.journal = informer->journal;
	h->sync_owed = options.from != NULL;
	if (memcmp(h->journal, informer->journal, sizeof(h->journal)) != 0)
		h->newest = 0;
	options.not_before = h->newest;
	memcpy(h->journal, informer->journal, sizeof(h->journal));
	return follow_new(
		informer->kinf->store, informer->feeds, informer->n_feeds, &options, &h->follow);
}

void handler_lapse(struct kinf_handler *h)
{
	follow_free(&h->follow);
	h->lapse_owed = h->informed;
	h->reconciling = h->resync_owed = h->filling = h->sync_owed = false;
}

int handler_fail(struct kinf_handler *h, int error)
{
	h->informed = true;
	h->keys_known = false;
	handler_lapse(h);
	return error;
}

/* ---- callbacks ---------------------------------------------------------- */

static void handler_call_add(
	struct kinf_handler *h, const struct record *record, bool initial, bool *ret_called)
{
	struct kinf_object object;

	*ret_called = h->options.on_add != NULL;
	if (!h->options.on_add)
		return;
	object_from_record(record, &object);
	h->options.on_add(h->options.arg, &object, initial);
}

/* OLD may be NULL. */
static void handler_call_update(struct kinf_handler *h, const struct record *old,
	const struct record *record, bool *ret_called)
{
	struct kinf_object before, object;

	*ret_called = h->options.on_update != NULL;
	if (!h->options.on_update)
		return;
	object_from_record(record, &object);
	if (old)
		object_from_record(old, &before);
	h->options.on_update(h->options.arg, old ? &before : NULL, &object);
}

static void handler_call_delete(
	struct kinf_handler *h, const struct record *record, bool unknown, bool *ret_called)
{
	struct kinf_object object;

	*ret_called = h->options.on_delete != NULL;
	if (!h->options.on_delete)
		return;
	object_from_record(record, &object);
	h->options.on_delete(h->options.arg, &object, unknown);
}

/* ---- items -------------------------------------------------------------- */

static int handler_accepts(struct kinf_handler *h, const struct record *record)
{
	return h->filtered ? filter_accepts(&h->filter, record) : FOUND;
}

/* Notes in the keys whether the handler has the object. Returns: FOUND if it had the object before;
 * NOT_FOUND; -ENOMEM. */
static int handler_note_key(struct kinf_handler *h, const struct record *record, bool is)
{
	uint64_t before;

	if (!h->keys)
		return NOT_FOUND;
	if (is)
		return handler_keys_put(h->keys, record->key, record->seq, &before);
	handler_keys_remove(h->keys, record->key);
	return FOUND;
}

/* An object added during a replay may be one of the handler's from before the lapse: it was missing
 * when the replay passed its key, so the handler was to get a delete at the end. For the handler it
 * is an update then. Objects in neither state are left to reconcile at the end. */
static int handler_give_change(
	struct kinf_handler *h, const struct follow_item *item, bool *ret_called)
{
	const struct record *record = &item->record;
	bool deleted = record->type == RECORD_DELETED;
	bool unknown = (record->flags & RECORD_FINAL_STATE_UNKNOWN) != 0;
	int was = item->old.seq ? handler_accepts(h, &item->old) : NOT_FOUND;
	int is = deleted ? NOT_FOUND : handler_accepts(h, record);

	if (was < 0 || is < 0)
		return was < 0 ? was : is;
	if (was != FOUND && is != FOUND)
		return 0;
	int r = handler_note_key(h, record, is == FOUND);
	if (r < 0)
		return r;
	if (h->replay && was != FOUND && r == FOUND)
		handler_call_update(h, NULL, record, ret_called);
	else if (was == FOUND && is == FOUND)
		handler_call_update(h, &item->old, record, ret_called);
	else if (is == FOUND)
		handler_call_add(h, record, false, ret_called);
	else /* it left the filter, or was found missing: the last known state */
		handler_call_delete(h, deleted && record->body.size ? record : &item->old,
			deleted && unknown, ret_called);
	return 0;
}

static void handler_report_sync(struct kinf_handler *h, bool *ret_called)
{
	h->replay = h->reconciling = false;
	*ret_called = h->options.on_sync != NULL;
	if (h->options.on_sync)
		h->options.on_sync(h->options.arg);
}

/* Sets the thread's newest event: a snapshot of a callback has it. Returns the former one. */
static struct handled handler_set_handled(const struct kinf_handler *h)
{
	struct handled handled = {.event = h->newest};

	memcpy(handled.journal, h->journal, sizeof(handled.journal));
	return handled_set(&handled);
}

static int handler_give(struct kinf_handler *h, const struct follow_item *item, bool *ret_called)
{
	const struct record *record = &item->record;
	uint64_t before;
	int r;

	h->informed = true;
	if (item->kind != FOLLOW_LAPPED && item->shown_at > h->newest)
		h->newest = item->shown_at;
	(void)handler_set_handled(h);
	switch (item->kind) {
	case FOLLOW_INITIAL:
		r = handler_accepts(h, record);
		if (r != FOUND)
			return r == NOT_FOUND ? 0 : r;
		if (h->keys)
			r = handler_keys_put(h->keys, record->key, record->seq, &before);
		if (r < 0)
			return r;
		if (!h->keys || r == NOT_FOUND)
			handler_call_add(h, record, !h->replay, ret_called);
		else if (before != record->seq)
			handler_call_update(h, NULL, record, ret_called);
		return 0;
	case FOLLOW_CHANGE:
		return handler_give_change(h, item, ret_called);
	case FOLLOW_RESYNC:
		r = handler_accepts(h, record);
		if (r == FOUND && h->filling) /* an earlier process gave it to the handler */
			r = handler_note_key(h, record, true);
		else if (r == FOUND)
			handler_call_update(h, &item->old, record, ret_called);
		return r < 0 ? r : 0;
	case FOLLOW_SYNC:
		h->reconcile_at = 0;
		h->reconciling = h->replay;
		if (!h->reconciling)
			handler_report_sync(h, ret_called);
		return 0;
	default:
		return LAPPED;
	}
}

/* Reads an item as handler_next() does. A handler continuing from a position is synced once the
 * position is known to be kept. */
static int handler_walk(struct kinf_handler *h, int *ret_calls)
{
	struct follow_item item;
	bool called = false;

	/* First the resync for the keys after a start from a position, then the user's. */
	if (h->filling && !follow_is_resyncing(h->follow)) {
		h->filling = false;
		h->keys_known = true;
	}
	if (h->keys && !h->keys_known && !h->filling)
		h->filling = follow_resync(h->follow);
	if (h->resync_owed && !h->filling && follow_resync(h->follow))
		h->resync_owed = false;
	int r = follow_next(h->follow, &item);
	if (r == ERR_SNAPSHOT_EXPIRED)
		return handler_fail(h, r);
	if (r != FOUND && r != AGAIN)
		return r;
	if (h->sync_owed && (r == AGAIN || item.kind != FOLLOW_LAPPED)) {
		h->sync_owed = false;
		handler_report_sync(h, &called);
		*ret_calls += called;
		h->informer->left_out = r != AGAIN && h->informer->freed;
		if (r == AGAIN || h->removed || h->informer->freed)
			return FOUND;
		called = false;
	}
	if (r == FOUND)
		r = handler_give(h, &item, &called);
	*ret_calls += called;
	if (r == LAPPED)
		handler_lapse(h);
	if (r < 0) /* perhaps because the object's bytes were taken away meanwhile */
		return handler_fail(h, follow_checked(h->follow, r));
	return r == AGAIN ? AGAIN : FOUND;
}

static int handler_step(struct kinf_handler *h, int *ret_calls)
{
	struct record record = {0};
	bool called = false;

	if (!h->lapse_owed && !h->reconciling)
		return handler_walk(h, ret_calls);
	if (!h->lapse_owed) {
		/* The objects missing from the replay are reported as deleted; at the end, the
		 * sync. */
		if (handler_keys_next_unseen(h->keys, &h->reconcile_at, &record.key) == FOUND)
			handler_call_delete(h, &record, true, &called);
		else
			handler_report_sync(h, &called);
		*ret_calls = called;
		return FOUND;
	}
	h->lapse_owed = false;
	h->replay = h->keys && h->keys_known;
	if (h->replay) {
		handler_keys_begin_replay(
			h->keys, memcmp(h->journal, h->informer->journal, sizeof(h->journal)) == 0);
		return FOUND;
	}
	if (h->keys)
		handler_keys_clear(h->keys);
	h->keys_known = true;
	*ret_calls = h->options.on_lapped != NULL;
	if (h->options.on_lapped)
		h->options.on_lapped(h->options.arg);
	return FOUND;
}

int handler_next(struct kinf_handler *h, int *ret_calls)
{
	CHECK_OBJ(h, KINF_HANDLER_MAGIC);
	*ret_calls = 0;
	/* A callback of another informer may dispatch this one. */
	const struct handled before = handler_set_handled(h);
	int r = handler_step(h, ret_calls);
	(void)handled_set(&before);
	return r;
}

bool handler_is_synced(const struct kinf_handler *h)
{
	return h->follow && follow_synced(h->follow) && !h->reconciling && !h->lapse_owed &&
	       !h->sync_owed;
}
