/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of the reflector: it watches, lists, commits, is killed, trims; feeds are added and
 * removed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "reflector/record/recorder.h"
#include "tests/model/world.h"

/* ---- life --------------------------------------------------------------- */

const char *const world_feeds[FEEDS] = {"pods", "widgets"};

static void take_feed(struct world *world, const struct feed_definition *definition,
	const struct feed_checkpoint *checkpoint)
{
	unsigned f = strcmp(definition->name, world_feeds[0]) != 0;
	int r = record_feed_init(&world->feed[f], world->recorder, definition, checkpoint);

	MUST(r == 0, "feed %u: %s", f, err_text(r));
	world->id[f] = definition->id;
}

void reflector_open(struct world *world)
{
	struct journal_options options = {.map_bytes = 1u << 30};
	char reason[256];
	struct txn *txn;
	int r = journal_open_write(world->home, &options, reason, &world->journal);

	MUST(r == 0, "journal: %s", err_text(r));
	MUST(world->model.n == 0 || !*reason, "the journal was replaced: %s", reason);
	MUST(recorder_new(world->journal, NULL, NULL, &world->recorder) == 0, "recorder");
	r = txn_begin_read(journal_env(world->journal), &txn);
	MUST(r == 0, "read: %s", err_text(r));
	memset(world->id, 0, sizeof(world->id));
	CLEANUP(feed_walk_release) struct feed_walk walk = {world->journal, txn};
	while ((r = feed_walk_next(&walk)) == FOUND)
		if (walk.checkpoint.phase != FEED_REMOVED)
			take_feed(world, &walk.definition, &walk.checkpoint);
	MUST(r == END, "feeds: %s", err_text(r));
	txn_abort(&txn);
	for (unsigned f = 0; f < FEEDS; f++)
		MUST(world->id[f] == world->model.committed[f].id,
			"feed %u is %" PRIu32 ", wanted %" PRIu32, f, world->id[f],
			world->model.committed[f].id);
}

void reflector_close(struct world *world)
{
	for (unsigned f = 0; f < FEEDS; f++)
		if (world->id[f])
			record_feed_release(&world->feed[f]);
	recorder_free(&world->recorder);
	journal_close(&world->journal);
}

/* ---- watching ----------------------------------------------------------- */

static bool may_watch(const struct world *world, unsigned f)
{
	return world->id[f] && !world->cluster[f].needs_list && world->model.feed[f].listed &&
	       !world->model.feed[f].list_begin && !world->model.feed[f].attempt;
}

static void deliver(struct world *world, unsigned f, const struct cluster_event *what)
{
	struct buf json = BUF_INIT;
	struct api_event event = {.type = what->object.there ? WATCH_MODIFIED : WATCH_DELETED};
	struct bytes rv;

	if (what->object.there && !world->model.feed[f].head[what->key].object.there)
		event.type = WATCH_ADDED;
	cluster_json(f, what->key, &what->object, &json);
	event.object = buf_bytes(&json);
	int r = record_event(&world->feed[f], &event, false, &rv);
	MUST(r == 0, "event: %s", err_text(r));
	model_event(&world->model, f, what->key, what->object);
	buf_release(&json);
}

static void step_watch_of(struct world *world, unsigned f)
{
	struct cluster_feed *feed = &world->cluster[f];

	for (unsigned n = world_random(world, 10); n > 0 && may_watch(world, f); n--)
		if (feed->delivered < feed->n)
			deliver(world, f, &feed->history[feed->delivered++]);
}

void step_watch(struct world *world)
{
	for (unsigned f = 0; f < FEEDS; f++)
		step_watch_of(world, f);
}

/* Delivers an event of an existing object again. */
void step_replay(struct world *world)
{
	unsigned f = world_random(world, FEEDS);
	struct cluster_feed *feed = &world->cluster[f];

	if (!may_watch(world, f) || feed->delivered == 0)
		return;
	const struct cluster_event *old =
		&feed->history[world_random(world, (unsigned)feed->delivered)];
	if (world->model.feed[f].head[old->key].object.there &&
		world->model.feed[f].head[old->key].object.rv >= old->object.rv)
		deliver(world, f, old);
}

/* ---- listing ------------------------------------------------------------ */

