/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/apply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "common/proc.h"
#include "processor/definitions.h"

#define APPLY_MAGIC 0x4150504cu
#define TICK_EVERY  256
#define PLACE_BYTES 1800 /* smaller records share pages and have no place (store/env/env.h) */

struct feed {
	struct index_feed row;
	bool rv_changed; /* since the row was saved */
	struct terms *terms;
};

struct apply {
	uint32_t magic;
	bool loaded, rv_changed;
	const struct processor *p;
	struct journal *journal;
	struct index *index;
	struct publish *publish;
	struct feed *feeds;
	size_t n_feeds;
	struct term_list old, new;
	uint64_t work; /* records handled, to tick now and then */
	/* Counted here, told when committed. */
	uint64_t applied, lists, unindexable;
};

int apply_new(const struct processor *p, struct journal *journal, struct index *index,
	struct apply **ret_apply)
{
	struct apply *apply = calloc(1, sizeof(*apply));
	if (!apply)
		return err_set(-ENOMEM, "apply");
	apply->magic = APPLY_MAGIC;
	apply->p = p;
	apply->journal = journal;
	apply->index = index;
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
	term_list_release(&apply->old);
	term_list_release(&apply->new);
	apply->magic = 0;
	free(apply);
}

void apply_set_publish(struct apply *apply, struct publish *publish)
{
	CHECK_OBJ(apply, APPLY_MAGIC);
	apply->publish = publish;
}

/* ---- what is known of feeds ---- */

void apply_forget(struct apply *apply)
{
	CHECK_OBJ(apply, APPLY_MAGIC);
	for (size_t i = 0; i < apply->n_feeds; i++)
		terms_free(&apply->feeds[i].terms);
	free(TAKE(apply->feeds));
	apply->n_feeds = 0;
	apply->loaded = false;
}

static struct feed *find_feed(struct apply *apply, uint32_t id)
{
	for (size_t i = 0; i < apply->n_feeds; i++)
		if (apply->feeds[i].row.feed == id)
			return &apply->feeds[i];
	return NULL;
}

static int know_feed(struct apply *apply, const struct index_feed *row, struct feed **ret_feed)
{
	struct feed *feeds = reallocarray(apply->feeds, apply->n_feeds + 1, sizeof(*feeds));
	if (!feeds)
		return err_set(-ENOMEM, "feeds");
	apply->feeds = feeds;
	struct feed *feed = &feeds[apply->n_feeds];
	*feed = (struct feed){.row = *row};
	int r = terms_new(&feed->terms);
	if (r < 0)
		return r;
	apply->n_feeds++;
	*ret_feed = feed;
	return 0;
}

static int load_feed(void *arg, const struct index_feed *row)
{
	struct feed *feed;

	return know_feed(arg, row, &feed);
}

/* Those being filled too: the index maintains them as far as they are filled. */
static int load_definition(void *arg, const struct index_definition *definition)
{
	struct feed *feed = find_feed(arg, definition->feed);

	if (!feed)
		return err_set(
			ERR_CORRUPT, "index definition '%s' of an unknown feed", definition->name);
	return definition->dropping ? 0 : terms_add(feed->terms, definition);
}

static int load(struct apply *apply)
{
	if (apply->loaded)
		return 0;
	struct txn *txn = index_txn(apply->index);
	int r = index_each_feed(apply->index, txn, load_feed, apply);
	if (!r)
		r = index_each_definition(apply->index, txn, 0, load_definition, apply);
	if (r)
		apply_forget(apply);
	apply->loaded = r == 0;
	return r;
}

static int known_feed(struct apply *apply, uint32_t id, struct feed **ret_feed)
{
	int r = load(apply);
	if (r)
		return r;
	*ret_feed = find_feed(apply, id);
	return *ret_feed ? 0 : err_set(ERR_CORRUPT, "feed %u is not in the index", id);
}

static int define(void *arg, uint32_t feed_id, const char *name, const char *paths)
{
	struct apply *apply = arg;
	struct index_definition definition = {.feed = feed_id, .name = name, .paths = paths};
	int r = index_define(apply->index, feed_id, name, paths, &definition.id);

	return r < 0 ? r : terms_add(find_feed(apply, feed_id)->terms, &definition);
}

int apply_add_feed(struct apply *apply, const struct index_feed *row,
	const struct feed_definition *of)
{
	CHECK_OBJ(apply, APPLY_MAGIC);
	struct feed *feed;
	int r = load(apply);

	if (!r)
		r = index_feed_set(apply->index, row);
	if (!r)
		r = know_feed(apply, row, &feed);
	return r ? r : definitions_wanted(apply->p->config, of, define, apply);
}

static int save_feed(struct apply *apply, const struct feed *feed)
{
	return index_feed_set(apply->index, &feed->row);
}

/* ---- objects ---- */

/* Terms of RECORD. A damaged body has none, now and whenever it is asked for again: the object is
 * found by its name, and counted. */
