/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/apply.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "common/proc.h"
#include "processor/config_indexes.h"

#define APPLY_MAGIC 0x4150504cu
#define TICK_EVERY  256

/* A feed with a record in this transaction or an earlier one. */
struct apply_feed {
	uint32_t id;
	struct terms *terms;
};

struct apply {
	uint32_t magic;
	uint32_t feed_changes;
	const struct processor *p;
	struct journal *journal;
	struct index *index;
	struct apply_feed *feeds; /* by id */
	size_t n_feeds, feeds_room;
	struct term_list old, new;
	uint64_t work; /* records handled: ticks now and then */
	/* Counted here, added to the status page after the commit. */
	uint64_t applied, lists, unindexable;
};

int apply_new(const struct processor *p, struct journal *journal, struct index *index,
	struct apply **ret_apply)
{
	struct apply *apply = calloc(1, sizeof(*apply));
	if (!apply)
		return err_set(-ENOMEM, "applying records");
	*apply = (struct apply){.magic = APPLY_MAGIC, .p = p, .journal = journal, .index = index};
	*ret_apply = apply;
	return 0;
}

void apply_free(struct apply **apply_pointer)
{
	struct apply *apply = TAKE(*apply_pointer);

	if (!apply)
		return;
	CHECK_OBJ(apply, APPLY_MAGIC);
	apply_forget(apply);
	free(apply->feeds);
	term_list_release(&apply->old);
	term_list_release(&apply->new);
	apply->magic = 0;
	free(apply);
}

uint32_t apply_feed_changes(const struct apply *apply)
{
	CHECK_OBJ(apply, APPLY_MAGIC);
	return apply->feed_changes;
}

/* ---- the feeds and their definitions ------------------------------------ */

void apply_forget(struct apply *apply)
{
	CHECK_OBJ(apply, APPLY_MAGIC);
	for (size_t i = 0; i < apply->n_feeds; i++)
		terms_free(&apply->feeds[i].terms);
	apply->n_feeds = 0;
}

/* Returns the terms of a feed of the index. */
static int apply_find_terms(struct apply *apply, uint32_t feed, struct terms **ret_terms)
{
	size_t i = ARRAY_PLACE(apply->feeds, apply->n_feeds, .id, feed);
	CLEANUP(terms_free) struct terms *terms = NULL;
	const struct index_definition *definition;

	if (i < apply->n_feeds && apply->feeds[i].id == feed) {
		*ret_terms = apply->feeds[i].terms;
		return 0;
	}
	int r = terms_new(&terms);
	/* Definitions being filled count too: the index maintains their filled part. */
	for (size_t k = 0; r == 0 && (definition = index_definition_held(apply->index, k)); k++)
		if (definition->feed == feed && !definition->dropping)
			r = terms_add(terms, definition);
	if (r == 0)
		r = ARRAY_INSERT(apply->feeds, apply->n_feeds, apply->feeds_room, i,
			((struct apply_feed){feed, terms}), "the feeds");
	if (r < 0)
		return r;
	*ret_terms = TAKE(terms);
	return 0;
}

static int apply_define(void *arg, uint32_t feed, const char *name, const char *paths)
{
	uint32_t id;

	return index_define(((struct apply *)arg)->index, feed, name, paths, &id);
}

int apply_add_feed(
	struct apply *apply, const struct index_feed *row, const struct feed_definition *of)
{
	CHECK_OBJ(apply, APPLY_MAGIC);
	int r = index_feed_set(apply->index, row);

	return r ? r : config_indexes_each(apply->p->config, of, apply_define, apply);
}

/* ---- objects ------------------------------------------------------------ */

/* Reads the terms of RECORD. An unreadable body has none at any time: the object is found by its
 * name only, and counted. */
static int apply_read_terms(
	struct apply *apply, const struct record *record, struct term_list *list)
{
	struct terms *terms;
	int r = apply_find_terms(apply, record->feed, &terms);

	if (!r)
		r = record_check(record);
	if (r)
		return r;
	r = terms_collect(terms, record, list);
	if (r != ERR_CORRUPT)
		return r;
	err_ignore(r, "the object is counted as unindexable");
	list->n = 0;
	list->unindexable = 1;
	return 0;
}

int apply_terms(struct apply *apply, const struct record *record, const struct term_list **ret_list)
{
	CHECK_OBJ(apply, APPLY_MAGIC);
	int r = apply_read_terms(apply, record, &apply->new);

	if (r)
		return r;
	*ret_list = &apply->new;
	return 0;
}

