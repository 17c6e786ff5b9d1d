/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/model/reads.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "tests/model/world.h"

int reads_expected(struct world *world, uint32_t id, const char *index)
{
	struct index_definition definition;

	if (!id)
		return KINF_NO_FEED;
	if (!snapshot_visible(world->snapshot, id))
		return KINF_AGAIN;
	int r = index ? snapshot_definition(world->snapshot, id, index, &definition) : FOUND;
	return r == FOUND ? KINF_FOUND : r == AGAIN ? KINF_AGAIN : KINF_NO_INDEX;
}

/* ---- the values of an index --------------------------------------------- */

struct counts {
	uint64_t of[NODES];
	unsigned n;
};

static int take_value(void *arg, const char *value, size_t size, uint64_t count)
{
	struct counts *counts = arg;
	unsigned node = size == 6 ? (unsigned)(value[5] - '0') : NODES; /* "node-N" */

	MUST(node < NODES, "values: '%.*s'", (int)size, value);
	counts->of[node] = count;
	counts->n++;
	return 0;
}

static void check_values(struct world *world, unsigned f, uint32_t id)
{
	struct counts found = {.n = 0}, wanted = {.n = 0};
	struct latest state[KEYS];
	int want = reads_expected(world, id, "node");
	int r = kinf_index_values(world->reads, world_feeds[f], "node", NULL, take_value, &found);

	MUST(r == want, "values: %d (%s), wanted %d", r, kinf_error(world->kinf), want);
	if (r != KINF_FOUND)
		return;
	model_state(&world->model, id, snapshot_visible(world->snapshot, id), state);
	for (int k = 0; k < KEYS; k++)
		if (state[k].object.there)
			wanted.n += wanted.of[state[k].object.node]++ == 0;
	MUST(found.n == wanted.n && memcmp(found.of, wanted.of, sizeof(found.of)) == 0,
		"values: %u, wanted %u, or other counts", found.n, wanted.n);
}

/* ---- history ------------------------------------------------------------ */

struct history_check {
	uint64_t *seq; /* of the due changes */
	size_t n, given;
};

static int take_change(void *arg, const struct kinf_change *change)
{
	struct history_check *check = arg;

	MUST(check->given < check->n && check->seq[check->given] == change->event,
		"history: %s at %" PRIu64 ", wanted %" PRIu64, change->type, change->event,
		check->given < check->n ? check->seq[check->given] : 0);
	check->given++;
	return 0;
}

/* Collects the expected history: the state before the horizon, then the changes after it. */
static void expect_history(struct world *world, uint32_t id, int key, struct history_check *check)
{
	uint64_t visible = snapshot_visible(world->snapshot, id);
	uint64_t horizon = snapshot_horizon(world->snapshot), last = 0;

	for (uint64_t seq = 1; seq <= visible; seq++) {
		const struct entry *entry = &world->model.log[seq - 1];

		if (entry->id != id || entry->key != key)
			continue;
		if (seq > horizon && !check->n && entry->prev)
			check->seq[check->n++] = entry->prev;
		if (seq > horizon)
			check->seq[check->n++] = seq;
		last = entry->type == DELETED ? 0 : seq;
	}
	if (!check->n && last)
		check->seq[check->n++] = last;
}

static void check_history(struct world *world, unsigned f, uint32_t id)
{
	int key = (int)world_random(world, KEYS);
	AUTO_FREE uint64_t *seqs = calloc(world->model.n + 2, sizeof(*seqs));
	struct history_check check = {.seq = seqs};
	char namespace_[16], name[16];
	int want = reads_expected(world, id, NULL);

	MUST(seqs, "no memory");
	(void)snprintf(namespace_, sizeof(namespace_), "ns%d", key % KEY_GROUPS);
	(void)snprintf(name, sizeof(name), "k%02d", key);
	if (want == KINF_FOUND)
		expect_history(world, id, key, &check);
	int r = kinf_history(world->reads, world_feeds[f], namespace_, name, take_change, &check);
	if (want == KINF_FOUND && !check.n)
		want = KINF_NOT_FOUND;
	MUST(r == want, "history: %d (%s), wanted %d", r, kinf_error(world->kinf), want);
	MUST(check.given == check.n, "history: %zu changes, wanted %zu", check.given, check.n);
}

/* ---- the step ----------------------------------------------------------- */

void step_read(struct world *world)
{
	unsigned f = world_random(world, FEEDS);
	uint32_t id = world->model.committed[f].id;
	int r = world->reads ? kinf_snapshot_renew(world->reads)
			     : kinf_snapshot_open(world->kinf, &world->reads);

	MUST(r == 0 || r == KINF_AGAIN, "reads: %s", kinf_error(world->kinf));
	world->held = world_renew_snapshot(world);
	MUST(world->held == (r == 0), "reads: a snapshot for one and not for the other");
	if (r != 0)
		return;
	for (unsigned n = world_random(world, 4); n > 0; n--)
		pages_step(world);
	if (world_random(world, 4) == 0)
		check_values(world, f, id);
	if (world_random(world, 4) == 0)
		check_history(world, f, id);
	MUST(kinf_snapshot_reset(world->reads) == 0, "reads: %s", kinf_error(world->kinf));
}
