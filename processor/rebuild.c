/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/pair.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "processor/apply.h"
#include "processor/config_indexes.h"
#include "processor/filling.h"

#define COMMIT_EVERY 16384 /* objects: bounds the pages of one transaction */
#define HEADS_AHEAD  512

struct builder {
	const struct processor *p;
	struct journal *journal;
	struct txn *txn; /* of the journal: one for all entries */
	struct journal_meta meta;
	struct index *index;
	struct apply *apply;
	struct index *old; /* of CURRENT; NULL: unreadable */
	struct txn *old_txn;
	size_t entered;   /* since the last commit */
	uint64_t objects; /* entered in all */
	struct filling filling;
};

static void rebuild_release(struct builder *b)
{
	txn_abort(&b->old_txn);
	index_close(&b->old);
	apply_free(&b->apply);
	index_close(&b->index);
	txn_abort(&b->txn);
}

static int rebuild_read_meta(struct builder *b)
{
	int r = txn_begin_read(journal_env(b->journal), &b->txn);

	return r ? r : journal_meta(b->journal, b->txn, &b->meta);
}

/* Makes a generation with `taken = horizon`, which stops trimming, and opens the journal's
 * snapshot. Begins again if the journal was trimmed before that commit. */
static int rebuild_begin(struct builder *b, const struct index_options *options)
{
	for (;;) {
		int r = processor_tick(b->p);

		if (!r)
			r = rebuild_read_meta(b);
		uint64_t horizon = b->meta.horizon;
		txn_abort(&b->txn);
		if (!r)
			r = index_require_room(b->p->home);
		if (!r)
			r = index_create(
				b->p->home, options, journal_uuid(b->journal), horizon, &b->index);
		if (!r)
			r = failpoint_pass(FAILPOINT_REBUILD_BEGUN);
		if (!r)
			r = rebuild_read_meta(b);
		if (r || b->meta.horizon <= horizon)
			return r;
		index_close(&b->index);
		txn_abort(&b->txn);
	}
}

static int rebuild_enter_seq(struct builder *b, uint64_t seq)
{
	struct record record;
	int r = journal_get(b->journal, b->txn, seq, &record);

	if (r == NOT_FOUND)
		return err_say(ERR_CORRUPT, "seq %" PRIu64 " is not in the journal", seq);
	if (r)
		return r;
	r = apply_enter(b->apply, b->txn, &record);
	control_progress(b->p->call, ++b->objects, 0, "objects");
	if (r || ++b->entered < COMMIT_EVERY)
		return r;
	b->entered = 0;
	r = index_commit(b->index);
	return r ? r : index_begin(b->index);
}

/* Announces the versions if that helps. Neighbouring seqs mostly lie beside each other, and are
 * read together. */
static void rebuild_announce(struct builder *b, const uint64_t *versions, size_t n)
{
	uint64_t seqs[HEADS_AHEAD];

	if (!filling_look(&b->filling, b->journal, b->txn))
		return;
	memcpy(seqs, versions, n * sizeof(seqs[0]));
	qsort(seqs, n, sizeof(seqs[0]), array_by_number);
	for (size_t i = 0; i < n; i++)
		(void)filling_announce(&b->filling, b->journal, b->txn, seqs[i]);
	ahead_send(&b->filling.ahead, b->txn);
}

/* Enters a feed's heads older than the open list, or all (0). Returns: END; errors. */
static int rebuild_enter_older(struct builder *b, uint32_t feed, uint64_t list_begin)
{
	CLEANUP(head_walk_close) struct head_walk *walk = NULL;
	struct bytes key;
	struct head head;
	int r = head_walk_open(b->txn, feed, BYTES_NONE, &walk);

	while (r == FOUND) {
		uint64_t seqs[HEADS_AHEAD]; /* in key order */
		size_t n = 0;

		while (n < HEADS_AHEAD && (r = head_walk_next(walk, &key, &head)) == FOUND)
			if (!list_begin || head.seq < list_begin)
				seqs[n++] = head.seq;
		if (r < 0)
			return r;
		rebuild_announce(b, seqs, n);
		int entered = 0;
		for (size_t i = 0; i < n && !entered; i++)
			entered = rebuild_enter_seq(b, seqs[i]);
		r = entered ? entered : r;
	}
	return r;
}