/* Collects the terms of the version held by the index; none without the object. */
static int apply_collect_held(struct apply *apply, struct txn *txn, uint32_t feed, struct bytes key)
{
	struct index_entry held;
	struct record record;
	int r = index_entry(apply->index, feed, key, &held);

	apply->old.n = 0;
	if (r != FOUND)
		return r == NOT_FOUND ? 0 : r;
	bool placed = held.place && held.generation == journal_generation(apply->journal);
	r = journal_get_at(
		apply->journal, txn, held.seq, placed ? held.place : 0, held.place_size, &record);
	if (r == NOT_FOUND)
		r = err_say(ERR_CORRUPT, "the index holds seq %" PRIu64 ", the journal does not",
			held.seq);
	if (!r)
		r = apply_read_terms(apply, &record, &apply->old);
	return r == ERR_CORRUPT ? err_add(r, "the terms of '%.*s' before this change are not known",
					  BYTES_ARG(key))
				: r;
}

static int apply_put(struct apply *apply, struct txn *txn, const struct record *record)
{
	struct index_change change = {.feed = record->feed,
		.key = record->key,
		.to = {.seq = record->seq, .generation = journal_generation(apply->journal)}};
	int r = apply_collect_held(apply, txn, record->feed, record->key);

	if (!r)
		r = apply_read_terms(apply, record, &apply->new);
	if (r < 0)
		return r;
	if (txn_place(txn, record->stored, &change.to.place) == FOUND)
		change.to.place_size = (uint32_t)record->stored.size;
	apply->unindexable += apply->new.unindexable;
	change.old = apply->old.terms;
	change.n_old = apply->old.n;
	change.new = apply->new.terms;
	change.n_new = apply->new.n;
	return index_put(apply->index, &change);
}

static int apply_tick(struct apply *apply)
{
	return ++apply->work % TICK_EVERY ? 0 : processor_tick(apply->p);
}

int apply_enter(struct apply *apply, struct txn *txn, const struct record *record)
{
	CHECK_OBJ(apply, APPLY_MAGIC);
	int r = apply_put(apply, txn, record);

	return r ? r : apply_tick(apply);
}

static int apply_object(struct apply *apply, struct txn *txn, const struct record *record)
{
	int r;

	if (record->type != RECORD_DELETED) {
		r = apply_put(apply, txn, record);
	} else {
		r = apply_collect_held(apply, txn, record->feed, record->key);
		if (!r)
			r = index_remove(apply->index, record->feed, record->key, apply->old.terms,
				apply->old.n);
		if (r == NOT_FOUND)
			r = 0; /* added and deleted within one list */
	}
	apply->applied++;
	return r ? r : apply_tick(apply);
}

/* ---- lists -------------------------------------------------------------- */

/* Applies all records of FEED between its LIST_BEGIN and END. Memory stays bounded: the index
 * writes its collected changes in portions, inside the transaction. */
static int apply_bracket(
	struct apply *apply, struct txn *txn, const struct index_feed *feed, uint64_t end)
{
	CLEANUP(journal_walk_close) struct journal_walk *walk = NULL;
	struct journal_meta meta;
	struct record record;
	int r = journal_meta(apply->journal, txn, &meta);

	if (!r) /* an open first list may be trimmed */
		r = journal_walk_open_checked(txn, feed->list_begin + 1, meta.horizon, end, &walk);
	if (feed->listed ==
		0) /* no object has an older version: this reads in the journal's order */
		env_expect_random(journal_env(apply->journal), false);
	while (!r && (r = journal_walk_next(walk, &record)) == FOUND && record.seq < end) {
		if (record.feed != feed->feed || !record_is_change(record.type))
			continue;
		r = failpoint_pass(FAILPOINT_INDEX_LIST_APPLY);
		if (!r)
			r = apply_object(apply, txn, &record);
	}
	return r < 0 ? r : 0;
}

static int apply_list_end(
	struct apply *apply, struct txn *txn, struct index_feed *feed, const struct record *record)
{
	if (feed->list_begin == 0)
		return err_say(
			ERR_CORRUPT, "seq %" PRIu64 " ends a list that did not begin", record->seq);
	int r = apply_bracket(apply, txn, feed, record->seq);
	if (r < 0)
		return err_add(r, "list of feed %" PRIu32, record->feed);
	if (feed->listed == 0)
		feed->listed = record->seq;
	feed->list_begin = 0;
	if (!(record->flags & RECORD_ABANDONED)) {
		/* A list's RV counts even if it is older: etcd was restored. */
		memset(feed->rv, 0, sizeof(feed->rv));
		(void)index_feed_set_rv(feed, record->rv);
	}
	apply->lists++;
	return index_feed_set(apply->index, feed);
}

