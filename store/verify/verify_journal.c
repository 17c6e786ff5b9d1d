/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the journal by itself: one pass over the log, one over the heads. */
#include "store/verify/verify_internal.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/value.h"

#define KEY(record) BYTES_ARG((record)->key)
/* unreadable records: a damaged tree may give the same one forever */
#define BAD_MAX 100

/* ---- versions ----------------------------------------------------------- */

static struct verify_version *verify_find_version(struct verify *v, uint64_t seq)
{
	return ARRAY_FIND(v->versions, v->n_versions, .seq, seq);
}

static void verify_follow_version(
	struct verify *v, struct verify_version *version, const char *by, uint64_t seq)
{
	if (version->followed)
		verify_fault(v,
			"journal: version %" PRIu64
			" is followed twice, the second time by %s %" PRIu64,
			version->seq, by, seq);
	version->followed = true;
}

/* Checks the version replaced by RECORD: it exists if RECORD is above the horizon, else not. */
static void verify_prev(struct verify *v, const struct record *record)
{
	struct verify_version *prev = record->prev ? verify_find_version(v, record->prev) : NULL;
	struct record before;

	if (record->prev >= record->seq || (record->prev == 0) != (record->type == RECORD_ADDED)) {
		verify_fault(v,
			"journal: %s %" PRIu64 " of '%.*s' has version %" PRIu64 " before it",
			record_type_name(record->type), record->seq, KEY(record), record->prev);
		return;
	}
	if (record->prev == 0)
		return;
	if (record->seq <= v->meta.horizon) {
		if (prev)
			verify_fault(v,
				"journal: version %" PRIu64 " of '%.*s' was replaced by %" PRIu64
				" below the horizon and is still there",
				record->prev, KEY(record), record->seq);
		return;
	}
	int r = journal_get(v->journal, v->journal_txn, record->prev, &before);
	if (r == ERR_CORRUPT) { /* it was reported */
		err_ignore(r, "whether it is of the same object can't be said");
		return;
	}
	if (!prev || r != FOUND) {
		err_ignore(r < 0 ? r : 0, "it is counted as a fault");
		verify_fault(v,
			"journal: version %" PRIu64 " of '%.*s', before %" PRIu64 ", is missing",
			record->prev, KEY(record), record->seq);
		return;
	}
	if (before.feed != record->feed || !bytes_equal(before.key, record->key))
		verify_fault(v, "journal: record %" PRIu64 " of '%.*s' follows one of '%.*s'",
			record->seq, KEY(record), KEY(&before));
	verify_follow_version(v, prev, "record", record->seq);
}

/* ---- lists -------------------------------------------------------------- */

static void verify_feed_record(
	struct verify *v, struct verify_feed *feed, const struct record *record)
{
	bool trimmed = record->prev <= v->meta.horizon;

	if (record->key.size)
		verify_fault(v, "journal: %s %" PRIu64 " has an object key",
			record_type_name(record->type), record->seq);
	switch (record->type) {
	case RECORD_LIST_BEGIN:
		if (feed->list_begin)
			verify_fault(v,
				"journal: feed %u begins list %" PRIu64 " while list %" PRIu64
				" is open",
				feed->id, record->seq, feed->list_begin);
		feed->list_begin = record->seq;
		break;
	case RECORD_LIST_END:
		if (record->prev == 0 || record->prev >= record->seq ||
			(feed->list_begin ? feed->list_begin != record->prev : !trimmed))
			verify_fault(v,
				"journal: feed %u ends list %" PRIu64 " at %" PRIu64
				", open is list %" PRIu64,
				feed->id, record->prev, record->seq, feed->list_begin);
		feed->list_begin = 0;
		break;
	case RECORD_FEED_REMOVED:
		feed->list_begin = 0;
		break;
	default:
		break;
	}
}

/* ---- bodies ------------------------------------------------------------- */

static void verify_text(
	struct verify *v, const struct record *record, const char *member, struct bytes wanted)
{
	struct bytes text = BYTES_NONE;
	int r = value_find_text(record->body, "metadata", member, &text);