/* Enters a feed as readers see it. During a list that is the state before it: older heads, and the
 * previous versions of objects changed or deleted by the list. */
static int rebuild_enter_objects(struct builder *b, uint32_t feed, uint64_t list_begin)
{
	CLEANUP(journal_walk_close) struct journal_walk *list = NULL;
	struct record record;
	int r = rebuild_enter_older(b, feed, list_begin);

	if (r != END || !list_begin)
		return r == END ? 0 : r;
	r = journal_walk_open_checked(
		b->txn, list_begin + 1, b->meta.horizon, b->meta.next_seq, &list);
	while (!r && (r = journal_walk_next(list, &record)) == FOUND)
		if (record.feed == feed && record.prev && record.prev < list_begin)
			r = rebuild_enter_seq(b, record.prev);
	return r == END ? 0 : r;
}

/* Opens the old index for definitions of feeds outside of the configuration. */
static void rebuild_open_old(struct builder *b)
{
	struct index_meta meta;
	int r = index_open_read(b->p->home, &b->old);

	if (r == FOUND)
		r = txn_begin_read(index_env(b->old), &b->old_txn);
	if (r == 0)
		r = index_meta(b->old, b->old_txn, &meta);
	bool same = r == 0 && memcmp(meta.journal, journal_uuid(b->journal), 16) == 0;
	err_ignore(r < 0 ? r : 0, "the index is built without it");
	if (same)
		return;
	txn_abort(&b->old_txn);
	index_close(&b->old);
}

/* Defines what the old index defines of FEED, but for what every feed has. */
static int rebuild_define_old(struct builder *b, uint32_t feed)
{
	CLEANUP(index_rows_release) struct index_rows rows = {b->old_txn};
	struct index_definition old;
	uint32_t id;
	int r = 0;

	while (r == 0 && (r = index_next_definition(&rows, &old)) == FOUND)
		if (old.feed == feed && *old.paths && !old.dropping)
			r = index_define(b->index, feed, old.name, old.paths, &id);
	return r == END ? 0 : r;
}

static int rebuild_enter_feed(struct builder *b, const struct feed_definition *definition,
	const struct feed_checkpoint *checkpoint)
{
	struct index_feed row = {.feed = definition->id,
		.listed = checkpoint->first_list,
		.list_begin = checkpoint->list_begin};

	index_feed_set_rv(&row, checkpoint->rv); /* still from before an open list */
	int r = apply_add_feed(b->apply, &row, definition);
	/* An unconfigured feed keeps its definitions, as in definitions_sync(). */
	if (!r && b->old && !config_indexes_entry(b->p->config, definition))
		r = rebuild_define_old(b, definition->id);
	if (!r)
		r = rebuild_enter_objects(b, definition->id, checkpoint->list_begin);
	return r < 0 ? err_add(r, "feed '%s'", definition->name) : r;
}

static int rebuild_enter_all(struct builder *b)
{
	CLEANUP(feed_walk_release) struct feed_walk walk = {b->journal, b->txn};
	int r = index_begin(b->index);

	while (!r && (r = feed_walk_next(&walk)) == FOUND)
		if (walk.checkpoint.phase != FEED_REMOVED)
			r = rebuild_enter_feed(b, &walk.definition, &walk.checkpoint);
	r = r == END ? 0 : r;
	/* Last: until then `taken = horizon` keeps the journal from being trimmed. */
	if (!r)
		r = index_set_taken(b->index, b->meta.next_seq - 1);
	if (!r)
		r = index_commit(b->index);
	index_abort(b->index);
	if (!r)
		apply_count(b->apply);
	return r;
}

int rebuild(const struct processor *p, struct journal *journal, const struct index_options *options,
	struct index **ret_index)
{
	CLEANUP(rebuild_release) struct builder b = {.p = p, .journal = journal};
	int r = rebuild_begin(&b, options);

	if (!r)
		rebuild_open_old(&b); /* not after a failure: it would replace the sentence */
	if (!r)
		r = apply_new(p, journal, b.index, &b.apply);
	if (!r)
		r = rebuild_enter_all(&b);
	if (!r)
		r = failpoint_pass(FAILPOINT_REBUILD_FILLED);
	if (r)
		return err_add(r, "building an index");
	stats_add(p->stats, STAT_REBUILDS, 1);
	*ret_index = TAKE(b.index);
	return 0;
}
