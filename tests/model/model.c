/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/model/model.h"

#include <stdlib.h>
#include <string.h>

void model_release(struct model *model)
{
	free(model->log);
	free(model->left);
	*model = (struct model){0};
}

void model_commit(struct model *model)
{
	model->committed_n = model->n;
	model->committed_left = model->n_left;
	memcpy(model->committed, model->feed, sizeof(model->feed));
}

void model_crash(struct model *model)
{
	while (model->n > model->committed_n) {
		const struct entry *entry = &model->log[--model->n];

		if (entry->prev && entry->key >= 0)
			model->log[entry->prev - 1].next = 0;
	}
	model->n_left = model->committed_left;
	memcpy(model->feed, model->committed, sizeof(model->feed));
	for (unsigned f = 0; f < FEEDS; f++) {
		model->feed[f].attempt = false; /* the seen objects are forgotten */
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
	entry.id = model->feed[entry.feed].id;
	if (entry.prev && entry.key >= 0)
		model->log[entry.prev - 1].next = entry.seq;
	model->log[model->n++] = entry;
	return entry.seq;
}

static uint64_t mark(struct model *model, unsigned feed, uint8_t type, uint8_t flags, uint64_t prev)
{
	return append(model,
		(struct entry){
			.feed = feed, .type = type, .flags = flags, .prev = prev, .key = -1});
}

static void change(struct model *model, unsigned feed, int key, uint8_t type, uint8_t flags,
	struct object object)
{
	struct latest *head = &model->feed[feed].head[key];
	uint64_t seq = append(model, (struct entry){.feed = feed,
					     .type = type,
					     .flags = flags,
					     .key = key,
					     .prev = head->object.there ? head->seq : 0,
					     .object = object});

	head->seq = seq;
	head->object = object;
	head->object.there = type != DELETED;
}

void model_feed_added(struct model *model, unsigned feed, uint32_t id)
{
	model->feed[feed] = (struct feed_model){.id = id};
	(void)mark(model, feed, FEED_ADDED, 0, 0);
}

void model_feed_left(struct model *model, unsigned feed)
{
	struct left_feed *left = realloc(model->left, (model->n_left + 1) * sizeof(*left));

	if (!left)
		abort();
	model->left = left;
	left += model->n_left++;
	left->id = model->feed[feed].id;
	memcpy(left->head, model->feed[feed].head, sizeof(left->head));
	left->seq = mark(model, feed, FEED_LEFT, 0, 0);
	model->feed[feed] = (struct feed_model){.id = 0};
}

uint64_t model_left_at(const struct model *model, uint32_t id)
{
	for (size_t i = 0; i < model->n_left; i++)
		if (model->left[i].id == id)
			return model->left[i].seq;
	return 0;
}

/* ---- watch -------------------------------------------------------------- */

void model_event(struct model *model, unsigned feed, int key, struct object object)
{
	struct object known = model->feed[feed].head[key].object;

	if (!object.there) {
		if (known.there && object.rv > known.rv && known.uid == object.uid)
			change(model, feed, key, DELETED, 0, object);
		else if (known.there && object.rv > known.rv)
			change(model, feed, key, DELETED, STATE_UNKNOWN, known);
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

/* ---- lists -------------------------------------------------------------- */

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

/* ---- what must be there ------------------------------------------------- */

void model_state(const struct model *model, uint32_t id, uint64_t seq, struct latest state[KEYS])
{
	memset(state, 0, KEYS * sizeof(*state));
	for (uint64_t s = 1; s <= seq && s <= model->n; s++) {
		const struct entry *e = &model->log[s - 1];

		if (e->id != id || e->key < 0)
			continue;
		state[e->key].seq = s;
		state[e->key].object = e->object;
		state[e->key].object.there = e->type != DELETED;
	}
}

enum survival model_survives(const struct model *model, const struct entry *entry)
{
	uint64_t left = model_left_at(model, entry->id);

	if (entry->seq > model->horizon)
		return IS_KEPT;
	if ((entry->type != ADDED && entry->type != MODIFIED) ||
		(entry->next && entry->next <= model->horizon) || (left && left <= model->horizon))
		return IS_GONE;
	return left == model->horizon + 1 ? MAY_BE_GONE : IS_KEPT;
}
