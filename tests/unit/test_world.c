/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated cluster's history against a model that keeps a full copy of every state. */
#include "tests/simulator/world.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "tests/simulator/jsontext.h"

#define N_KEYS   12
#define N_STATES 600

/* value[key] of the model at each RV; 0: no such object. */
struct model {
	unsigned value[N_STATES][N_KEYS];
};

static struct collection *widgets(struct world *world)
{
	return world_named(world, "widgets.example.com");
}

static void put(struct world *world, unsigned key, unsigned value)
{
	char text[200];
	int size = snprintf(text, sizeof(text),
		"{\"metadata\":{\"name\":\"k%02u\",\"namespace\":\"n\"},\"value\":%u}", key, value);

	cr_assert_gt(world_put(world, widgets(world), BYTES(text, (size_t)size)), 0);
}

static unsigned value_at(struct world *world, unsigned key, uint64_t rv)
{
	char name[16], text[16] = "";
	const struct entry *entry;
	const struct version *version;

	(void)snprintf(name, sizeof(name), "n/k%02u", key);
	entry = keylist_find(&widgets(world)->keys, name);
	version = entry ? version_at(entry, rv) : NULL;
	if (!version)
		return 0;

	struct bytes value = jsontext_get(version_text(version), "value");

	memcpy(text, value.data, value.size);
	return (unsigned)strtoul(text, NULL, 10);
}

static void expect_state(struct world *world, const struct model *model, uint64_t rv)
{
	for (unsigned key = 0; key < N_KEYS; key++)
		cr_assert_eq(value_at(world, key, rv), model->value[rv][key], "key %u at %" PRIu64,
			key, rv);
}

static void expect_history(struct world *world, const struct model *model)
{
	const struct collection *collection = widgets(world);
	unsigned live = 0;

	for (uint64_t rv = collection_floor(world, collection); rv <= world->rv; rv++)
		expect_state(world, model, rv);
	for (size_t i = collection->begin; i < collection->end; i++)
		cr_assert_gt(collection->log[i]->rv, collection->trimmed);
	for (unsigned key = 0; key < N_KEYS; key++)
		live += model->value[world->rv][key] != 0;
	cr_assert_eq(collection->live, live);
}

static void change(struct world *world, struct model *model, unsigned value)
{
	unsigned key = (unsigned)random() % N_KEYS;
	char name[16];
	uint64_t before = world->rv;

	memcpy(model->value[before + 1], model->value[before], sizeof(model->value[0]));
	if (random() % 3) {
		put(world, key, value);
		model->value[world->rv][key] = value;
		return;
	}
	(void)snprintf(name, sizeof(name), "n/k%02u", key);
	bool existed = model->value[before][key] != 0;

	cr_assert_eq(world_delete(world, widgets(world), name), existed ? before + 1 : 0);
	if (existed)
		model->value[world->rv][key] = 0;
}

Test(world, history_is_what_a_full_copy_of_every_state_says)
{
	for (unsigned seed = 1; seed <= 20; seed++) {
		CLEANUP(world_free) struct world *world = world_new();
		static struct model model;

		srandom(seed);
		memset(&model, 0, sizeof(model));
		world->settings.history = 40 + seed;
		for (unsigned step = 1; step < N_STATES - 20; step++) {
			change(world, &model, step);
			if (random() % 50 == 0)
				world_compact(world, world->rv - (uint64_t)random() % 5);
			if (random() % 60 == 0)
				world_save(world);
			if (random() % 60 == 0)
				(void)world_restore(world);
			if (random() % 10 == 0)
				expect_history(world, &model);
		}
		expect_history(world, &model);
	}
}

Test(world, pin_keeps_a_state_until_it_is_too_far_behind)
{
	CLEANUP(world_free) struct world *world = world_new();
	struct pin pin = {0};

	world->settings.history = 10;
	put(world, 1, 1);
	pin_set(widgets(world), &pin, world->rv);
	for (unsigned value = 2; value < 20; value++)
		put(world, 1, value);
	world_compact(world, 0);
	cr_assert_not(pin.lost);
	cr_assert_eq(value_at(world, 1, pin.rv), 1);
	cr_assert_gt(collection_floor(world, widgets(world)), pin.rv);
	for (unsigned value = 20; value < 40; value++)
		put(world, 1, value);
	cr_assert(pin.lost);
	cr_assert_leq(widgets(world)->end - widgets(world)->begin, 10);
	pin_drop(&pin);
	cr_assert_null(widgets(world)->pins);
}

Test(world, trimmed_deletion_takes_the_key_with_it)
{
	CLEANUP(world_free) struct world *world = world_new();

	put(world, 1, 1);
	cr_assert_gt(world_delete(world, widgets(world), "n/k01"), 0);
	cr_assert_eq(widgets(world)->keys.count, 1);
	world_compact(world, 0);
	cr_assert_eq(widgets(world)->keys.count, 0);
}

Test(world, object_without_name_or_namespace_is_refused)
{
	CLEANUP(world_free) struct world *world = world_new();
	uint64_t rv = world->rv;

	cr_assert_eq(world_put(world, widgets(world), BYTES_LIT("{\"metadata\":{}}")), 0);
	cr_assert_eq(
		world_put(world, widgets(world), BYTES_LIT("{\"metadata\":{\"name\":\"a\"}}")), 0);
	cr_assert_eq(world->rv, rv);
}
