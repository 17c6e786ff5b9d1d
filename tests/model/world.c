/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, closing, and the steps. */
#include "tests/model/world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/err.h"
#include "common/failpoint.h"

/* Two sets of indexes: reloading goes from one to the other. */
static const char *const configurations[] = {
	"feeds:\n"
	"- resource: pods\n"
	"  indexes: {node: spec.nodeName}\n"
	"- resource: widgets\n"
	"  indexes: {node: spec.nodeName}\n",
	"feeds:\n"
	"- resource: pods\n"
	"  indexes: {node: spec.nodeName, pair: [spec.nodeName, metadata.name]}\n"
	"- resource: widgets\n",
};

void world_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)fputs("MODEL: ", stdout);
	(void)vfprintf(stdout, format, args);
	(void)fputs("\n", stdout);
	va_end(args);
	(void)fflush(stdout);
	exit(1);
}

unsigned world_random(struct world *world, unsigned below)
{
	world->chance = world->chance * 1664525u + 1013904223u;
	return (unsigned)((uint64_t)(world->chance >> 8) * below >> 24);
}

void key_text(int key, char text[16])
{
	(void)snprintf(text, 16, "ns%d/k%02d", key % KEY_GROUPS, key);
}

int key_number(struct bytes key)
{
	char text[16];

	for (int k = 0; k < KEYS; k++) {
		key_text(k, text);
		if (bytes_equal(key, bytes_str(text)))
			return k;
	}
	return -1;
}

/* ---- the reflector's half ---- */

static void load_feed(struct world *world, unsigned f, const struct feed_definition *definition,
	const struct feed_checkpoint *checkpoint)
{
	int r = record_feed_init(&world->feed[f], world->recorder, definition, checkpoint);

	MUST(r == 0, "feed %u: %s", f, err_text(r));
	world->id[f] = definition->id;
}

static int take_feed(void *arg, const struct feed_definition *definition,
	const struct feed_checkpoint *checkpoint)
{
	struct world *world = arg;

	load_feed(world, strcmp(definition->resource, "pods") != 0, definition, checkpoint);
	return 0;
}

static void add_feeds(struct world *world)
{
	static const char *const names[FEEDS] = {"pods", "widgets"};

	MUST(recorder_begin(world->recorder) == 0, "begin");
	for (unsigned f = 0; f < FEEDS; f++) {
		struct feed_definition definition = {.name = names[f], .group = "", .version = "v1",
			.resource = names[f], .kind = f ? "Widget" : "Pod",
			.list_kind = f ? "WidgetList" : "PodList", .namespace_ = "",
			.label_selector = "", .field_selector = "", .drop = "", .namespaced = true};
		int r = journal_add_feed(world->journal, &definition, &world->id[f]);

		MUST(r == 0, "adding a feed: %s", err_text(r));
		model_feed_added(&world->model, f);
	}
	recorder_changed(world->recorder);
	MUST(recorder_flush(world->recorder) == 0, "flush");
	model_commit(&world->model);
}

static void reflector_open(struct world *world)
{
	struct journal_options options = {.map_bytes = 1u << 30};
	char reason[256];
	struct txn *txn;
	int r = journal_open_write(world->home, &options, reason, &world->journal);

	MUST(r == 0, "journal: %s", err_text(r));
	MUST(world->model.n == 0 || !*reason, "the journal was begun anew: %s", reason);
	MUST(recorder_new(world->journal, NULL, NULL, &world->recorder) == 0, "recorder");
	if (world->model.n == 0)
		add_feeds(world);
	r = txn_begin_read(journal_env(world->journal), &txn);
	MUST(r == 0, "read: %s", err_text(r));
	r = journal_each_feed(world->journal, txn, take_feed, world);
	MUST(r == 0, "feeds: %s", err_text(r));
	txn_abort(&txn);
}

static void reflector_close(struct world *world)
{
	for (unsigned f = 0; f < FEEDS; f++)
		record_feed_release(&world->feed[f]);
	recorder_free(&world->recorder);
	journal_close(&world->journal);
}

/* ---- the processor's half ---- */

static void configure(struct world *world)
{
	const char *text = configurations[world_random(world, 2)];
	int r;

	config_free(&world->config);
	r = config_parse(text, strlen(text), "model.yaml", &world->config);
	MUST(r == 0, "configuration: %s", err_text(r));
	world->config->map_bytes = 1u << 30;
	world->processor.config = world->config;
}

/* One process can't open an environment for writing that it has open for reading: the readers close
 * for that long, and the follower goes on from its positions, as with a cursor. */
static void processor_open(struct world *world, bool anew)
{
	world_readers_close(world);
	int r = pair_open(&world->processor, anew, &world->pair);

	MUST(r == 0 || r == ERR_FAILPOINT, "pair: %s", err_text(r));
	world_readers_open(world);
}

/* An error is answered as the daemon answers it: closed and opened anew. */
static bool processor_step(struct world *world)
{
	if (!world->pair) {
		processor_open(world, false);
		return true;
	}
	int r = pair_step(world->pair);
	if (r == LAPPED || r == ERR_FAILPOINT) {
		pair_close(&world->pair);
		return true;
	}
	MUST(r == FOUND || r == AGAIN, "step: %s", err_text(r));
	return r == FOUND;
}

