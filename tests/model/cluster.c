/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the cluster, and its objects as JSON. */
#include <inttypes.h>
#include <stdlib.h>

#include "tests/model/world.h"

static void happen(struct cluster_feed *feed, int key, struct object object)
{
	if (feed->n == feed->capacity) {
		feed->capacity = feed->capacity ? feed->capacity * 2 : 256;
		feed->history = realloc(feed->history, feed->capacity * sizeof(*feed->history));
		MUST(feed->history, "no memory");
	}
	feed->history[feed->n++] = (struct cluster_event){key, object};
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

void step_cluster(struct world *world)
{
	for (unsigned n = 1 + world_random(world, 6); n > 0; n--)
		change_one(world);
}

void cluster_json(unsigned f, int key, const struct object *object, struct buf *out)
{
	buf_reset(out);
	buf_printf(out,
		"{\"kind\":\"%s\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"k%02d\","
		"\"namespace\":\"ns%d\",\"uid\":\"u%" PRIu64 "\",\"resourceVersion\":\"%" PRIu64
		"\",\"labels\":{\"n\":\"%u\"}},\"spec\":{\"nodeName\":\"node-%u\",\"fill\":\"%*s\"}"
		"}",
		f ? "Widget" : "Pod", key, key % KEY_GROUPS, object->uid, object->rv, object->node,
		object->node, key % 4 ? 10 : 3000, "");
}