static int collect(const struct feed *feed, const struct record *record, struct term_list *list)
{
	int r = terms_collect(feed->terms, record, list);

	if (r != ERR_CORRUPT)
		return r;
	err_clear();
	list->n = 0;
	list->unindexable = 1;
	return 0;
}

int apply_terms(struct apply *apply, const struct record *record, const struct term_list **ret_list)
{
	CHECK_OBJ(apply, APPLY_MAGIC);
	struct feed *feed;
	int r = known_feed(apply, record->feed, &feed);

	if (!r)
		r = collect(feed, record, &apply->new);
	if (r)
		return r;
	*ret_list = &apply->new;
	return 0;
}

/* The terms of the version that the index holds; none of an object it does not hold. */
static int collect_held(
	struct apply *apply, struct txn *txn, const struct feed *feed, struct bytes key)
{
	struct index_entry held;
	struct record record;
	int r = index_entry(apply->index, feed->row.feed, key, &held);

	apply->old.n = 0;
	if (r != FOUND)
		return r == NOT_FOUND ? 0 : r;
	r = journal_get(apply->journal, txn, held.seq, &record);
	if (r == NOT_FOUND)
		r = err_set(ERR_CORRUPT, "the index holds seq %llu, the journal does not",
			(unsigned long long)held.seq);
	return r ? r : collect(feed, &record, &apply->old);
}

static int put_version(
	struct apply *apply, struct txn *txn, const struct feed *feed, const struct record *record)
{
	struct index_change change = {.feed = record->feed,
		.key = record->key,
		.to = {.seq = record->seq, .generation = journal_generation(apply->journal)}};
	int r = collect(feed, record, &apply->new);

	if (!r && record->body.size >= PLACE_BYTES)
		r = journal_place(
			apply->journal, txn, record->seq, &change.to.place, &change.to.place_size);
	if (r < 0)
		return r;
	apply->unindexable += apply->new.unindexable;
	change.old = apply->old.terms;
	change.n_old = apply->old.n;
	change.new = apply->new.terms;
	change.n_new = apply->new.n;
	return index_put(apply->index, &change);
}

static int tick(struct apply *apply)
{
	return ++apply->work % TICK_EVERY ? 0 : processor_tick(apply->p);
}

int apply_enter(struct apply *apply, struct txn *txn, const struct record *record)
{
	CHECK_OBJ(apply, APPLY_MAGIC);
	struct feed *feed;
	int r = known_feed(apply, record->feed, &feed);

	if (!r)
		r = collect_held(apply, txn, feed, record->key);
	if (!r)
		r = put_version(apply, txn, feed, record);
	return r ? r : tick(apply);
}

static int change_object(
	struct apply *apply, struct txn *txn, const struct feed *feed, const struct record *record)
{
	int r = collect_held(apply, txn, feed, record->key);

	if (r)
		return r;
	apply->applied++;
	if (record->type != RECORD_DELETED)
		r = put_version(apply, txn, feed, record);
	else
		r = index_remove(
			apply->index, record->feed, record->key, apply->old.terms, apply->old.n);
	/* Came and went inside one list: there is nothing to remove. */
	if (r == NOT_FOUND)
		r = 0;
	return r ? r : tick(apply);
}

static bool is_object(const struct record *record)
{
	return record->type == RECORD_ADDED || record->type == RECORD_MODIFIED ||
	       record->type == RECORD_DELETED;
}

/* ---- lists ---- */

/* Everything of FEED between BEGIN and END. Memory stays bounded: the index writes its collected
 * changes in portions, inside the transaction. */
static int apply_bracket(
	struct apply *apply, struct txn *txn, const struct feed *feed, uint64_t begin, uint64_t end)
{
	CLEANUP(journal_walk_close) struct journal_walk *walk = NULL;
	struct record record;
	int r = journal_walk_open(apply->journal, txn, begin + 1, &walk);

	while (!r && (r = journal_walk_next(walk, &record)) == FOUND && record.seq < end) {
		if (record.feed != feed->row.feed || !is_object(&record))
			continue;
		r = failpoint_pass(FAILPOINT_INDEX_LIST_APPLY);
		if (!r)
			r = change_object(apply, txn, feed, &record);
	}
	return r < 0 ? r : 0;
}

static int list_begin(struct apply *apply, struct feed *feed, const struct record *record)
{
	feed->row.list_begin = record->seq;
	return save_feed(apply, feed);
}

static int list_end(
	struct apply *apply, struct txn *txn, struct feed *feed, const struct record *record)
{
	uint64_t begin = feed->row.list_begin;