/* ---- opening and closing ---- */

void world_open(struct world *world, const char *directory, unsigned seed)
{
	struct home_options options = {.create = true, .runtime_dir = directory};
	char store[256];

	*world = (struct world){.chance = seed, .directory = strdup(directory)};
	(void)snprintf(store, sizeof(store), "%s/store", directory);
	int r = home_open(store, &options, &world->home);
	MUST(r == 0, "home: %s", err_text(r));
	configure(world);
	world->processor.home = world->home;
	for (unsigned f = 0; f < FEEDS; f++)
		world->cluster[f].needs_list = world->cluster[f].committed_needs_list = true;
	reflector_open(world);
	processor_open(world, false);
}

void world_close(struct world *world)
{
	world_readers_close(world);
	pair_close(&world->pair);
	reflector_close(world);
	home_close(&world->home);
	config_free(&world->config);
	for (unsigned f = 0; f < FEEDS; f++)
		free(world->cluster[f].history);
	model_release(&world->model);
	free(world->follower.positions);
	free(world->directory);
}

/* ---- the cluster ---- */

static void happen(struct cluster_feed *feed, int key, struct object object)
{
	if (feed->n == feed->capacity) {
		feed->capacity = feed->capacity ? feed->capacity * 2 : 256;
		feed->history = realloc(feed->history, feed->capacity * sizeof(*feed->history));
		MUST(feed->history, "no memory");
	}
	feed->history[feed->n++] = (struct happened){key, object};
	feed->object[key] = object;
}

static void change_one(struct world *world)
{
	struct cluster_feed *feed = &world->cluster[world_random(world, FEEDS)];
	int key = (int)world_random(world, KEYS);
	struct object object = feed->object[key];

	if (object.there && world_random(world, 4) == 0) {
		object.there = false;
	} else {
		if (!object.there)
			object.uid = ++world->uid;
		object.there = true;
		object.node = world_random(world, NODES);
	}
	object.rv = ++world->rv;
	happen(feed, key, object);
}

static void step_cluster(struct world *world)
{
	for (unsigned n = 1 + world_random(world, 6); n > 0; n--)
		change_one(world);
}

static void object_json(const struct world *world, unsigned f, int key, const struct object *object,
	struct buf *out)
{
	(void)world;
	buf_reset(out);
	buf_printf(out,
		"{\"kind\":\"%s\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"k%02d\","
		"\"namespace\":\"ns%d\",\"uid\":\"u%" PRIu64 "\",\"resourceVersion\":\"%" PRIu64
		"\",\"labels\":{\"n\":\"%u\"}},\"spec\":{\"nodeName\":\"node-%u\",\"fill\":\"%*s\"}}",
		f ? "Widget" : "Pod", key, key % KEY_GROUPS, object->uid, object->rv, object->node,
		object->node, key % 4 ? 10 : 3000, "");
}

/* ---- watching ---- */

static bool may_watch(const struct world *world, unsigned f)
{
	return !world->cluster[f].needs_list && world->model.feed[f].listed &&
		!world->model.feed[f].list_begin && !world->model.feed[f].attempt;
}

static void deliver(struct world *world, unsigned f, const struct happened *what)
{
	struct buf json = BUF_INIT;
	struct watch_event event = {.type = what->object.there ? WATCH_MODIFIED : WATCH_DELETED};
	struct bytes rv;

	if (what->object.there && !world->model.feed[f].head[what->key].object.there)
		event.type = WATCH_ADDED;
	object_json(world, f, what->key, &what->object, &json);
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

static void step_watch(struct world *world)
{
	for (unsigned f = 0; f < FEEDS; f++)
		step_watch_of(world, f);
}

/* An event that was delivered already comes again: of an object that is still there. */
static void step_replay(struct world *world)
{
	unsigned f = world_random(world, FEEDS);
	struct cluster_feed *feed = &world->cluster[f];

	if (!may_watch(world, f) || feed->delivered == 0)
		return;
	const struct happened *old = &feed->history[world_random(world, (unsigned)feed->delivered)];
	if (world->model.feed[f].head[old->key].object.there &&
		world->model.feed[f].head[old->key].object.rv >= old->object.rv)
		deliver(world, f, old);
}

/* ---- listing ---- */

static void step_list_begin(struct world *world)
{
	unsigned f = world_random(world, FEEDS);
	struct cluster_feed *feed = &world->cluster[f];

	/* Of feeds that are well, and in the middle of a list: now and then. */
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

/* Lists come in the order of keys as bytes, which is not that of our numbers: any order is fine. */
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
		object_json(world, f, key, &feed->listed[key], &json);
		int r = record_item(&world->feed[f], buf_bytes(&json), false);
		MUST(r == 0, "item: %s", err_text(r));
		model_list_item(&world->model, f, key, feed->listed[key]);
	}
	buf_release(&json);
}

static void step_list_items(struct world *world)
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

static void step_list_end(struct world *world)
{
	for (unsigned f = 0; f < FEEDS; f++)
		step_list_end_of(world, f);
}

