/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/model/model.h"

#include <stdlib.h>
#include <string.h>

void model_release(struct model *model)
{
	free(model->log);
	*model = (struct model){0};
}

void model_commit(struct model *model)
{
	model->committed_n = model->n;
	memcpy(model->committed, model->feed, sizeof(model->feed));
}

void model_crash(struct model *model)
{
	model->n = model->committed_n;
	memcpy(model->feed, model->committed, sizeof(model->feed));
	for (unsigned f = 0; f < FEEDS; f++) {
		model->feed[f].attempt = false; /* what was seen is forgotten */
		model->committed[f].attempt = false;
	}
}

static uint64_t append(struct model *model, struct entry entry)
{
	if (model->n == model->capacity) {
		model->capacity = model->capacity ? model->capacity * 2 : 1024;
		model->log = realloc(model->log, model->capacity * sizeof(*model->log));
		if (!model->log)
			abort();
	}
	entry.seq = model->n + 1;
	model->log[model->n++] = entry;
	return entry.seq;
}

static uint64_t mark(struct model *model, unsigned feed, uint8_t type, uint8_t flags, uint64_t prev)
{
	return append(model,
		(struct entry){.feed = feed, .type = type, .flags = flags, .prev = prev, .key = -1});
}

static void change(struct model *model, unsigned feed, int key, uint8_t type, uint8_t flags,
	struct object object)
{
	struct latest *head = &model->feed[feed].head[key];
	uint64_t seq = append(model,
		(struct entry){.feed = feed, .type = type, .flags = flags, .key = key,
			.prev = head->object.there ? head->seq : 0, .object = object});

	head->seq = seq;
	head->object = object;
	head->object.there = type != DELETED;
}

void model_feed_added(struct model *model, unsigned feed)
{
	model->feed[feed].exists = true;
	(void)mark(model, feed, FEED_ADDED, 0, 0);
}

/* ---- watch ---- */

void model_event(struct model *model, unsigned feed, int key, struct object object)
{
	struct object known = model->feed[feed].head[key].object;

	if (!object.there) {
		if (known.there && known.uid == object.uid && object.rv > known.rv)
			change(model, feed, key, DELETED, 0, object);
		return;
	}
	if (known.there && object.rv <= known.rv)
		return; /* seen before */
	if (known.there && known.uid != object.uid) {
		change(model, feed, key, DELETED, STATE_UNKNOWN, known);
		known.there = false;
	}
	change(model, feed, key, known.there ? MODIFIED : ADDED, 0, object);
}

/* ---- lists ---- */

int model_key_in_order(int i)
{
	int order = 0;

	for (int group = 0; group < KEY_GROUPS; group++)
		for (int key = group; key < KEYS; key += KEY_GROUPS)
			if (order++ == i)
				return key;
	return -1;
}

static void open_bracket(struct model *model, unsigned feed)
{
	struct feed_model *f = &model->feed[feed];

	if (!f->list_begin)
		f->list_begin = mark(model, feed, LIST_BEGIN, 0, 0);
}

void model_list_begin(struct model *model, unsigned feed)
{
	struct feed_model *f = &model->feed[feed];

	memset(f->seen, 0, sizeof(f->seen));
	f->attempt = true;
	if (!f->listed)
		open_bracket(model, feed); /* a first list always has its bracket */
}

void model_list_item(struct model *model, unsigned feed, int key, struct object object)
{
	struct feed_model *f = &model->feed[feed];
	struct object known = f->head[key].object;

	f->seen[key] = true;
	if (known.there && known.uid == object.uid && known.rv == object.rv)
		return;
	open_bracket(model, feed);
	if (known.there && known.uid != object.uid) {
		change(model, feed, key, DELETED, STATE_UNKNOWN, known);
		known.there = false;
	}
	change(model, feed, key, known.there ? MODIFIED : ADDED, 0, object);
}

static void close_bracket(struct model *model, unsigned feed, uint8_t flags)
{
	struct feed_model *f = &model->feed[feed];

	if (f->list_begin)
		(void)mark(model, feed, LIST_END, flags, f->list_begin);
	f->list_begin = 0;
	f->attempt = false;
}

void model_list_end(struct model *model, unsigned feed)
{
	struct feed_model *f = &model->feed[feed];

	for (int i = 0; i < KEYS; i++) {
		int key = model_key_in_order(i);

		if (!f->head[key].object.there || f->seen[key])
			continue;
		open_bracket(model, feed);
		change(model, feed, key, DELETED, STATE_UNKNOWN, f->head[key].object);
	}
	if (f->owed)
		open_bracket(model, feed);
	close_bracket(model, feed, 0);
	f->owed = false;
	f->listed = true;
}

void model_list_abandon(struct model *model, unsigned feed)
{
	close_bracket(model, feed, ABANDONED);
	model->feed[feed].owed = true;
}

/* ---- what must be there ---- */

void model_state(const struct model *model, unsigned feed, uint64_t seq, struct latest state[KEYS])
{
	memset(state, 0, KEYS * sizeof(*state));
	for (uint64_t s = 1; s <= seq && s <= model->n; s++) {
		const struct entry *e = &model->log[s - 1];

		if (e->feed != feed || e->key < 0)
			continue;
		state[e->key].seq = s;
		state[e->key].object = e->object;
		state[e->key].object.there = e->type != DELETED;
	}
}

bool model_survives(const struct model *model, const struct entry *entry)
{
	if (entry->seq > model->horizon)
		return true;
	if (entry->type != ADDED && entry->type != MODIFIED)
		return false;
	for (uint64_t s = entry->seq + 1; s <= model->horizon; s++) {
		const struct entry *later = &model->log[s - 1];

		if (later->feed == entry->feed && later->key == entry->key)
			return false;
	}
	return true;
}
