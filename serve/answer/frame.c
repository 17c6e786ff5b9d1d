/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames: the lines that the record of one seq gives to the watches of one group, kept so that
 * they are made once for all of them. A worker keeps the frames that were used last, until all
 * watches of their group have caught up. A watch whose frame is not kept any more, because it
 * lags, makes it again from the journal.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/hash.h"
#include "serve/answer/answer_internal.h"

#define FRAMES_BYTES ((size_t)64 << 20) /* of all workers */
#define FRAMES_FREED ((size_t)1 << 20)  /* less is soon used again */

struct frame_place {
	uint32_t hash;
	struct answer_frame *frame;
};

struct frame_key {
	struct answer_group *group;
	uint64_t seq;
};

static bool frame_is(const void *item, const void *key, const void *arg)
{
	const struct answer_frame *frame = ((const struct frame_place *)item)->frame;
	const struct frame_key *wanted = key;

	(void)arg;
	return frame->group == wanted->group && frame->seq == wanted->seq;
}

static uint64_t frame_hash(const struct frame_key *key)
{
	return hash_u64(key->seq, (uintptr_t)key->group);
}

void answer_frames_init(struct answer_frames *frames, const struct answer *answer)
{
	*frames = (struct answer_frames){.room = FRAMES_BYTES / answer->n_workers,
		.kept = metrics_cell(answer->metrics, METRIC_FRAME_BYTES, NULL),
		.table = HASHTABLE_INIT(struct frame_place, frame_is, NULL)};
}

static void frame_join_group(struct answer_frame *frame)
{
	frame->at = &frame->group->frames;
	frame->next = *frame->at;
	if (frame->next)
		frame->next->at = &frame->next;
	*frame->at = frame;
}

static void frame_leave_group(struct answer_frame *frame)
{
	*frame->at = frame->next;
	if (frame->next)
		frame->next->at = frame->at;
}

static void frame_unlink(struct answer_frames *frames, struct answer_frame *frame)
{
	*(frame->newer ? &frame->newer->older : &frames->newest) = frame->older;
	*(frame->older ? &frame->older->newer : &frames->oldest) = frame->newer;
}

static void frame_link(struct answer_frames *frames, struct answer_frame *frame)
{
	frame->newer = NULL;
	frame->older = frames->newest;
	*(frame->older ? &frame->older->newer : &frames->oldest) = frame;
	frames->newest = frame;
}

static void frame_drop(struct answer_frames *frames, struct answer_frame *frame)
{
	const struct frame_key key = {frame->group, frame->seq};

	hashtable_remove(&frames->table, hashtable_find(&frames->table, frame_hash(&key), &key));
	frame_unlink(frames, frame);
	frame_leave_group(frame);
	frames->bytes -= sizeof(*frame) + frame->size;
	metric_sub(frames->kept, sizeof(*frame) + frame->size);
	free(frame);
}

void answer_frames_release(struct answer_frames *frames)
{
	while (frames->oldest)
		frame_drop(frames, frames->oldest);
	hashtable_release(&frames->table);
}

void answer_frames_drop(struct answer_worker *worker, struct answer_group *group)
{
	size_t before = worker->frames.bytes;

	while (group->frames)
		frame_drop(&worker->frames, group->frames);
	if (before - worker->frames.bytes >= FRAMES_FREED)
		serve_worker_freed(worker->worker, before - worker->frames.bytes);
}

/* Keeps a frame of LINES. Returns NULL without memory. */
static struct answer_frame *frame_keep(struct answer_frames *frames, const struct frame_key *key,
	const struct record *record, int n, struct bytes lines)
{
	struct answer_frame *frame = malloc(sizeof(*frame) + lines.size);
	struct frame_place *place;

	if (!frame)
		return NULL;
	*frame = (struct answer_frame){.group = key->group,
		.seq = key->seq,
		.n = (unsigned)n,
		.size = lines.size,
		.of_watch = record->flags & RECORD_FINAL_STATE_UNKNOWN};
	if (record->rv.size < sizeof(frame->rv))
		memcpy(frame->rv, record->rv.data, record->rv.size);
	if (lines.size)
		memcpy(frame->lines, lines.data, lines.size);
	int r = hashtable_add(&frames->table, frame_hash(key), "the frames of watches", &place);
	if (r < 0) {
		err_ignore(r, "the caller reports it");
		free(frame);
		return NULL;
	}
	place->frame = frame;
	frame_link(frames, frame);
	frame_join_group(frame);
	frames->bytes += sizeof(*frame) + frame->size;
	metric_add(frames->kept, sizeof(*frame) + frame->size);
	while (frames->bytes > frames->room && frames->oldest != frame)
		frame_drop(frames, frames->oldest);
	return frame;
}

/* Makes the lines of record SEQ for the watches of REQUEST's group. */
static int frame_make(struct answer_request *request, const struct frame_key *key,
	const struct answer_frame **ret_frame)
{
	CLEANUP(buf_release) struct buf lines = BUF_INIT;
	struct answer_frames *frames = &request->worker->frames;
	/* Each watch makes its first table itself. */
	struct answer_encoder encoder = {.request = request, .columns_given = true};
	struct record record;
	int r = answer_event_read(request, key->seq, &record);

	if (r != 0)
		return r;
	r = answer_event_record(&encoder, &record, record.rv, &lines);
	if (r < 0 || r == LAPPED)
		return r;
	*ret_frame = frame_keep(frames, key, &record, r, buf_bytes(&lines));
	return *ret_frame ? 0 : err_set(-ENOMEM, "an event of a watch");
}

int answer_frame(struct answer_request *request, struct answer_group *group, uint64_t seq,
	bool *held, const struct answer_frame **ret_frame)
{
	struct answer_frames *frames = &request->worker->frames;
	const struct frame_key key = {group, seq};
	struct frame_place *place = hashtable_find(&frames->table, frame_hash(&key), &key);

	if (place) {
		*ret_frame = place->frame;
		frame_unlink(frames, place->frame);
		frame_link(frames, place->frame);
		return 0;
	}
	if (!*held) {
		int r = answer_hold_log(request->worker);

		if (r != 0)
			return r;
		*held = true;
	}
	return frame_make(request, &key, ret_frame);
}
