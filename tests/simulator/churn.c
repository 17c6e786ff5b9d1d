/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/churn.h"

#include <time.h>

#include "common/cleanup.h"
#include "tests/simulator/jsontext.h"
#include "tests/simulator/memory.h"

#define HOLD_MS 20 /* the background thread holds the lock at most this long */
#define TICK_NS 2000000

struct churn_flow {
	struct collection *collection;
	double rate; /* changes a second */
	unsigned percent;
	uint64_t begun_ms;
	uint64_t done; /* changes since then */
	uint64_t created;
	bool delete_next;
};

struct churn {
	struct world *world;
	pthread_t thread;
	struct churn_flow flows[WORLD_KINDS_MAX]; /* all below under world->lock */
	bool stop;
};

static uint64_t churn_touch_one(struct world *world, struct collection *collection, const char *key)
{
	CLEANUP(buf_release) struct buf patch = BUF_INIT;

	generate_patch(world->rv, &patch);
	return churn_patch(world, collection, key, buf_bytes(&patch));
}

uint64_t churn_patch(
	struct world *world, struct collection *collection, const char *key, struct bytes patch)
{
	CLEANUP(buf_release) struct buf merged = BUF_INIT;
	struct entry *entry = keylist_find(&collection->keys, key);

	if (!entry || entry->newest->deleted)
		return 0;
	jsontext_merge(version_text(entry->newest), patch, &merged);
	REQUIRE(buf_error(&merged) == 0);
	return world_put(world, collection, buf_bytes(&merged));
}

uint64_t churn_create(struct world *world, struct collection *collection, uint64_t from,
	uint64_t count, const struct generate_options *options)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;

	for (uint64_t n = from; n < from + count; n++) {
		buf_reset(&text);
		generate_object(collection->kind, n, options, &text);
		REQUIRE(buf_error(&text) == 0);
		world_put(world, collection, buf_bytes(&text));
	}
	return world->rv;
}

/* Calls APPLY with the keys of COUNT random objects; 0: of all. */
static void churn_each(struct world *world, struct collection *collection, uint64_t count,
	uint64_t (*apply)(struct world *, struct collection *, const char *))
{
	CLEANUP(buf_release) struct buf key = BUF_INIT;
	struct entry *entry;

	for (uint64_t i = 0; i < count && (entry = collection_any(collection)); i++)
		apply(world, collection, entry->key);
	while (!count) {
		struct keylist_place place = keylist_seek(&collection->keys, buf_cstr(&key));

		entry = keylist_next(&collection->keys, &place);
		if (entry && !strcmp(entry->key, buf_cstr(&key)))
			entry = keylist_next(&collection->keys, &place);
		if (!entry)
			break;
		buf_reset(&key);
		buf_str(&key, entry->key);
		apply(world, collection, buf_cstr(&key));
	}
}

void churn_touch(struct world *world, struct collection *collection, uint64_t count)
{
	churn_each(world, collection, count, churn_touch_one);
}

void churn_delete(struct world *world, struct collection *collection, uint64_t count)
{
	churn_each(world, collection, count, world_delete);
}

/* ---- background --------------------------------------------------------- */

static void churn_flow_change(struct world *world, struct churn_flow *flow)
{
	const struct generate_options options = {.namespaces = 10,
		.prefix = "churn-",
		.seed = world->seed,
		.short_names = world->short_names};

	if ((unsigned)random() % 100 >= flow->percent) {
		churn_touch(world, flow->collection, 1);
		return;
	}
	if (flow->delete_next)
		churn_delete(world, flow->collection, 1);
	else
		churn_create(world, flow->collection, flow->created++, 1, &options);
	flow->delete_next = !flow->delete_next;
}

/* Makes the due changes, for at most HOLD_MS: requests must still get the lock if the machine is
 * too slow for the rate. */
static void churn_catch_up(struct churn *churn)
{
	struct world *world = churn->world;
	uint64_t now = world_now_ms(), until = now + HOLD_MS;

	for (size_t i = 0; i < world->n_collections; i++) {
		struct churn_flow *flow = &churn->flows[i];
		uint64_t due = (uint64_t)(flow->rate * (double)(now - flow->begun_ms) / 1000);

		for (; flow->rate > 0 && flow->done < due && world_now_ms() < until; flow->done++)
			churn_flow_change(world, flow);
	}
}

static void *churn_thread(void *arg)
{
	struct churn *churn = arg;
	struct world *world = churn->world;
	const struct timespec tick = {.tv_nsec = TICK_NS};
	bool stop = false;

	while (!stop) {
		(void)nanosleep(&tick, NULL); /* signals are blocked */
		pthread_mutex_lock(&world->lock);
		churn_catch_up(churn);
		stop = churn->stop;
		pthread_mutex_unlock(&world->lock);
	}
	return NULL;
}

struct churn *churn_new(struct world *world)
{
	struct churn *churn = memory_take(sizeof(*churn));

	churn->world = world;
	REQUIRE(pthread_create(&churn->thread, NULL, churn_thread, churn) == 0);
	return churn;
}

void churn_free(struct churn **churn)
{
	if (!*churn)
		return;

	struct world *world = (*churn)->world;

	pthread_mutex_lock(&world->lock);
	(*churn)->stop = true;
	pthread_mutex_unlock(&world->lock);
	REQUIRE(pthread_join((*churn)->thread, NULL) == 0);
	free(*churn);
	*churn = NULL;
}

void churn_set(struct churn *churn, struct collection *collection, double rate, unsigned percent)
{
	struct world *world = churn->world;

	pthread_mutex_lock(&world->lock);
	struct churn_flow *flow = &churn->flows[collection - world->collections];
	uint64_t created = flow->created;

	*flow = (struct churn_flow){.collection = collection,
		.rate = rate,
		.percent = percent,
		.begun_ms = world_now_ms(),
		.created = created};
	pthread_mutex_unlock(&world->lock);
}
