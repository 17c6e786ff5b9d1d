/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reads of handlers and workers. A handler, and a worker with a handler's key from a work
 * queue, take a snapshot and list by index: the snapshot must hold their event, and each value of
 * the index must list exactly the objects of the model's state as of it. The index may be behind
 * the event, and its processor dead.
 */
#include <inttypes.h>
#include <stdio.h>

#include "common/err.h"
#include "reader/handle.h"
#include "reader/kinf_queue.h"
#include "tests/model/world.h"

/* Renews the snapshot of the calling handler or worker. Returns false if the index is behind its
 * event and no processor runs. */
static bool cached_renew(struct world *world)
{
	int r, stepped = FOUND;

	/* If the index is behind, the processor has to take the event, unless it has died. */
	while ((r = world->reads ? kinf_snapshot_renew(world->reads)
				 : kinf_snapshot_open(world->kinf, &world->reads)) == KINF_AGAIN &&
		stepped == FOUND) {
		world->counts.waits++;
		stepped = world->pair ? pair_step(world->pair) : ERR_FAILPOINT;
		if (stepped == ERR_FAILPOINT || stepped == LAPPED)
			pair_close(&world->pair);
	}
	if (r == KINF_AGAIN && !world->pair)
		return false;
	MUST(r == 0, "cache: snapshot: %s", kinf_error(world->kinf));
	return true;
}

/* Lists by a value of the objects of NODE only. */
static void cached_list(
	struct world *world, unsigned f, unsigned node, struct kinf_listing **ret_list)
{
	char value[16];

	(void)snprintf(value, sizeof(value), "node-%u", node);
	int r = kinf_by_index(world->reads, world_feeds[f], "node", value, ret_list);
	if (r == KINF_NO_INDEX ||
		r == KINF_AGAIN) { /* it is not in this configuration, or is filled */
		(void)snprintf(value, sizeof(value), "n=%u", node);
		r = kinf_by_index(world->reads, world_feeds[f], "label", value, ret_list);
	}
	MUST(r == 0, "cache: by index: %d (%s)", r, kinf_error(world->kinf));
}

static void cached_compare(struct world *world, unsigned f, const struct latest state[KEYS])
{
	for (unsigned node = 0; node < NODES; node++) {
		struct kinf_listing *list;
		struct kinf_object object;
		bool listed[KEYS] = {false};
		int r;

		cached_list(world, f, node, &list);
		while ((r = kinf_list_next(list, &object)) == KINF_FOUND) {
			int k = key_number(BYTES(object.key, object.key_size));

			MUST(k >= 0 && !listed[k], "cache: node-%u lists '%.*s'", node,
				(int)object.key_size, object.key);
			listed[k] = true;
			MUST(state[k].object.there && state[k].seq == object.event,
				"cache: node-%u lists %.*s at %" PRIu64 ", it is at %" PRIu64, node,
				(int)object.key_size, object.key, object.event, state[k].seq);
		}
		MUST(r == KINF_END, "cache: by index: %d (%s)", r, kinf_error(world->kinf));
		kinf_list_close(&list);
		for (int k = 0; k < KEYS; k++)
			MUST(listed[k] == (state[k].object.there && state[k].object.node == node),
				"cache: node-%u %s key %d", node, listed[k] ? "lists" : "lacks", k);
	}
	world->counts.reads++;
}

bool cached_check(struct world *world, unsigned f, uint32_t id, uint64_t event)
{
	struct latest state[KEYS];

	if (!cached_renew(world))
		return false;
	MUST(kinf_snapshot_event(world->reads) >= event,
		"cache: given %" PRIu64 ", the snapshot is at %" PRIu64, event,
		kinf_snapshot_event(world->reads));
	/* A feed outside the configuration is no longer read by its name. */
	if (world->model.committed[f].id == id && !model_left_at(&world->model, id)) {
		uint64_t visible = snapshot_visible(world->reads->snapshot, id);

		MUST(visible >= event, "cache: given %" PRIu64 ", '%s' is visible to %" PRIu64,
			event, world_feeds[f], visible);
		model_state(&world->model, id, visible, state);
		cached_compare(world, f, state);
	}
	MUST(kinf_snapshot_reset(world->reads) == 0, "cache: reset");
	return true;
}

/* ---- a work queue ------------------------------------------------------- */

void worker_add(struct world *world, unsigned f, uint32_t id, int key, uint64_t event)
{
	const uint8_t item[2] = {(uint8_t)f, (uint8_t)key};
	struct queued *queued = &world->queued[f][key];

	if (queued->id != id || queued->event < event)
		*queued = (struct queued){id, event};
	MUST(kinf_queue_add(world->queue, item, sizeof(item)) == 0, "queue");
}

void step_worker(struct world *world)
{
	const char *item;
	size_t size;

	for (unsigned n = 1 + world_random(world, 4);
		n > 0 && kinf_queue_get(world->queue, 0, &item, &size) == KINF_FOUND; n--) {
		uint8_t key[2] = {(uint8_t)item[0], (uint8_t)item[1]};
		const struct queued queued = world->queued[key[0]][key[1]];

		MUST(kinf_handled_event() >= queued.event,
			"worker: a key of event %" PRIu64 " came with %" PRIu64, queued.event,
			kinf_handled_event());
		/* After a failed read: later again. */
		if (!cached_check(world, key[0], queued.id, queued.event))
			MUST(kinf_queue_add(world->queue, key, sizeof(key)) == 0, "queue");
		MUST(kinf_queue_done(world->queue, key, sizeof(key)) == 0, "queue");
		MUST(kinf_handled_event() == 0, "worker: done, and waits for an event");
		world->counts.worked++;
	}
}
