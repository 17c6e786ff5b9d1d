/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/record/recorder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "reflector/record/object.h"

#define RECORDER_MAGIC 0x52454344u
#define BODY_KEEP      (1u << 20)
#define GATHER_RECORDS 512 /* of lists, before they are committed */
#define GATHER_BYTES   (2u << 20)
#define GATHER_NS      10000000
/* ns of quiet before a change is committed at once */
#define RECORDER_QUIET 1000000

/* A record of the batch, for the ring. */
struct recorder_note {
	struct ring_entry entry;
	size_t key_at; /* in `keys` */
};

struct recorder {
	uint32_t magic;
	int error; /* the batch failed */
	char text[512];
	struct journal *journal;
	struct ring *ring;
	struct doorbell *doorbell; /* NULL: none could be made, and followers use short timers */
	struct stats *stats;
	struct json_parser *parser;
	struct buf body;
	struct recorder_note *notes;
	size_t n_notes;
	uint64_t began_ns; /* when the first of them was appended, monotonic */
	struct buf keys;
	size_t batch_bytes;
	uint64_t last_seq, published_seq;
	uint64_t flushed_ns; /* when a batch was published last, monotonic */
	bool changed;        /* otherwise than by records and checkpoints */
	bool has_changes;    /* a record outside of open lists: readers can use it */
	size_t unannounced;  /* records published without waking anybody, since the last time */
	struct record_feed **touched;
	size_t n_touched, touched_room;
	char rv[RV_MAX];
};

int recorder_new(struct journal *journal, struct ring *ring, struct stats *stats,
	struct recorder **ret_recorder)
{
	CLEANUP(recorder_free) struct recorder *recorder = calloc(1, sizeof(*recorder));

	if (!recorder)
		return err_set(-ENOMEM, "a recorder");
	recorder->magic = RECORDER_MAGIC;
	recorder->journal = journal;
	recorder->ring = ring;
	recorder->stats = stats;
	recorder->notes = calloc(RECORDER_RECORDS_MAX + 8, sizeof(*recorder->notes));
	if (!recorder->notes)
		return err_set(-ENOMEM, "a recorder");
	int r = json_parser_new(&recorder->parser);
	if (r < 0)
		return r;
	*ret_recorder = TAKE(recorder);
	return 0;
}

void recorder_set_doorbell(struct recorder *recorder, struct doorbell *doorbell)
{
	CHECK_OBJ(recorder, RECORDER_MAGIC);
	recorder->doorbell = doorbell;
}

void recorder_free(struct recorder **recorder)
{
	if (!*recorder)
		return;
	CHECK_OBJ(*recorder, RECORDER_MAGIC);
	json_parser_free(&(*recorder)->parser);
	buf_release(&(*recorder)->body);
	buf_release(&(*recorder)->keys);
	free((*recorder)->notes);
	free((*recorder)->touched);
	(*recorder)->magic = 0;
	free(TAKE(*recorder));
}

struct journal *recorder_journal(struct recorder *recorder)
{
	CHECK_OBJ(recorder, RECORDER_MAGIC);
	return recorder->journal;
}

struct stats *recorder_stats(struct recorder *recorder)
{
	return recorder->stats;
}

static void recorder_clear_batch(struct recorder *recorder)
{
	for (size_t i = 0; i < recorder->n_touched; i++)
		recorder->touched[i]->touched = false;
	recorder->n_touched = recorder->n_notes = recorder->batch_bytes = 0;
	recorder->last_seq = 0;
	recorder->changed = recorder->has_changes = false;
	buf_trim(&recorder->keys, BODY_KEEP);
}

int recorder_fail(struct recorder *recorder, int error)
{
	CHECK_OBJ(recorder, RECORDER_MAGIC);
	if (!recorder->error) {
		recorder->error = error;
		snprintf(recorder->text, sizeof(recorder->text), "%s", err_text(error));
		stats_add(recorder->stats, STAT_COMMIT_ERRORS, 1);
	}
	if (journal_txn(recorder->journal))
		journal_abort(recorder->journal);
	recorder_clear_batch(recorder);
	return error;
}

int recorder_parse(struct recorder *recorder, struct bytes object,
	const struct json_options *options, struct bytes *ret_body)
{
	CHECK_OBJ(recorder, RECORDER_MAGIC);
	buf_reset(&recorder->body);
	int r = json_parse(recorder->parser, object, options, &recorder->body);
	if (r == -ENOMEM)
		return recorder_fail(recorder, r);
	if (r < 0)
		return r;
	*ret_body = buf_bytes(&recorder->body);
	return 0;
}