	if (r < 0 || !bytes_equal(r == FOUND ? text : BYTES_NONE, wanted))
		verify_fault(v,
			"journal: record %" PRIu64 " of '%.*s': metadata.%s in the body differs",
			record->seq, KEY(record), member);
}

static void verify_body(struct verify *v, const struct record *record)
{
	const char *slash =
		record->key.size ? memrchr(record->key.data, '/', record->key.size) : NULL;
	const char *key = record->key.data;
	size_t namespace_size = slash ? (size_t)(slash - key) : 0;
	size_t name_at = slash ? namespace_size + 1 : 0;

	v->report.bodies++;
	int r = value_verify(record->body);
	if (r < 0) {
		err_ignore(r, "it is counted as a fault");
		verify_fault(v, "journal: the body of record %" PRIu64 " of '%.*s' is damaged",
			record->seq, KEY(record));
		return;
	}
	verify_text(v, record, "uid", record->uid);
	verify_text(v, record, "resourceVersion", record->rv);
	verify_text(v, record, "namespace", BYTES(key, namespace_size));
	verify_text(v, record, "name", BYTES(key + name_at, record->key.size - name_at));
}

/* ---- the log ------------------------------------------------------------ */

static int verify_object(struct verify *v, const struct record *record)
{
	if (record->key.size == 0 || record->key.size > JOURNAL_KEY_MAX)
		verify_fault(v, "journal: record %" PRIu64 " has a key of %zu bytes", record->seq,
			record->key.size);
	if (record->seq <= v->meta.horizon && record->type == RECORD_DELETED)
		verify_fault(v, "journal: deletion %" PRIu64 " of '%.*s' is left below the horizon",
			record->seq, KEY(record));
	const struct verify_feed *feed = verify_feed(v, record->feed);
	/* Compaction leaves out the bodies of a removed feed. */
	if (record_is_version(record->type) && record->body.size == 0 &&
		feed->checkpoint.phase != FEED_REMOVED)
		verify_fault(v, "journal: version %" PRIu64 " of '%.*s' has no body", record->seq,
			KEY(record));
	verify_prev(v, record);
	if (v->options->deep && record->body.size && verify_wants(v, record->feed))
		verify_body(v, record);
	if (!record_is_version(record->type))
		return 0;
	const struct verify_version version = {record->seq, record->feed, false};

	return ARRAY_ADD(v->versions, v->n_versions, v->versions_room, version, "the versions");
}

static int verify_record(struct verify *v, const struct record *record)
{
	struct verify_feed *feed = verify_feed(v, record->feed);

	if (++v->report.records % 256 == 0 && v->options->progress)
		v->options->progress(v->options->arg, v->report.records, "records");
	if (record->seq > v->meta.horizon)
		v->history += record->stored.size;
	if (record->seq >= v->meta.next_seq)
		verify_fault(v, "journal: record %" PRIu64 " is not below next_seq %" PRIu64,
			record->seq, v->meta.next_seq);
	int r = record_check(record);
	if (r < 0) {
		verify_fault(v, "journal: checksum of record %" PRIu64 " of '%.*s' is wrong",
			record->seq, KEY(record));
		err_ignore(r, "it was counted as a fault");
	}
	if (record->type == 0 || record->type >= RECORD_TYPE_MAX) {
		verify_fault(v, "journal: record %" PRIu64 " is of unknown type %u", record->seq,
			record->type);
		return 0;
	}
	if (!feed || !feed->in_journal) {
		/* FEED_REMOVED may outlive the feed's row. */
		if (record->type != RECORD_FEED_REMOVED)
			verify_fault(v, "journal: record %" PRIu64 " is of unknown feed %u",
				record->seq, record->feed);
		return 0;
	}
	if (record->seq > feed->checkpoint.last)
		verify_fault(v,
			"journal: record %" PRIu64 " of feed %u comes after its last, %" PRIu64,
			record->seq, record->feed, feed->checkpoint.last);
	if (record_is_change(record->type))
		return verify_object(v, record);
	if (record->seq <= v->meta.horizon)
		verify_fault(v, "journal: %s %" PRIu64 " is left below the horizon",
			record_type_name(record->type), record->seq);
	verify_feed_record(v, feed, record);
	return 0;
}

