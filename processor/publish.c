/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/publish.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "store/ring/doorbell.h"
#include "store/ring/ring.h"
#include "store/ring/taken.h"

#define PUBLISH_MAGIC  0x5055424cu
#define EVENT_CAPACITY (16u << 20)

struct publish {
	uint32_t magic;
	const struct processor *p;
	uint8_t journal[16];
	struct ring *ring; /* NULL: none could be made, and followers read the log */
	struct taken *taken; /* NULL: none could be made, and readers poll the index */
	uint64_t seq;      /* taken by the index */
	bool warned;       /* of that */
	uint64_t collected;
};

int publish_open(const struct processor *p, const uint8_t uuid[16], uint64_t taken,
	struct publish **ret_publish)
{
	CLEANUP(publish_close) struct publish *publish = calloc(1, sizeof(*publish));
	if (!publish)
		return err_set(-ENOMEM, "publishing");
	publish->magic = PUBLISH_MAGIC;
	publish->p = p;
	publish->seq = taken;
	memcpy(publish->journal, uuid, sizeof(publish->journal));
	publish_check(publish);
	*ret_publish = TAKE(publish);
	return 0;
}

void publish_check(struct publish *publish)
{
	if (!publish)
		return;
	CHECK_OBJ(publish, PUBLISH_MAGIC);
	struct home *home = publish->p->home;
	int r = publish->taken ? NOT_FOUND
			       : taken_create(home_runtime_fd(home), home_file_mode(home),
					 publish->seq, &publish->taken);

	if (r == 0)
		home_guard_file(home, TAKEN_FILE);
	err_ignore(r, "readers poll the index without the word, and it is tried again");
	if (publish->ring) {
		ring_heartbeat(publish->ring);
		return;
	}
	r = ring_create(home_runtime_fd(home), EVENT_RING, EVENT_CAPACITY, publish->journal,
		home_file_mode(home), &publish->ring);

	if (r == 0)
		home_guard_file(home, EVENT_RING);
	if (r == 0 && publish->warned)
		LOG(event_ring_recreated, .directory = home_runtime(home));
	if (r < 0 && !publish->warned)
		LOG(event_ring_missing, .error = err_text(r));
	publish->warned = r < 0;
	err_ignore(r, "followers read the log without the ring, and it is tried again");
}

void publish_close(struct publish **publish_pointer)
{
	struct publish *publish = TAKE(*publish_pointer);

	if (!publish)
		return;
	CHECK_OBJ(publish, PUBLISH_MAGIC);
	ring_close(&publish->ring);
	taken_close(&publish->taken);
	publish->magic = 0;
	free(publish);
}

static void publish_put(struct publish *publish, const struct ring_entry *entry)
{
	CHECK_OBJ(publish, PUBLISH_MAGIC);
	if (publish->ring)
		ring_put(publish->ring, entry);
	publish->collected++;
}

void publish_record(struct publish *publish, const struct record *record)
{
	if (publish)
		publish_put(publish, &(struct ring_entry){.seq = record->seq,
				     .feed = record->feed,
				     .type = record->type,
				     .flags = record->flags,
				     .key = record->key});
}

void publish_list(struct publish *publish, const struct record *end, uint64_t begin)
{
	if (publish)
		publish_put(publish, &(struct ring_entry){.seq = end->seq,
				     .begin = begin,
				     .feed = end->feed,
				     .type = RING_LIST,
				     .flags = end->flags});
}

void publish_commit(struct publish *publish, uint64_t taken)
{
	if (!publish)
		return;
	CHECK_OBJ(publish, PUBLISH_MAGIC);
	publish->seq = taken;
	if (publish->taken)
		taken_publish(publish->taken, taken);
	if (publish->ring)
		ring_publish(publish->ring, taken);
	doorbell_ring(publish->p->doorbell);
	stats_add(publish->p->stats, STAT_PUBLISHED, publish->collected);
	publish->collected = 0;
}

void publish_announce(struct publish *publish)
{
	if (publish && publish->ring)
		ring_announce(publish->ring);
}