struct bytes recorder_keep_rv(struct recorder *recorder, struct bytes rv)
{
	CHECK_OBJ(recorder, RECORDER_MAGIC);
	REQUIRE(rv.size <= sizeof(recorder->rv));
	memcpy(recorder->rv, rv.data, rv.size);
	return BYTES(recorder->rv, rv.size);
}

int recorder_error(const struct recorder *recorder, const char **ret_text)
{
	CHECK_OBJ(recorder, RECORDER_MAGIC);
	*ret_text = recorder->text;
	return recorder->error;
}

void recorder_recover(struct recorder *recorder)
{
	CHECK_OBJ(recorder, RECORDER_MAGIC);
	recorder->error = 0;
	recorder->text[0] = '\0';
}

void recorder_announce(struct recorder *recorder)
{
	CHECK_OBJ(recorder, RECORDER_MAGIC);
	if (!recorder->error && !journal_txn(recorder->journal) && recorder->ring)
		ring_announce(recorder->ring);
}

int recorder_begin(struct recorder *recorder)
{
	CHECK_OBJ(recorder, RECORDER_MAGIC);
	if (recorder->error)
		return err_say(recorder->error, "%s", recorder->text);
	int r = journal_begin(recorder->journal);
	return r < 0 ? recorder_fail(recorder, r) : 0;
}

/* Keeps a record for the ring. Those beyond the batch's size are left out: a reader reads the log
 * if the ring's last seq is ahead of its entries. */
static int recorder_note(struct recorder *recorder, const struct record *record, uint64_t seq)
{
	size_t key_at = recorder->keys.size;

	recorder->last_seq = seq;
	if (recorder->n_notes == RECORDER_RECORDS_MAX + 8)
		return 0;
	if (!recorder->n_notes)
		recorder->began_ns = proc_monotonic_ns();
	buf_bytes_put(&recorder->keys, record->key);
	if (buf_error(&recorder->keys) < 0)
		return buf_error(&recorder->keys);
	recorder->notes[recorder->n_notes++] = (struct recorder_note){
		.entry = {.seq = seq,
			.feed = record->feed,
			.type = record->type,
			.flags = record->flags,
			.key = BYTES(NULL, record->key.size)},
		.key_at = key_at,
	};
	return 0;
}

static int recorder_commit(struct recorder *recorder);

int recorder_append(struct recorder *recorder, const struct record *record, uint64_t *ret_seq)
{
	uint64_t seq;
	int r = recorder_begin(recorder);

	if (r >= 0)
		r = journal_append(recorder->journal, record, &seq);
	/* Each record reserves room as if it touched pages of its own: a batch of one needs
	 * less. */
	if ((r == -ENOSPC || r == -EDQUOT) && recorder->n_notes && !recorder->error) {
		r = recorder_commit(recorder);
		if (r >= 0)
			r = recorder_begin(recorder);
		if (r >= 0)
			r = journal_append(recorder->journal, record, &seq);
	}
	if (r == ERR_TOO_LARGE)
		return r;
	if (r >= 0)
		r = recorder_note(recorder, record, seq);
	if (r < 0)
		return recorder_fail(recorder, r);
	/* A removed feed has no checkpoint any more. */
	for (size_t i = recorder->n_touched; record->type == RECORD_FEED_REMOVED && i-- > 0;)
		if (recorder->touched[i]->id == record->feed)
			recorder_leave(recorder, recorder->touched[i]);
	recorder->batch_bytes += record->body.size;
	recorder->has_changes |= !journal_list_is_open(recorder->journal, record->feed);
	*ret_seq = seq;
	return 0;
}

int recorder_changed(struct recorder *recorder, int r)
{
	if (r < 0)
		return recorder_fail(recorder, r);
	recorder->changed |= r == 0;
	return 0;
}

int recorder_change_feed(struct recorder *recorder, uint32_t feed, const struct feed_change *change)
{
	int r = recorder_begin(recorder);

	return r < 0 ? r
		     : recorder_changed(
			       recorder, journal_change_feed(recorder->journal, feed, change));
}

int recorder_publish_from(struct recorder *recorder, uint64_t first)
{
	struct txn *txn = journal_txn(recorder->journal);
	CLEANUP(journal_walk_close) struct journal_walk *walk = NULL;
	struct record record;
	int r = journal_walk_open(txn, first, &walk);

	recorder->has_changes = true;
	while (r >= 0 && (r = journal_walk_next(walk, &record)) == FOUND) {
		r = recorder_note(recorder, &record, record.seq);
		if (r < 0)
			break;
	}
	return r < 0 ? recorder_fail(recorder, r) : 0;
}

void recorder_touch(struct recorder *recorder, struct record_feed *feed)
{
	if (feed->touched || recorder->error)
		return;
	int r = ARRAY_ADD(recorder->touched, recorder->n_touched, recorder->touched_room, feed,
		"the feeds of a batch");
	if (r < 0) {
		(void)recorder_fail(recorder, r);
		return;
	}
	feed->touched = true;
}