static int verify_log(struct verify *v)
{
	CLEANUP(journal_walk_close) struct journal_walk *walk = NULL;
	struct record record;
	uint64_t last = 0;
	int bad = 0, r = journal_walk_open(v->journal_txn, 0, &walk);

	while (r == 0) {
		r = journal_walk_next(walk, &record);
		if (r == FOUND && record.seq <= last) {
			verify_fault(v, "journal: record %" PRIu64 " comes after %" PRIu64,
				record.seq, last);
			return 0; /* a damaged tree could lead back for ever */
		}
		if (r == FOUND) {
			last = record.seq;
			r = verify_record(v, &record);
		} else if (r == ERR_CORRUPT && ++bad < BAD_MAX && journal_walk_seq(walk) > last) {
			last = journal_walk_seq(walk);
			r = verify_failed(v, r, "journal"); /* the next one may be readable */
		}
	}
	v->log_is_cut |= r < 0;
	if (r == ERR_CORRUPT)
		r = err_add(r, "the records after %" PRIu64, last);
	return verify_failed(v, r, "journal: reading the log");
}

/* ---- heads -------------------------------------------------------------- */

static int verify_heads(struct verify *v, const struct verify_feed *feed)
{
	CLEANUP(head_walk_close) struct head_walk *walk = NULL;
	CLEANUP(buf_release) struct buf last = BUF_INIT;
	struct record record;
	struct bytes key;
	struct head head;
	int r = head_walk_open(v->journal_txn, feed->id, BYTES_NONE, &walk);

	while (r == 0) {
		r = head_walk_next(walk, &key, &head);
		if (r != FOUND)
			break;
		if (last.size && bytes_compare(key, buf_bytes(&last)) <= 0) {
			verify_fault(v, "journal: heads of feed %u are not in order", feed->id);
			return 0;
		}
		buf_reset(&last);
		buf_bytes_put(&last, key);
		r = buf_error(&last);
		struct verify_version *version = verify_find_version(v, head.seq);

		v->report.heads++;
		r = journal_get(v->journal, v->journal_txn, head.seq, &record);
		if (!version || r != FOUND) {
			err_ignore(r < 0 ? r : 0, "it is counted as a fault");
			verify_fault(v,
				"journal: the head of '%.*s' names version %" PRIu64
				", which is %s",
				BYTES_ARG(key), head.seq, r == ERR_CORRUPT ? "damaged" : "missing");
			r = 0;
			continue;
		}
		if (record.feed != feed->id || !bytes_equal(record.key, key))
			verify_fault(v,
				"journal: the head of '%.*s' names version %" PRIu64 " of '%.*s'",
				BYTES_ARG(key), head.seq, KEY(&record));
		if (!bytes_equal(record.uid, head.uid) || !bytes_equal(record.rv, head.rv))
			verify_fault(v,
				"journal: uid or resourceVersion in the head of '%.*s' differ from "
				"its version %" PRIu64,
				BYTES_ARG(key), head.seq);
		verify_follow_version(v, version, "the head, version", head.seq);
	}
	v->heads_are_cut |= r < 0;
	return verify_failed(v, r, "journal: reading heads");
}

/* ---- checkpoints -------------------------------------------------------- */

