/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events that a change gives to a watch: by the states before and after it, each inside or
 * outside of the watch's selectors.
 *
 *	before     after              event
 *	outside    inside             ADDED
 *	inside     inside             MODIFIED
 *	inside     outside, deleted   DELETED: the last state that was inside, under the RV of the change
 *	outside    outside, deleted   none
 *
 * A relist is a bracket of records. A watch gets only its net effect for each object: what an
 * abandoned list added and the next one did not find is no event.
 */
#include "serve/answer/answer_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/hash.h"

#define EVENT_HASH_SEED 0x6576656eu

int answer_event(
	struct answer_encoder *encoder, const struct answer_change *change, struct buf *out)
{
	const struct answer_request *request = encoder->request;
	const struct record *old = change->old, *new = change->new;
	struct bytes key = new ? new->key : old ? old->key : BYTES_NONE;
	struct bytes prefix = buf_bytes(&request->key);

	if (!bytes_starts(key, prefix))
		return 0;
	int before = old ? answer_matches(request, old->body) : 0;
	int after = before < 0 ? before : new ? answer_matches(request, new->body) : 0;
	if (after < 0)
		return after;
	if (!before && !after)
		return 0;
	struct bytes last = change->last.size ? change->last : before ? old->body : BYTES_NONE;
	int r = after ? answer_encode_event(
				encoder, before ? "MODIFIED" : "ADDED", new->body, BYTES_NONE, out)
		      : answer_encode_event(encoder, "DELETED", last, change->rv, out);

	return r < 0 ? r : 1;
}

/* ---- one record --------------------------------------------------------- */

int answer_event_read(const struct answer_request *request, uint64_t seq, struct record *ret_record)
{
	int r = snapshot_version(request->worker->snapshot, seq, ret_record);

	if (r == ERR_CORRUPT) {
		err_ignore(r, "it was reported, and the client lists again");
		return LAPPED;
	}
	return r == FOUND && ret_record->feed != request->feed->id ? LAPPED
	       : r == NOT_FOUND                                    ? LAPPED
								   : r;
}

int answer_event_record(struct answer_encoder *encoder, const struct record *record,
	struct bytes last_rv, struct buf *out)
{
	const struct answer_request *request = encoder->request;
	const struct api_options *o = &request->options;
	bool unknown = record->flags & RECORD_FINAL_STATE_UNKNOWN;
	struct answer_change change = {.rv = unknown ? last_rv : record->rv};
	bool is_version = record_is_version(record->type);
	struct record old;
	int r;

	if (!bytes_starts(record->key, buf_bytes(&request->key)))
		return 0;
	/* Without selectors it is enough that there is a previous version: it is not read. */
	if (is_version && !o->labels && !o->fields) {
		r = answer_encode_event(encoder, record->prev ? "MODIFIED" : "ADDED", record->body,
			BYTES_NONE, out);
		return r < 0 ? r : 1;
	}
	if (record->prev) {
		r = answer_event_read(request, record->prev, &old);
		if (r != 0)
			return r;
		change.old = &old;
	}
	change.new = is_version ? record : NULL;
	if (!is_version)
		change.last = record->body;
	return answer_event(encoder, &change, out);
}

/* ---- relists ------------------------------------------------------------ */

/* A record of the bracket. */
struct bracket_record {
	uint64_t hash; /* of its key */
	uint64_t seq, prev;
	timeline_rv rv;
	uint8_t type;
};

static int bracket_by_object(const void *a, const void *b)
{
	const struct bracket_record *x = a, *y = b;

	return x->hash != y->hash ? (x->hash > y->hash ? 1 : -1)
				  : (x->seq > y->seq) - (x->seq < y->seq);
}

static int bracket_by_order(const void *a, const void *b)
{
	const struct answer_row *x = a, *y = b;
	bool x_gone = !x->new_seq, y_gone = !y->new_seq;

	if (x_gone != y_gone)
		return x_gone ? -1 : 1;
	if (!x_gone && x->rv != y->rv)
		return x->rv > y->rv ? 1 : -1;
	uint64_t s = x->new_seq ? x->new_seq : x->old_seq, t = y->new_seq ? y->new_seq : y->old_seq;
	return (s > t) - (s < t);
}

static int bracket_add(
	struct answer_bracket *bracket, uint64_t old_seq, uint64_t new_seq, timeline_rv rv)
{
	const struct answer_row row = {old_seq, new_seq, rv};