void step_list_begin(struct world *world)
{
	unsigned f = world_random(world, FEEDS);
	struct cluster_feed *feed = &world->cluster[f];

	if (!world->id[f])
		return;
	/* Feeds without need of a list, and feeds in the middle of one, begin a list seldom. */
	if ((may_watch(world, f) && world_random(world, 3)) ||
		(world->model.feed[f].attempt && world_random(world, 8)))
		return;
	memcpy(feed->listed, feed->object, sizeof(feed->listed));
	feed->listed_n = feed->n;
	feed->next_key = 0;
	feed->needs_list = true;
	MUST(record_list_begin(&world->feed[f]) == 0, "list begin");
	model_list_begin(&world->model, f);
}

/* A server lists keys in the order of their bytes, unlike our numbers; the recorder accepts any
 * order. */
static void step_list_items_of(struct world *world, unsigned f)
{
	struct cluster_feed *feed = &world->cluster[f];
	struct buf json = BUF_INIT;

	if (!world->model.feed[f].attempt)
		return;
	for (unsigned n = 4 + world_random(world, 16); n > 0 && feed->next_key < KEYS; n--) {
		int key = feed->next_key++;

		if (!feed->listed[key].there)
			continue;
		cluster_json(f, key, &feed->listed[key], &json);
		int r = record_item(&world->feed[f], buf_bytes(&json), false, false);
		MUST(r == 0, "item: %s", err_text(r));
		model_list_item(&world->model, f, key, feed->listed[key]);
	}
	buf_release(&json);
}

void step_list_items(struct world *world)
{
	for (unsigned f = 0; f < FEEDS; f++)
		step_list_items_of(world, f);
}

static void step_list_end_of(struct world *world, unsigned f)
{
	struct cluster_feed *feed = &world->cluster[f];
	char rv[24];
	int r;

	if (!world->model.feed[f].attempt || feed->next_key < KEYS)
		return;
	(void)snprintf(rv, sizeof(rv), "%" PRIu64, world->rv);
	while ((r = record_list_end(&world->feed[f], bytes_str(rv))) == AGAIN)
		;
	MUST(r == 0, "list end: %s", err_text(r));
	model_list_end(&world->model, f);
	feed->delivered = feed->listed_n;
	feed->needs_list = false;
}

void step_list_end(struct world *world)
{
	for (unsigned f = 0; f < FEEDS; f++)
		step_list_end_of(world, f);
}

void step_list_abandon(struct world *world)
{
	unsigned f = world_random(world, FEEDS);

	if (!world->model.feed[f].listed || !world->model.feed[f].list_begin)
		return;
	MUST(record_list_abandon(&world->feed[f]) == 0, "abandon");
	model_list_abandon(&world->model, f);
}

/* ---- committing, dying -------------------------------------------------- */

static void committed(struct world *world)
{
	model_commit(&world->model);
	for (unsigned f = 0; f < FEEDS; f++) {
		world->cluster[f].committed_delivered = world->cluster[f].delivered;
		world->cluster[f].committed_needs_list = world->cluster[f].needs_list;
	}
}

static void crashed(struct world *world)
{
	model_crash(&world->model);
	for (unsigned f = 0; f < FEEDS; f++) {
		world->cluster[f].delivered = world->cluster[f].committed_delivered;
		world->cluster[f].needs_list = world->cluster[f].committed_needs_list;
	}
}

static uint64_t log_end(struct world *world)
{
	struct journal_meta meta;
	struct txn *txn;

	MUST(txn_begin_read(journal_env(world->journal), &txn) == 0, "read");
	MUST(journal_meta(world->journal, txn, &meta) == 0, "meta");
	txn_abort(&txn);
	return meta.next_seq - 1;
}

/* Commits the open batch. Returns false if the commit failed; then the content of the journal
 * decides. */
static bool flush(struct world *world)
{
	int r = recorder_flush(world->recorder);

	if (r == 0) {
		committed(world);
		return true;
	}
	MUST(r == ERR_FAILPOINT, "flush: %s", err_text(r));
	if (log_end(world) == world->model.n && world->model.n > world->model.committed_n)
		committed(world); /* it failed after the commit */
	crashed(world);
	return false;
}

void step_commit(struct world *world)
{
	if (flush(world))
		return;
	recorder_recover(world->recorder);
	for (unsigned f = 0; f < FEEDS; f++)
		if (world->id[f])
			MUST(record_feed_reload(&world->feed[f]) == 0, "reload");
}