	if (begin == 0)
		return err_set(ERR_CORRUPT, "seq %llu ends a list that did not begin",
			(unsigned long long)record->seq);
	int r = apply_bracket(apply, txn, feed, begin, record->seq);
	if (r < 0)
		return err_add(r, "list of feed %u", record->feed);
	if (feed->row.listed == 0)
		feed->row.listed = record->seq;
	feed->row.list_begin = 0;
	if (!(record->flags & RECORD_ABANDONED)) {
		memset(feed->row.rv, 0, sizeof(feed->row.rv)); /* a list counts even if it is older: etcd was restored */
		(void)index_feed_set_rv(&feed->row, record->rv);
	}
	apply->lists++;
	publish_list(apply->publish, record, begin);
	return save_feed(apply, feed);
}

/* ---- feeds ---- */

struct addition {
	struct apply *apply;
	uint32_t feed;
	bool added;
};

static int add_this(void *arg, const struct feed_definition *definition,
	const struct feed_checkpoint *checkpoint)
{
	struct addition *addition = arg;
	struct index_feed row = {.feed = addition->feed};

	(void)checkpoint;
	if (definition->id != addition->feed)
		return 0;
	addition->added = true;
	int r = apply_add_feed(addition->apply, &row, definition);
	return r ? r : END;
}

static int feed_added(struct apply *apply, struct txn *txn, const struct record *record)
{
	struct addition addition = {.apply = apply, .feed = record->feed};
	const struct feed_definition removed = {.id = record->feed, .name = "", .group = "",
		.version = "", .resource = ""};
	struct index_feed row = {.feed = record->feed};
	int r = journal_each_feed(apply->journal, txn, add_this, &addition);

	/* Without a definition: removed since, its FEED_REMOVED will come. */
	if (r >= 0 && !addition.added)
		r = apply_add_feed(apply, &row, &removed);
	if (r < 0)
		return r;
	publish_record(apply->publish, record);
	return 0;
}

static int feed_removed(struct apply *apply, struct feed *feed, const struct record *record)
{
	feed->row.removed = true;
	feed->row.list_begin = 0;
	publish_record(apply->publish, record);
	return save_feed(apply, feed);
}

static int object_record(
	struct apply *apply, struct txn *txn, struct feed *feed, const struct record *record)
{
	if (feed->row.list_begin)
		return 0; /* waits for the LIST_END */
	int r = change_object(apply, txn, feed, record);
	if (!r)
		publish_record(apply->publish, record);
	if (!r && index_feed_set_rv(&feed->row, record->rv))
		feed->rv_changed = apply->rv_changed = true;
	return r;
}

int apply_record(struct apply *apply, struct txn *txn, const struct record *record)
{
	CHECK_OBJ(apply, APPLY_MAGIC);
	struct feed *feed = NULL;

	if (record->type == RECORD_FEED_ADDED)
		return feed_added(apply, txn, record);
	int r = known_feed(apply, record->feed, &feed);
	if (r)
		return r;
	switch (record->type) {
	case RECORD_ADDED:
	case RECORD_MODIFIED:
	case RECORD_DELETED:
		return object_record(apply, txn, feed, record);
	case RECORD_LIST_BEGIN:
		return list_begin(apply, feed, record);
	case RECORD_LIST_END:
		return list_end(apply, txn, feed, record);
	case RECORD_FEED_REMOVED:
		return feed_removed(apply, feed, record);
	default:
		return err_set(ERR_CORRUPT, "seq %llu: record of type %u",
			(unsigned long long)record->seq, record->type);
	}
}

/* ---- batches ---- */

static int take_records(struct apply *apply, struct intake *intake, uint64_t *ret_last)
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

/* Once a batch: most records of a feed have a newer RV. */
static int save_rvs(struct apply *apply)
{
	int r = 0;

	for (size_t i = 0; r == 0 && apply->rv_changed && i < apply->n_feeds; i++)
		if (apply->feeds[i].rv_changed) {
			apply->feeds[i].rv_changed = false;
			r = save_feed(apply, &apply->feeds[i]);
		}
	apply->rv_changed = false;
	return r;
}

static int take_and_commit(struct apply *apply, struct intake *intake, uint64_t *ret_last)
{
	int r = index_begin(apply->index);

	if (!r)
		r = take_records(apply, intake, ret_last);
	if (!r)
		r = save_rvs(apply);
	if (!r && *ret_last)
		r = index_set_taken(apply->index, *ret_last);
	if (!r && *ret_last)
		return index_commit(apply->index);
	index_abort(apply->index);
	return r;
}

int apply_batch(struct apply *apply, struct intake *intake)
{
	CHECK_OBJ(apply, APPLY_MAGIC);
	uint64_t last = 0;
	int r = intake_begin(intake);

	if (r != FOUND)
		return r;
	if (intake_is_live(intake))
		publish_announce(apply->publish);
	r = take_and_commit(apply, intake, &last);
	if (r < 0) {
		apply_forget(apply);
		return r; /* the pair is opened anew, INTAKE with it */
	}
	if (!last) {
		intake_rest(intake);
		return AGAIN;
	}
	intake_end(intake, last);
	apply_count(apply);
	publish_commit(apply->publish, last);
	return FOUND;
}