	return ARRAY_ADD(bracket->rows, bracket->n, bracket->room, row, "a relist");
}

/* Adds the net effect of the records FIRST to LAST, which are of one object. */
static int bracket_reduce(struct answer_bracket *bracket, const struct bracket_record *first,
	const struct bracket_record *last)
{
	uint64_t before = first->type == RECORD_ADDED ? 0 : first->prev;
	bool is_gone = last->type == RECORD_DELETED, replaced = false;
	int r = 0;

	for (const struct bracket_record *record = first; record < last; record++)
		replaced |= record->type == RECORD_DELETED;
	if (before && (is_gone || replaced))
		r = bracket_add(bracket, before, 0, 0);
	if (r == 0 && !is_gone)
		r = bracket_add(bracket, replaced ? 0 : before, last->seq, last->rv);
	return r;
}

static int bracket_collect(struct answer_request *request, uint64_t begin, uint64_t end,
	struct bracket_record **ret_records, size_t *ret_n)
{
	CLEANUP(journal_walk_close) struct journal_walk *log = NULL;
	struct snapshot *snapshot = request->worker->snapshot;
	struct bracket_record *records = NULL;
	struct record record;
	size_t n = 0, room = 0;
	int r = snapshot_open_walk(snapshot, begin, &log);

	while (r == 0 && (r = journal_walk_next(log, &record)) == FOUND && record.seq <= end) {
		struct bracket_record found = {hash_bytes(record.key, EVENT_HASH_SEED), record.seq,
			record.prev, 0, record.type};

		if (record.feed != request->feed->id || !record_is_change(record.type))
			continue;
		(void)timeline_rv_parse(record.rv, &found.rv);
		r = n == ANSWER_BRACKET_MAX ? LAPPED
					    : ARRAY_ADD(records, n, room, found, "a relist");
	}
	if (r == ERR_CORRUPT && (r = snapshot_result(snapshot, r)) == ERR_CORRUPT) {
		err_ignore(r, "the client lists again");
		r = LAPPED;
	}
	*ret_records = records;
	*ret_n = n;
	return r == END || r == FOUND ? 0 : r;
}

void answer_bracket_free(struct answer_bracket **bracket)
{
	struct answer_bracket *b = TAKE(*bracket);

	if (!b)
		return;
	free(b->rows);
	free(b);
}

int answer_bracket_load(struct answer_request *request, const struct timeline_entry *entry,
	struct answer_bracket **ret_bracket)
{
	CLEANUP(answer_bracket_free) struct answer_bracket *bracket = calloc(1, sizeof(*bracket));
	AUTO_FREE struct bracket_record *records = NULL;
	size_t n;

	if (!bracket)
		return err_set(-ENOMEM, "a relist");
	bracket->entry = *entry;
	int r = bracket_collect(request, entry->begin, entry->seq, &records, &n);
	serve_worker_freed(
		request->worker->worker, n * (sizeof(*records) + sizeof(*bracket->rows)));
	if (r == 0 && n)
		qsort(records, n, sizeof(*records), bracket_by_object);
	for (size_t i = 0, last; r == 0 && i < n; i = last + 1) {
		for (last = i; last + 1 < n && records[last + 1].hash == records[i].hash;)
			last++;
		r = bracket_reduce(bracket, &records[i], &records[last]);
	}
	if (r == 0 && bracket->n)
		qsort(bracket->rows, bracket->n, sizeof(*bracket->rows), bracket_by_order);
	if (r == 0)
		*ret_bracket = TAKE(bracket);
	return r;
}

int answer_bracket_next(struct answer_encoder *encoder, struct answer_bracket *bracket,
	char last_rv[TIMELINE_RV_SIZE], struct buf *out)
{
	const struct answer_row *row = &bracket->rows[bracket->next];
	struct answer_change change = {.rv = bytes_str(last_rv)};
	struct record old, new;
	int r = 0;

	if (row->old_seq)
		r = answer_event_read(encoder->request, row->old_seq, &old);
	if (r == 0 && row->new_seq)
		r = answer_event_read(encoder->request, row->new_seq, &new);
	if (r != 0)
		return r;
	change.old = row->old_seq ? &old : NULL;
	change.new = row->new_seq ? &new : NULL;
	if (row->new_seq)
		change.rv = new.rv;
	r = answer_event(encoder, &change, out);
	if (r < 0)
		return r;
	bracket->next++;
	return r;
}