void recorder_leave(struct recorder *recorder, struct record_feed *feed)
{
	for (size_t i = 0; i < recorder->n_touched; i++) {
		if (recorder->touched[i] == feed) {
			recorder->touched[i] = recorder->touched[--recorder->n_touched];
			break;
		}
	}
	feed->touched = false;
}

int recorder_bound(struct recorder *recorder)
{
	if (recorder->n_notes < RECORDER_RECORDS_MAX && recorder->batch_bytes < RECORDER_BYTES_MAX)
		return 0;
	return recorder_flush(recorder);
}

uint64_t recorder_gathers_until(const struct recorder *recorder)
{
	CHECK_OBJ(recorder, RECORDER_MAGIC);
	bool waits = recorder->n_notes && !recorder->has_changes && !recorder->changed &&
		     !recorder->n_touched && !recorder->error;

	return !waits || recorder->n_notes >= GATHER_RECORDS ||
			       recorder->batch_bytes >= GATHER_BYTES
		       ? 0
		       : recorder->began_ns + GATHER_NS;
}

int recorder_flush_first(struct recorder *recorder)
{
	bool quiet = recorder->n_notes == 1 &&
		     proc_monotonic_ns() - recorder->flushed_ns >= RECORDER_QUIET;

	return quiet ? recorder_flush(recorder) : 0;
}

static void recorder_publish(struct recorder *recorder)
{
	const uint8_t *keys = recorder->keys.data;

	for (size_t i = 0; recorder->ring && i < recorder->n_notes; i++) {
		struct ring_entry entry = recorder->notes[i].entry;

		entry.key.data = entry.key.size ? keys + recorder->notes[i].key_at : NULL;
		/* A too large entry is left out: the reader takes it from the log. */
		(void)ring_put(recorder->ring, &entry);
	}
	/* The records of a list are given out at its end. Until then readers are woken only now and
	 * then, against laps. */
	bool is_quiet = recorder->n_notes && !recorder->has_changes && !recorder->changed &&
			recorder->unannounced + recorder->n_notes < RECORDER_RECORDS_MAX;
	recorder->unannounced = is_quiet ? recorder->unannounced + recorder->n_notes : 0;
	/* A batch with checkpoints only wakes no follower. */
	if (is_quiet) {
		recorder->published_seq = recorder->last_seq;
		if (recorder->ring)
			ring_store(recorder->ring, recorder->last_seq);
	} else if (recorder->last_seq != recorder->published_seq) {
		recorder->published_seq = recorder->last_seq;
		if (recorder->ring)
			ring_show(recorder->ring, recorder->last_seq);
		doorbell_ring(recorder->doorbell);
		/* The processor last: on few cores it would run before the handlers. */
		if (recorder->ring)
			ring_wake_rest(recorder->ring);
	}
	stats_add(recorder->stats, STAT_RECORDS, recorder->n_notes);
	stats_add(recorder->stats, STAT_PUBLISHED, recorder->n_notes);
	stats_add(recorder->stats, STAT_JOURNAL_COMMITS, 1);
}

static int recorder_commit(struct recorder *recorder)
{
	struct journal_meta meta;
	int r = 0;

	if (recorder->error)
		return err_say(recorder->error, "%s", recorder->text);
	if (!recorder->n_touched && !recorder->last_seq && !recorder->changed) {
		if (journal_txn(recorder->journal))
			journal_abort(recorder->journal); /* nothing was written */
		return 0;
	}
	r = recorder_begin(recorder);
	for (size_t i = 0; r >= 0 && i < recorder->n_touched; i++) {
		struct record_feed *feed = recorder->touched[i];

		r = journal_checkpoint(
			recorder->journal, feed->id, feed->phase, buf_bytes(&feed->rv));
		if (r >= 0)
			r = journal_set_contact(recorder->journal, feed->id, &feed->contact);
	}
	if (r >= 0)
		r = journal_meta(recorder->journal, journal_txn(recorder->journal), &meta);
	if (r >= 0)
		recorder->last_seq = meta.next_seq - 1; /* also of a batch with checkpoints only */
	if (r >= 0)
		r = journal_commit(recorder->journal);
	if (r < 0)
		return recorder_fail(recorder, r);
	recorder_publish(recorder);
	recorder->flushed_ns = proc_monotonic_ns();
	recorder_clear_batch(recorder);
	return 0;
}

int recorder_flush(struct recorder *recorder)
{
	CHECK_OBJ(recorder, RECORDER_MAGIC);
	int r = recorder_commit(recorder);

	buf_trim(&recorder->body, BODY_KEEP);
	return r;
}