void step_reflector_dies(struct world *world)
{
	reflector_close(world);
	crashed(world);
	reflector_open(world);
}

/* ---- set of feeds ------------------------------------------------------- */

static void add_feed(struct world *world, unsigned f)
{
	struct cluster_feed *feed = &world->cluster[f];
	struct feed_definition definition = {.name = world_feeds[f],
		.version = "v1",
		.resource = world_feeds[f],
		.kind = f ? "Widget" : "Pod",
		.list_kind = f ? "WidgetList" : "PodList",
		.namespaced = true};
	uint32_t id;

	MUST(recorder_begin(world->recorder) == 0, "begin");
	int r = recorder_changed(
		world->recorder, journal_add_feed(world->journal, &definition, &id));
	MUST(r == 0, "adding a feed: %s", err_text(r));
	model_feed_added(&world->model, f, id);
	feed->needs_list = true;
}

static void remove_feed(struct world *world, unsigned f)
{
	struct record record = {.feed = world->id[f], .type = RECORD_FEED_REMOVED};
	uint64_t seq;
	int r = recorder_append(world->recorder, &record, &seq);

	MUST(r == 0, "removing a feed: %s", err_text(r));
	model_feed_left(&world->model, f);
}

/* Adds or removes a feed in the open batch; then opens the reflector again with the new
 * configuration. */
static void feed_changes(struct world *world, unsigned f, void (*change)(struct world *, unsigned))
{
	change(world, f);
	(void)flush(world);
	step_reflector_dies(world);
}

void step_feed_goes(struct world *world)
{
	unsigned f = world_random(world, FEEDS);

	if (world->id[f] && world_random(world, 3) == 0)
		feed_changes(world, f, remove_feed);
}

void step_feed_comes(struct world *world)
{
	for (unsigned f = 0; f < FEEDS; f++)
		if (!world->id[f])
			feed_changes(world, f, add_feed);
}

/* ---- trimming ----------------------------------------------------------- */

/* Returns the highest seq the reflector may trim to: bounded by the index and by open relists of
 * both daemons. */
static uint64_t trim_target(struct world *world)
{
	struct index *index = NULL;
	struct index_meta meta;
	struct index_feed row;
	struct index_rows rows = {NULL};
	uint64_t target = 0;

	if (index_open_read(world->home, &index) != FOUND)
		return 0;
	MUST(txn_begin_read(index_env(index), &rows.txn) == 0, "read");
	MUST(index_meta(index, rows.txn, &meta) == 0, "meta");
	target = meta.taken;
	while (index_next_feed(&rows, &row) == FOUND)
		if (row.listed && row.list_begin && row.list_begin - 1 < target)
			target = row.list_begin - 1;
	index_rows_release(&rows);
	txn_abort(&rows.txn);
	index_close(&index);
	for (unsigned f = 0; f < FEEDS; f++) {
		const struct feed_model *feed = &world->model.committed[f];

		if (feed->listed && feed->list_begin && feed->list_begin - 1 < target)
			target = feed->list_begin - 1;
	}
	return target;
}

void step_trim(struct world *world)
{
	uint64_t target = trim_target(world), trimmed;
	struct journal_meta meta;
	struct txn *txn;
	int r = AGAIN;

	step_commit(world); /* trimming needs a closed batch */
	if (target > world->model.horizon)
		target = world->model.horizon +
			 world_random(world, (unsigned)(target - world->model.horizon) + 1);
	else
		return;
	for (unsigned slices = 1 + world_random(world, 4); slices > 0 && r == AGAIN; slices--)
		r = journal_trim(world->journal, target, 1 + world_random(world, 8), &trimmed);
	MUST(r >= 0 || r == ERR_FAILPOINT, "trim: %s", err_text(r));
	MUST(txn_begin_read(journal_env(world->journal), &txn) == 0, "read");
	MUST(journal_meta(world->journal, txn, &meta) == 0, "meta");
	txn_abort(&txn);
	MUST(meta.horizon >= world->model.horizon && meta.horizon <= target,
		"horizon %" PRIu64 " after trimming to %" PRIu64, meta.horizon, target);
	world->model.horizon = meta.horizon;
}