static void step_list_abandon(struct world *world)
{
	unsigned f = world_random(world, FEEDS);

	if (!world->model.feed[f].listed || !world->model.feed[f].list_begin)
		return;
	MUST(record_list_abandon(&world->feed[f]) == 0, "abandon");
	model_list_abandon(&world->model, f);
}

/* ---- committing, dying ---- */

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

static void step_commit(struct world *world)
{
	int r = recorder_flush(world->recorder);

	if (r == 0) {
		committed(world);
		return;
	}
	MUST(r == ERR_FAILPOINT, "flush: %s", err_text(r));
	recorder_recover(world->recorder);
	if (log_end(world) == world->model.n && world->model.n > world->model.committed_n)
		committed(world); /* failed behind the commit */
	crashed(world);
	for (unsigned f = 0; f < FEEDS; f++)
		MUST(record_feed_reload(&world->feed[f]) == 0, "reload");
}

static void step_reflector_dies(struct world *world)
{
	reflector_close(world);
	crashed(world);
	reflector_open(world);
}

static void step_processor_dies(struct world *world)
{
	pair_close(&world->pair);
	if (world_random(world, 2))
		configure(world);
	processor_open(world, world_random(world, 4) == 0);
}

static void step_reload(struct world *world)
{
	configure(world);
	if (world->pair && pair_check(world->pair) < 0)
		pair_close(&world->pair);
}

static void step_processor(struct world *world)
{
	for (unsigned n = world_random(world, 4); n > 0; n--)
		(void)processor_step(world);
}

/* Arms one failpoint for its next passing; "error" makes the call that passes it fail. */
static void step_failpoint(struct world *world)
{
	static const char *const points[] = {"", "", "journal.before_commit", "journal.after_commit",
		"journal.trim", "journal.trimmed", "index.before_commit", "index.after_commit",
		"index.list_apply", "index.backfill", "rebuild.begun", "rebuild.filled",
		"rebuild.switched"};
	const char *point = points[world_random(world, sizeof(points) / sizeof(points[0]))];
	char text[64];

	(void)snprintf(text, sizeof(text), *point ? "%s:1:error" : "", point);
	(void)setenv("KINF_FAIL", text, 1);
	MUST(failpoint_setup() == 0, "failpoints: %s", text);
}

/* ---- trimming ---- */

static int lower(void *arg, const struct index_feed *feed)
{
	uint64_t *target = arg;

	if (feed->listed && feed->list_begin && feed->list_begin - 1 < *target)
		*target = feed->list_begin - 1;
	return 0;
}

/* As the design bounds it: what the index has taken, and open relists of both. */
static uint64_t trim_target(struct world *world)
{
	struct index *index = NULL;
	struct index_meta meta;
	uint64_t target = 0;
	struct txn *txn;

	if (index_open_read(world->home, &index) != FOUND)
		return 0;
	MUST(txn_begin_read(index_env(index), &txn) == 0, "read");
	MUST(index_meta(index, txn, &meta) == 0, "meta");
	target = meta.taken;
	(void)index_each_feed(index, txn, lower, &target);
	txn_abort(&txn);
	index_close(&index);
	for (unsigned f = 0; f < FEEDS; f++) {
		const struct feed_model *feed = &world->model.committed[f];

		if (feed->listed && feed->list_begin && feed->list_begin - 1 < target)
			target = feed->list_begin - 1;
	}
	return target;
}

static void step_trim(struct world *world)
{
	uint64_t target = trim_target(world), trimmed;
	struct journal_meta meta;
	struct txn *txn;
	int r = AGAIN;

	step_commit(world); /* none may be open */
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

static void step_follow(struct world *world)
{
	world_follow(world, world_random(world, 30));
}

const char *world_step(struct world *world)
{
	static const struct {
		const char *name;
		unsigned weight;
		void (*step)(struct world *world);
	} steps[] = {
		{"cluster", 30, step_cluster},
		{"watch", 14, step_watch},
		{"replay", 2, step_replay},
		{"list begin", 4, step_list_begin},
		{"list items", 12, step_list_items},
		{"list end", 12, step_list_end},
		{"list abandon", 1, step_list_abandon},
		{"commit", 12, step_commit},
		{"reflector dies", 2, step_reflector_dies},
		{"processor", 16, step_processor},
		{"processor dies", 2, step_processor_dies},
		{"reload", 2, step_reload},
		{"failpoint", 2, step_failpoint},
		{"trim", 4, step_trim},
		{"follow", 10, step_follow},
	};
	unsigned all = 0, at;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		all += steps[i].weight;
	at = world_random(world, all);
	for (size_t i = 0;; i++) {
		if (at < steps[i].weight) {
			steps[i].step(world);
			return steps[i].name;
		}
		at -= steps[i].weight;
	}
}

void world_settle(struct world *world)
{
	(void)setenv("KINF_FAIL", "", 1);
	MUST(failpoint_setup() == 0, "failpoints off");
	step_commit(world);
	while (processor_step(world))
		;
	world_check(world);
	world_follow_check(world);
}
