/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of the processor: it applies records, is killed, gets another configuration; and failpoints
 * of both daemons. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/err.h"
#include "common/failpoint.h"
#include "tests/model/world.h"

/* Two sets of indexes; a reload changes from one to the other. */
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

void processor_configure(struct world *world)
{
	const char *text = configurations[world_random(world, 2)];
	int r;

	config_free(&world->config);
	r = config_parse(text, strlen(text), "model.yaml", &world->config);
	MUST(r == 0, "configuration: %s", err_text(r));
	world->config->map_bytes = 1u << 30;
	world->processor.config = world->config;
	world->processor.config_version++;
}

/*
 * Half the time the readers die with it: they then go on from their positions or cursors. Else they
 * live through it. One process can't open an environment for writing after it opened it for
 * reading: an index opened by readers before the processor is locked then, and built again.
 */
void processor_open(struct world *world, bool index_damaged)
{
	if (world->store && world_random(world, 2))
		world_readers_close(world);
	int r = pair_open(&world->processor, index_damaged ? "it is damaged" : NULL, &world->pair);

	MUST(r == 0 || r == ERR_FAILPOINT, "pair: %s", err_text(r));
	if (!world->store)
		world_readers_open(world);
}

/* Closes the processor after an error and opens it again, as the daemon does. */
bool processor_step(struct world *world)
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

void step_processor_dies(struct world *world)
{
	pair_close(&world->pair);
	if (world_random(world, 2))
		processor_configure(world);
	processor_open(world, world_random(world, 4) == 0);
}

void step_reload(struct world *world)
{
	processor_configure(world);
	if (world->pair && pair_check(world->pair) < 0)
		pair_close(&world->pair);
}

void step_processor(struct world *world)
{
	for (unsigned n = world_random(world, 4); n > 0; n--)
		(void)processor_step(world);
}

/* Arms a failpoint for one hit; "error" makes its call fail. */
void step_failpoint(struct world *world)
{
	static const char *const points[] = {"", "", "journal.before_commit",
		"journal.after_commit", "journal.trim", "journal.trimmed", "index.before_commit",
		"index.after_commit", "index.list_apply", "index.backfill", "rebuild.begun",
		"rebuild.filled", "rebuild.switched"};
	const char *point = points[world_random(world, sizeof(points) / sizeof(points[0]))];
	char text[64];

	(void)snprintf(text, sizeof(text), *point ? "%s:1:error" : "", point);
	(void)setenv("KINF_FAIL", text, 1);
	MUST(failpoint_setup() == 0, "failpoints: %s", text);
}
