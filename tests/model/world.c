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
#include "reader/handle.h"
#include "reader/kinf_queue.h"
#include "store/verify/verify.h"

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
	const char *text = key.data;
	char want[16];

	if (key.size != 7) /* "ns0/k00" */
		return -1;
	int k = (text[5] - '0') * 10 + text[6] - '0';
	if (k < 0 || k >= KEYS)
		return -1;
	key_text(k, want);
	return bytes_equal(key, bytes_str(want)) ? k : -1;
}

/* ---- opening and closing ------------------------------------------------ */

void world_open(struct world *world, const char *directory, unsigned seed)
{
	struct home_options options = {.create = true, .runtime_dir = directory};
	char store[256];

	*world = (struct world){.chance = seed, .directory = strdup(directory)};
	(void)snprintf(store, sizeof(store), "%s/store", directory);
	int r = home_open(store, &options, &world->home);
	MUST(r == 0, "home: %s", err_text(r));
	watchers_open(world);
	processor_configure(world);
	world->processor.home = world->home;
	reflector_open(world);
	step_feed_comes(world);
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
	pages_end(world);
	free(world->follower.positions);
	free(world->directory);
}

void world_readers_open(struct world *world)
{
	struct store_options options = {.check = true};
	int r = store_open(home_path(world->home), &options, &world->store);

	MUST(r == 0, "store: %s", err_text(r));
	r = kinf_open(home_path(world->home), &world->kinf);
	MUST(r == 0, "libkinf: %s", kinf_error(world->kinf));
	MUST(kinf_set_check(world->kinf, 1) == 0, "libkinf: %s", kinf_error(world->kinf));
	world->kinf->index_wait_ns = 0; /* nothing moves while a handler waits */
	MUST(kinf_queue_new(NULL, &world->queue) == 0, "queue");
	memset(world->queued, 0, sizeof(world->queued));
	follower_open(world);
}

void world_readers_close(struct world *world)
{
	watchers_kill(world);
	kinf_queue_free(&world->queue);
	as_of_walk_close(world);
	follower_close(world);
	kinf_snapshot_close(&world->reads);
	kinf_close(&world->kinf);
	snapshot_close(&world->snapshot);
	world->held = false;
	store_close(&world->store);
}

/* ---- steps -------------------------------------------------------------- */

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
		{"cluster", 80, step_cluster},
		{"watch", 40, step_watch},
		{"replay", 4, step_replay},
		{"list begin", 20, step_list_begin},
		{"list items", 30, step_list_items},
		{"list end", 20, step_list_end},
		{"list abandon", 2, step_list_abandon},
		{"commit", 30, step_commit},
		{"reflector dies", 2, step_reflector_dies},
		{"processor", 40, step_processor},
		{"processor dies", 2, step_processor_dies},
		{"reload", 2, step_reload},
		{"failpoint", 2, step_failpoint},
		{"trim", 8, step_trim},
		{"feed goes", 1, step_feed_goes},
		{"feed comes", 10, step_feed_comes},
		{"follow", 10, step_follow},
		{"read", 20, step_read},
		{"handlers", 80, step_watchers},
		{"worker", 20, step_worker},
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

static void say_fault(void *arg, const char *sentence)
{
	(void)arg;
	world_fail("verify: %s", sentence);
}

static void verify(struct world *world)
{
	struct verify_options options = {.deep = true, .fault = say_fault};
	struct verify_report report;
	int r = verify_store(home_path(world->home), &options, &report);

	MUST(r == 0, "verify: %s", err_text(r));
}

void world_settle(struct world *world)
{
	(void)setenv("KINF_FAIL", "", 1);
	MUST(failpoint_setup() == 0, "failpoints off");
	step_commit(world);
	while (processor_step(world))
		;
	world_check(world);
	verify(world);
	world_follow_check(world);
	watchers_settle(world);
}