/* ---- records ------------------------------------------------------------ */

static int apply_feed_added(struct apply *apply, struct txn *txn, const struct record *record)
{
	CLEANUP(buf_release) struct buf texts = BUF_INIT;
	const struct index_feed row = {.feed = record->feed};
	struct feed_definition definition;
	int r = journal_feed_definition(txn, record->feed, &texts, &definition);

	if (r == NOT_FOUND) /* removed since: its FEED_REMOVED follows */
		definition = (struct feed_definition){
			.id = record->feed, .name = "", .group = "", .version = "", .resource = ""};
	if (r >= 0)
		r = apply_add_feed(apply, &row, &definition);
	if (r < 0)
		return r;
	apply->feed_changes++;
	return 0;
}

/* Applies one record, inside a transaction of the index. TXN: of the journal. */
static int apply_record(struct apply *apply, struct txn *txn, const struct record *record)
{
	if (record->type == RECORD_FEED_ADDED)
		return apply_feed_added(apply, txn, record);
	const struct index_feed *held = index_feed_held(apply->index, record->feed);
	if (!held)
		return err_say(ERR_CORRUPT, "feed %" PRIu32 " is not in the index", record->feed);
	struct index_feed feed = *held;
	int r;

	switch (record->type) {
	case RECORD_ADDED:
	case RECORD_MODIFIED:
	case RECORD_DELETED:
		if (feed.list_begin)
			return 0; /* the LIST_END applies it */
		r = apply_object(apply, txn, record);
		if (r < 0 || !index_feed_set_rv(&feed, record->rv))
			return r;
		return index_feed_set(apply->index, &feed);
	case RECORD_LIST_BEGIN:
		feed.list_begin = record->seq;
		return index_feed_set(apply->index, &feed);
	case RECORD_LIST_END:
		return apply_list_end(apply, txn, &feed, record);
	case RECORD_FEED_REMOVED:
		feed.removed = true;
		feed.list_begin = 0;
		apply->feed_changes++;
		return index_feed_set(apply->index, &feed);
	default:
		return err_say(ERR_CORRUPT, "seq %" PRIu64 ": record of type %u", record->seq,
			record->type);
	}
}

/* ---- batches ------------------------------------------------------------ */

/* Applies records up to a limit of the batch, and sets the last one's seq. */
static int apply_records(struct apply *apply, struct intake *intake, uint64_t *ret_last)
{
	uint64_t start = proc_monotonic_ns();
	size_t n = 0, bytes = 0;
	struct record record;
	int r = 0;

	while (!r && n < APPLY_RECORDS_MAX && bytes < APPLY_BYTES_MAX) {
		if (n % 16 == 15 && intake_is_live(intake) &&
			proc_monotonic_ns() - start > APPLY_LIVE_NS)
			break;
		r = intake_next(intake, &record);
		if (r == FOUND)
			r = apply_record(apply, intake_txn(intake), &record);
		if (!r) {
			*ret_last = record.seq;
			bytes += record.body.size + record.key.size;
			n++;
		}
	}
	return r == END ? 0 : r;
}

void apply_count(struct apply *apply)
{
	CHECK_OBJ(apply, APPLY_MAGIC);
	struct stats *stats = apply->p->stats;

	stats_add(stats, STAT_INDEX_COMMITS, 1);
	stats_add(stats, STAT_APPLIED, apply->applied);
	stats_add(stats, STAT_LISTS_APPLIED, apply->lists);
	stats_add(stats, STAT_UNINDEXABLE, apply->unindexable);
	apply->applied = apply->lists = apply->unindexable = 0;
}

int apply_batch(struct apply *apply, struct intake *intake)
{
	CHECK_OBJ(apply, APPLY_MAGIC);
	uint64_t last = 0;
	int r = intake_begin(intake);

	if (r != FOUND)
		return r;
	r = index_begin(apply->index);
	if (!r)
		r = apply_records(apply, intake, &last);
	if (!r && last)
		r = index_set_taken(apply->index, last);
	if (!r && last)
		r = index_commit(apply->index);
	else
		index_abort(apply->index);
	if (r < 0) {
		apply_forget(apply);
		return r; /* the pair is reopened, with INTAKE */
	}
	if (!last) {
		intake_rest(intake);
		return AGAIN;
	}
	intake_end(intake, last);
	apply_count(apply);
	return FOUND;
}
