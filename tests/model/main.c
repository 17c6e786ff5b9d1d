/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model test: worlds of random steps, each compared with the model after every step.
 * usage: model [--worlds N | --seconds N | --seed N] [--steps N]
 * By default it runs the same 100 worlds each time; with --seconds new ones.
 */
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/err.h"
#include "common/options.h"
#include "common/proc.h"
#include "tests/model/world.h"

struct args {
	uint64_t worlds, seconds, seed, steps;
};

static const struct option_spec specs[] = {
	{0, "worlds", OPTION_NUMBER, offsetof(struct args, worlds), "N",
		"the first N worlds; default 100"},
	{0, "seconds", OPTION_NUMBER, offsetof(struct args, seconds), "N",
		"new worlds, for N seconds"},
	{0, "seed", OPTION_NUMBER, offsetof(struct args, seed), "N", "one world: this one, loud"},
	{0, "steps", OPTION_NUMBER, offsetof(struct args, steps), "N", "per world; default 300"},
};

struct sum {
	uint64_t worlds, steps, records, items, lapses, walks, as_of_walks;
	struct call_counts counts;
};

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	(void)status;
	(void)type;
	(void)walk;
	return remove(path);
}

static void run_world(unsigned seed, uint64_t steps, bool loud, struct sum *sum)
{
	char directory[] = "/tmp/kinf-model-XXXXXX";
	struct world *world = calloc(1, sizeof(*world));

	MUST(world && mkdtemp(directory), "temporary directory");
	(void)printf("world %u\r", seed);
	(void)fflush(stdout);
	world_open(world, directory, seed);
	for (uint64_t i = 0; i < steps; i++) {
		const char *name = world_step(world);

		if (loud)
			(void)printf("step %" PRIu64 ": %s, log %zu (%zu), horizon %" PRIu64 "\n",
				i, name, world->model.n, world->model.committed_n,
				world->model.horizon);
		world_check(world);
		if (i % 50 == 49)
			world_settle(world);
	}
	world_settle(world);
	sum->worlds++;
	sum->steps += steps;
	sum->records += world->model.n;
	sum->items += world->follower.items;
	sum->lapses += world->follower.lapses;
	sum->walks += world->walks;
	sum->as_of_walks += world->as_of_walks;
	sum->counts.calls += world->counts.calls;
	sum->counts.resyncs += world->counts.resyncs;
	sum->counts.syncs += world->counts.syncs;
	sum->counts.lapses += world->counts.lapses;
	sum->counts.waits += world->counts.waits;
	sum->counts.resumed += world->counts.resumed;
	sum->counts.reads += world->counts.reads;
	sum->counts.worked += world->counts.worked;
	world_close(world);
	free(world);
	MUST(nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0, "removing %s", directory);
}

int main(int argc, char **argv)
{
	struct args args = {.worlds = 100, .steps = 300};
	const struct options_group group = {"Options", specs, ARRAY_SIZE(specs), &args};
	const struct options options = {"model", "", NULL, &group, 1, false};
	struct sum sum = {0};
	int first;
	int r = options_parse(&options, argc, argv, &first);

	if (r != 0)
		return r == END ? 0 : ((void)fprintf(stderr, "model: %s\n", err_text(r)), 2);
	uint64_t end = proc_monotonic_ns() + args.seconds * UINT64_C(1000000000);
	unsigned seed = (unsigned)proc_realtime_ns();
	if (args.seed)
		run_world((unsigned)args.seed, args.steps, true, &sum);
	else if (!args.seconds)
		for (unsigned world = 1; world <= args.worlds; world++)
			run_world(world, args.steps, false, &sum);
	while (!args.seed && proc_monotonic_ns() < end)
		run_world(seed++, args.steps, false, &sum);
	(void)printf("%" PRIu64 " worlds, %" PRIu64 " steps, %" PRIu64
		     " records, follower: %" PRIu64 " items, %" PRIu64 " lapses; %" PRIu64
		     " lists in pages, %" PRIu64 " walks as of a seq\n",
		sum.worlds, sum.steps, sum.records, sum.items, sum.lapses, sum.walks,
		sum.as_of_walks);
	(void)printf("handlers: %" PRIu64 " calls, %" PRIu64 " resyncs, %" PRIu64 " syncs, %" PRIu64
		     " lapses, %" PRIu64 " times from a cursor; %" PRIu64
		     " lists by index in them, %" PRIu64 " keys worked on, %" PRIu64
		     " waits for the index\n",
		sum.counts.calls, sum.counts.resyncs, sum.counts.syncs, sum.counts.lapses,
		sum.counts.resumed, sum.counts.reads, sum.counts.worked, sum.counts.waits);
	return 0;
}
