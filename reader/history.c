/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the retained history of one key, or of whole feeds, by one walk over the log above the
 * horizon. Following the records' `prev` instead would stop at a deletion, and miss an earlier
 * object of the same key.
 */
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "reader/handle.h"

struct history {
	struct kinf_snapshot *snapshot;
	const struct feed_set *set;
	struct bytes key;
	kinf_change_fn *fn;
	void *arg;
	bool given;
};

static void history_fill(
	const struct record *record, const struct record *object, struct kinf_change *ret_change)
{
	*ret_change = (struct kinf_change){
		.type = record_type_name(record->type),
		.event = record->seq,
		.time_ns = record->time_ns,
		.final_state_unknown = (record->flags & RECORD_FINAL_STATE_UNKNOWN) != 0,
	};
	object_from_record(object, &ret_change->object);
}

static int history_give(struct history *h, const struct record *record, const struct record *object)
{
	struct kinf_change change;

	h->given = true;
	history_fill(record, object, &change);
	return h->fn(h->arg, &change);
}

/* Steps on. The past ends with its event. */
static int history_next(
	const struct kinf_snapshot *snapshot, struct journal_walk *log, struct record *ret_record)
{
	int r = journal_walk_next(log, ret_record);

	return r == FOUND && snapshot->at_event && ret_record->seq > snapshot->at_event ? END : r;
}

/* Returns the feed of SET with RECORD as a visible version, or NULL. */
static const struct snapshot_feed *history_feed(
	const struct feed_set *set, const struct record *record)
{
	if (record->type > RECORD_DELETED)
		return NULL;
	for (size_t i = 0; i < set->n; i++)
		if (set->feeds[i].definition.id == record->feed)
			return record->seq <= set->feeds[i].visible ? &set->feeds[i] : NULL;
	return NULL;
}

/* Gives the changes; before the first one the state from before the log. */
static int history_walk(struct history *h)
{
	CLEANUP(journal_walk_close) struct journal_walk *log = NULL;
	struct snapshot *snapshot = h->snapshot->snapshot;
	struct record record;
	int r = snapshot_open_walk(snapshot, snapshot_horizon(snapshot) + 1, &log);

	while (r == 0 && (r = history_next(h->snapshot, log, &record)) == FOUND) {
		struct record before;

		if (!bytes_equal(record.key, h->key) || !history_feed(h->set, &record))
			continue;
		r = snapshot_before(snapshot, &record, &before);
		if (r == FOUND && !h->given && before.seq)
			r = history_give(h, &before, &before);
		if (r == FOUND)
			r = history_give(h, &record, record.body.size ? &record : &before);
		if (r != 0)
			return r;
	}
	return r == END ? 0 : r;
}

int kinf_history(struct kinf_snapshot *snapshot, const char *feed, const char *namespace_,
	const char *name, kinf_change_fn *fn, void *arg)
{
	CHECK_OBJ(snapshot, KINF_SNAPSHOT_MAGIC);
	struct history history = {.snapshot = snapshot, .fn = fn, .arg = arg};
	char text[JOURNAL_KEY_MAX];
	struct record record;
	int r = kinf_held(snapshot);

	if (r == 0)
		r = feed_set_get_named(snapshot, feed, &history.set);
	if (r == 0)
		r = key_join(namespace_, name, text, &history.key);
	if (r == 0)
		r = history_walk(&history);
	if (r != 0 || history.given)
		return kinf_result_of(snapshot, r);
	/* The object has not changed since: its present state. */
	r = feed_set_find(snapshot, history.set, history.key, &record);
	if (r == FOUND)
		r = history_give(&history, &record, &record);
	return kinf_result_of(snapshot, r);
}

int history_log(struct kinf_snapshot *snapshot, const char *feed, uint64_t *from, size_t limit,
	history_log_fn *fn, void *arg)
{
	CHECK_OBJ(snapshot, KINF_SNAPSHOT_MAGIC);
	CLEANUP(journal_walk_close) struct journal_walk *log = NULL;
	struct snapshot *state = snapshot->snapshot;
	uint64_t begin = snapshot_horizon(state) + 1;
	const struct feed_set *set;
	struct record record;
	int r = kinf_held(snapshot);

	if (r == 0)
		r = feed_set_get(snapshot, feed, &set);
	if (r == 0)
		r = snapshot_open_walk(state, *from > begin ? *from : begin, &log);
	while (r == 0 && (r = history_next(snapshot, log, &record)) == FOUND) {
		const struct snapshot_feed *of = history_feed(set, &record);
		struct kinf_object old;
		struct kinf_change change;
		struct record before;

		*from = record.seq;
		if (limit-- == 0)
			return AGAIN;
		if (!of)
			continue;
		r = snapshot_before(state, &record, &before);
		if (r < 0)
			break;
		history_fill(&record, record.body.size ? &record : &before, &change);
		if (before.seq)
			object_from_record(&before, &old);
		r = fn(arg, of, &change, before.seq ? &old : NULL);
	}
	return kinf_result_of(snapshot, r == END ? 0 : r);
}
