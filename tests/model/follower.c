/* SPDX-License-Identifier: Apache-2.0 */
/* A follower (store/read/follow.h): each of its items must fit the items before it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/err.h"
#include "tests/model/world.h"

/* Opens a follower of all feeds. A follower with positions goes on from them with its feeds. */
void follower_open(struct world *world)
{
	struct follower *follower = &world->follower;
	/* For half of the followers each range of the initial state is one object. */
	struct follow_options from = {.from = follower->positions,
		.n_from = follower->n,
		.from_uuid = follower->uuid,
		.max_hold_ns = world_random(world, 2)};
	bool from_start = !follower->positions;

	for (unsigned f = 0; from_start && f < FEEDS; f++)
		follower->id[f] = world->id[f];
	follower->n = 0;
	uint32_t ids[FEEDS];
	for (unsigned f = 0; f < FEEDS; f++)
		if (follower->id[f])
			ids[follower->n++] = follower->id[f];
	int r = follow_new(world->store, ids, follower->n, &from, &follower->follow);
	MUST(r == 0, "follower: %s", err_text(r));
	if (from_start)
		memset(follower->state, 0, sizeof(follower->state));
}

void follower_close(struct world *world)
{
	struct follower *follower = &world->follower;
	const struct follow_position *positions;

	free(follower->positions);
	follower->positions = NULL;
	if (follower->follow && follow_synced(follower->follow)) {
		follower->positions = calloc(FEEDS, sizeof(*positions));
		MUST(follower->positions &&
				follow_positions(follower->follow, &positions) == follower->n,
			"positions");
		memcpy(follower->positions, positions, follower->n * sizeof(*positions));
		memcpy(follower->uuid, follow_uuid(follower->follow), sizeof(follower->uuid));
	}
	follow_free(&follower->follow);
}

static unsigned feed_number(const struct world *world, uint32_t id)
{
	for (unsigned f = 0; f < FEEDS; f++)
		if (world->follower.id[f] == id)
			return f;
	world_fail("follower: item of feed %" PRIu32, id);
}

/* Asserts that the change fits the follower's state and is the model's change of this seq. */
static void follow_change(struct world *world, unsigned f, const struct follow_item *item)
{
	int k = key_number(item->record.key);
	MUST(k >= 0 && item->seq <= world->model.committed_n, "follower: event %" PRIu64,
		item->seq);
	const struct entry *entry = &world->model.log[item->seq - 1];
	struct latest *known = &world->follower.state[f][k];

	MUST(entry->id == item->feed && entry->key == k && entry->type == item->record.type,
		"follower: event %" PRIu64 " is no such record", item->seq);
	MUST(entry->prev == (known->object.there ? known->seq : 0),
		"follower: event %" PRIu64 " follows %" PRIu64 ", the follower knew %" PRIu64,
		item->seq, entry->prev, known->seq);
	MUST(item->old.seq == entry->prev, "follower: event %" PRIu64 ": old state", item->seq);
	if (entry->prev)
		check_object(&item->old, &known->object, "old state");
	known->seq = item->seq;
	known->object = entry->object;
	known->object.there = entry->type != DELETED;
}

static void follow_initial(struct world *world, unsigned f, const struct follow_item *item)
{
	int k = key_number(item->record.key);
	MUST(k >= 0 && !world->follower.state[f][k].object.there,
		"follower: initial %.*s is known already", BYTES_ARG(item->record.key));
	const struct entry *entry = &world->model.log[item->record.seq - 1];

	MUST(entry->id == item->feed && entry->key == k, "follower: initial record %" PRIu64,
		item->record.seq);
	world->follower.state[f][k] = (struct latest){item->record.seq, entry->object};
}

static void follow_item(struct world *world, const struct follow_item *item)
{
	world->follower.items++;
	switch (item->kind) {
	case FOLLOW_INITIAL:
		follow_initial(world, feed_number(world, item->feed), item);
		break;
	case FOLLOW_CHANGE:
		follow_change(world, feed_number(world, item->feed), item);
		break;
	case FOLLOW_LAPPED:
		memset(world->follower.state[feed_number(world, item->feed)], 0,
			sizeof(world->follower.state[0]));
		world->follower.lapses++;
		break;
	default:
		break;
	}
}

/* Begins again after a feed of the follower has left the configuration. */
static void follower_begin_again(struct world *world)
{
	struct follower *follower = &world->follower;
	bool left = false;

	for (unsigned f = 0; f < FEEDS; f++)
		left |= model_left_at(&world->model, follower->id[f]) != 0;
	MUST(left, "follower: gone, but its feeds are there");
	follower_close(world);
	free(follower->positions);
	follower->positions = NULL;
	follower_open(world);
}

/* At most ITEMS; a live follower's passes of once a second come at once, by a wait. */
void world_follow(struct world *world, unsigned items)
{
	struct follow_item item;

	for (unsigned n = 0; n < items; n++) {
		int r = follow_next(world->follower.follow, &item);

		if (r == AGAIN)
			return;
		if (r == GONE) {
			follower_begin_again(world);
			return;
		}
		MUST(r == FOUND, "follower: %s", err_text(r));
		follow_item(world, &item);
	}
}

/* Returns true if the follower's state is the visible state; otherwise RET_FEED and RET_KEY name a
 * difference. */
static bool follow_is_current(struct world *world, unsigned *ret_feed, int *ret_key)
{
	struct latest state[KEYS];

	for (unsigned f = 0; f < FEEDS; f++) {
		uint32_t id = world->follower.id[f];

		*ret_feed = f;
		*ret_key = -1;
		if (id != world->id[f])
			return false;
		model_state(&world->model, id, snapshot_visible(world->snapshot, id), state);
		for (int k = 0; k < KEYS; k++) {
			const struct latest *known = &world->follower.state[f][k];

			*ret_key = k;
			if (known->object.there != state[k].object.there ||
				(known->object.there && known->seq != state[k].seq))
				return false;
		}
	}
	return true;
}

/* Opens the follower again if there are more feeds now than it follows: no item reports a new feed.
 */
static void follower_take_feeds(struct world *world)
{
	struct follower *follower = &world->follower;

	for (unsigned f = 0; f < FEEDS; f++)
		if (world->id[f] && !follower->id[f]) {
			follower_close(world);
			free(follower->positions);
			follower->positions = NULL;
			follower_open(world);
		}
}

/* A follower looks at the log at least once a second; it gives nothing while a feed is not listed.
 */
void world_follow_check(struct world *world)
{
	unsigned f = 0;
	int key = 0;

	MUST(world->held, "no index");
	for (f = 0; f < FEEDS; f++)
		if (world->id[f] && !snapshot_visible(world->snapshot, world->id[f]))
			return;
	follower_take_feeds(world);
	for (int tries = 0; tries < 1000; tries++) {
		world_follow(world, UINT32_MAX);
		if (follow_is_current(world, &f, &key))
			return;
		(void)follow_wait(world->follower.follow, 5);
	}
	world_fail("follower: feed %u key %d", f, key);
}
