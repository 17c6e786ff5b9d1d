/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the retained history of one key by one walk over the log above the horizon. Following the
 * records' `prev` instead would stop at a deletion, and miss an earlier object of the same key.
 */
#include <errno.h>
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

static int history_give(struct history *h, const struct record *record, const struct record *object)
{
	struct kinf_change change = {
		.type = record_type_name(record->type),
		.event = record->seq,
		.time_ns = record->time_ns,
		.final_state_unknown = (record->flags & RECORD_FINAL_STATE_UNKNOWN) != 0,
	};

	h->given = true;
	object_from_record(object, &change.object);
	return h->fn(h->arg, &change);
}

static bool history_is_of_object(const struct history *h, const struct record *record)
{
	if (record->type > RECORD_DELETED || !bytes_equal(record->key, h->key))
		return false;
	for (size_t i = 0; i < h->set->n; i++)
		if (h->set->feeds[i].definition.id == record->feed)
			return record->seq <= h->set->feeds[i].visible;
	return false;
}

/* Gives the changes; before the first one the state from before the log. */
static int history_walk(struct history *h)
{
	CLEANUP(journal_walk_close) struct journal_walk *log = NULL;
	struct snapshot *snapshot = h->snapshot->snapshot;
	struct record record;
	int r = journal_walk_open(snapshot_journal(snapshot), snapshot_journal_txn(snapshot),
		snapshot_horizon(snapshot) + 1, &log);

	while (r == 0 && (r = journal_walk_next(log, &record)) == FOUND) {
		struct record before = {0};

		if (!history_is_of_object(h, &record))
			continue;
		if (record.prev)
			r = snapshot_version(snapshot, record.prev, &before);
		if (r == NOT_FOUND)
			return err_say(ERR_CORRUPT, "record %llu: the version before it, %llu, is missing",
				(unsigned long long)record.seq, (unsigned long long)record.prev);
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
		r = feed_set_get(snapshot, feed, &history.set);
	if (r == 0)
		r = key_join(namespace_, name, text, &history.key);
	if (r == 0)
		r = history_walk(&history);
	if (r != 0 || history.given)
		return kinf_result(snapshot->kinf, r);
	/* The object has not changed since: its present state. */
	r = NOT_FOUND;
	for (size_t i = 0; r == NOT_FOUND && i < history.set->n; i++)
		if (history.set->feeds[i].visible)
			r = snapshot_get(snapshot->snapshot, history.set->feeds[i].definition.id,
				history.key, &record);
	if (r == FOUND)
		r = history_give(&history, &record, &record);
	return kinf_result(snapshot->kinf, r);
}