static void verify_checkpoint(struct verify *v, const struct verify_feed *feed)
{
	const struct feed_checkpoint *c = &feed->checkpoint;
	struct record record;

	if (c->phase >= FEED_PHASE_MAX)
		verify_fault(v, "journal: feed %u is in unknown phase %u", feed->id, c->phase);
	/* The LIST_BEGIN of a first list may have been trimmed: it does not hold back the
	 * horizon. */
	if (feed->list_begin != c->list_begin && !v->log_is_cut &&
		!(feed->list_begin == 0 && c->list_begin <= v->meta.horizon && c->first_list == 0))
		verify_fault(v,
			"journal: the checkpoint of feed %u names open list %" PRIu64
			", the log %" PRIu64,
			feed->id, c->list_begin, feed->list_begin);
	if (c->phase == FEED_SYNCED && c->first_list == 0)
		verify_fault(v, "journal: feed %u is synced without a list", feed->id);
	/* The first slice of a removed feed's deletion sets `trimmed` ahead of the horizon. */
	if (c->trimmed > v->meta.horizon && c->phase != FEED_REMOVED)
		verify_fault(v,
			"journal: feed %u is trimmed up to %" PRIu64 ", the horizon is %" PRIu64,
			feed->id, c->trimmed, v->meta.horizon);
	if (c->last >= v->meta.next_seq)
		verify_fault(v,
			"journal: the last record of feed %u, %" PRIu64 ", is still to come",
			feed->id, c->last);
	if (c->first_list >= v->meta.next_seq)
		verify_fault(v,
			"journal: the first list of feed %u ended at %" PRIu64
			", which is still to come",
			feed->id, c->first_list);
	else if (c->first_list > v->meta.horizon &&
		 (journal_get(v->journal, v->journal_txn, c->first_list, &record) != FOUND ||
			 record.type != RECORD_LIST_END || record.feed != feed->id))
		verify_fault(v, "journal: the first list of feed %u did not end at %" PRIu64,
			feed->id, c->first_list);
}

static int verify_add_feeds(struct verify *v)
{
	CLEANUP(feed_walk_release) struct feed_walk walk = {v->journal, v->journal_txn};
	int r;

	while ((r = feed_walk_next(&walk)) == FOUND) {
		struct verify_feed *feed;

		r = verify_feed_add(v, walk.definition.id, &feed);
		if (r < 0)
			return r;
		feed->in_journal = true;
		feed->checkpoint = walk.checkpoint;
		feed->checkpoint.rv = BYTES_NONE; /* borrowed from the walk */
		(void)snprintf(feed->name, sizeof(feed->name), "%s", walk.definition.name);
	}
	return r == END ? 0 : r;
}

int verify_journal(struct verify *v)
{
	int r = verify_failed(v, env_check(journal_env(v->journal)), "journal");

	if (r == 0)
		r = journal_meta(v->journal, v->journal_txn, &v->meta);
	if (r == 0)
		r = verify_add_feeds(v);
	if (r < 0)
		return verify_failed(v, r, "journal: reading what it holds");
	if (v->meta.horizon >= v->meta.next_seq)
		verify_fault(v, "journal: the horizon %" PRIu64 " is not below next_seq %" PRIu64,
			v->meta.horizon, v->meta.next_seq);
	r = verify_log(v);
	if (r == 0 && !v->log_is_cut && v->history != v->meta.history)
		verify_fault(v, "journal: %" PRIu64 " bytes of history are counted as %" PRIu64,
			v->history, v->meta.history);
	for (size_t i = 0; i < v->n_feeds && r == 0; i++)
		if (v->feeds[i].in_journal)
			r = verify_heads(v, &v->feeds[i]);
	if (r < 0)
		return r;
	for (size_t i = 0; i < v->n_versions; i++) {
		const struct verify_version *version = &v->versions[i];
		const struct verify_feed *feed = verify_feed(v, version->feed);

		/* The versions and heads of a removed feed are deleted in slices. */
		if (!version->followed && !v->log_is_cut && !v->heads_are_cut && feed &&
			feed->checkpoint.phase != FEED_REMOVED)
			verify_fault(v,
				"journal: version %" PRIu64 " of feed %u is neither the newest of "
				"its object nor replaced",
				version->seq, version->feed);
	}
	for (size_t i = 0; i < v->n_feeds; i++)
		if (v->feeds[i].in_journal)
			verify_checkpoint(v, &v->feeds[i]);
	return 0;
}
