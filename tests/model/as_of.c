/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads as of an earlier seq. After each step the state of a random feed as of a random seq is
 * compared with the model's. Also a walk is always under way, a few objects of it in each step. So
 * any other step may happen between two of its slices. It must show the state of its seq until its
 * history is trimmed.
 */
#include <inttypes.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "tests/model/world.h"

/* Returns the seq of the state seen by readers at SEQ: if a list was open then, the seq before its
 * begin. */
static uint64_t seen_at(const struct model *model, uint32_t id, uint64_t seq, uint64_t taken)
{
	uint64_t begin = 0;

	for (uint64_t s = 1; s <= taken; s++) {
		const struct entry *entry = &model->log[s - 1];

		if (entry->id != id)
			continue;
		if (entry->type == LIST_BEGIN && s <= seq)
			begin = s;
		if (entry->type == LIST_END && s <= seq)
			begin = 0;
	}
	return begin ? begin - 1 : seq;
}

/* Returns the expected result of as_of_renew(). */
static int expected(struct world *world, uint32_t id, uint64_t seq)
{
	const struct model *model = &world->model;
	uint64_t horizon = snapshot_horizon(world->snapshot), listed = 0;

	if (model_left_at(model, id) && model_left_at(model, id) <= model->committed_n)
		return GONE;
	if (seq > snapshot_taken(world->snapshot) || !snapshot_visible(world->snapshot, id))
		return LAPPED;
	seq = seen_at(model, id, seq, snapshot_taken(world->snapshot));
	for (uint64_t s = model->committed_n; s > 0; s--) {
		const struct entry *entry = &model->log[s - 1];

		if (entry->id != id)
			continue;
		if (s > seq && s <= horizon)
			return LAPPED;
		if (entry->type == LIST_END && !(entry->flags & ABANDONED))
			listed = s;
	}
	return listed > seq ? LAPPED : 0;
}

static int renew(struct world *world, struct as_of *as_of, uint32_t id, uint64_t seq)
{
	int want = expected(world, id, seq), r;

	do
		r = as_of_renew(as_of, world->snapshot, 1 + world_random(world, 100));
	while (r == AGAIN);
	MUST(r == want, "as of %" PRIu64 ": %d (%s), wanted %d", seq, r, err_text(r), want);
	if (r == 0) {
		seq = seen_at(&world->model, id, seq, snapshot_taken(world->snapshot));
		MUST(as_of_seq(as_of) == seq, "as of %" PRIu64 ", wanted %" PRIu64,
			as_of_seq(as_of), seq);
	}
	return r;
}

/* Checks the walk's next object: the first of STATE from the AT-th key in order on. Returns: FOUND,
 * END. */
static int check_next(struct world *world, struct as_of *as_of, uint32_t id,
	const struct latest state[KEYS], int *at)
{
	struct index_entry entry;
	struct record record;
	struct bytes key;
	int r = as_of_next(as_of, &key, &entry), k;

	while (*at < KEYS && !state[model_key_in_order(*at)].object.there)
		++*at;
	MUST(r == (*at < KEYS ? FOUND : END), "as of: %d (%s)", r, err_text(r));
	if (r == END)
		return r;
	k = model_key_in_order((*at)++);
	MUST(key_number(key) == k && entry.seq == state[k].seq, "as of: %.*s at %" PRIu64,
		BYTES_ARG(key), entry.seq);
	r = snapshot_record(world->snapshot, id, key, &entry, &record);
	MUST(r == FOUND, "as of: %s", err_text(r));
	check_object(&record, &state[k].object, "as of");
	return FOUND;
}

static void check_random(struct world *world, uint32_t id)
{
	CLEANUP(as_of_free) struct as_of *as_of = NULL;
	uint64_t horizon = snapshot_horizon(world->snapshot);
	uint64_t seq = horizon + world_random(world,
					 (unsigned)(snapshot_taken(world->snapshot) - horizon) + 2);
	struct latest state[KEYS];
	struct record record;
	char text[16];
	int at = 0;

	seq -= world_random(world, 8) == 0 && seq > 5 ? 5 : 0;
	MUST(as_of_new(id, seq, &as_of) == 0, "as of: no memory");
	if (renew(world, as_of, id, seq) != 0)
		return;
	model_state(&world->model, id, as_of_seq(as_of), state);
	MUST(as_of_walk(as_of, AS_OF_ALL, BYTES_NONE, BYTES_NONE) == 0, "as of: no memory");
	while (check_next(world, as_of, id, state, &at) == FOUND)
		;
	for (int k = 0; k < KEYS; k++) {
		key_text(k, text);
		int r = as_of_get(as_of, bytes_str(text), &record);
		MUST(r == (state[k].object.there ? FOUND : NOT_FOUND), "as of: get: %s",
			err_text(r));
		MUST(r == NOT_FOUND || record.seq == state[k].seq, "as of: get: %" PRIu64,
			record.seq);
	}
}

void as_of_walk_close(struct world *world)
{
	as_of_free(&world->as_of_walk.as_of);
}

/* Continues the walk by a few objects. */
static void as_of_walk_step(struct world *world)
{
	struct as_of_walk *walk = &world->as_of_walk;
	struct latest state[KEYS];
	int r = FOUND;

	if (!walk->as_of) {
		*walk = (struct as_of_walk){.seq = snapshot_taken(world->snapshot),
			.id = world->model.committed[world_random(world, FEEDS)].id};
		MUST(as_of_new(walk->id, walk->seq, &walk->as_of) == 0, "as of: no memory");
		MUST(as_of_walk(walk->as_of, AS_OF_ALL, BYTES_NONE, BYTES_NONE) == 0, "no memory");
	}
	if (!walk->id || renew(world, walk->as_of, walk->id, walk->seq) != 0) {
		as_of_walk_close(world);
		return;
	}
	model_state(&world->model, walk->id, as_of_seq(walk->as_of), state);
	for (unsigned n = world_random(world, 4); n > 0 && r == FOUND; n--)
		r = check_next(world, walk->as_of, walk->id, state, &walk->at);
	as_of_rest(walk->as_of);
	if (r == END) {
		world->as_of_walks++;
		as_of_walk_close(world);
	}
}

void world_check_as_of(struct world *world)
{
	const struct model *model = &world->model;
	uint32_t id = model->committed[world_random(world, FEEDS)].id;

	if (model->committed_left && world_random(world, 8) == 0)
		id = model->left[world_random(world, (unsigned)model->committed_left)].id;
	if (id)
		check_random(world, id);
	as_of_walk_step(world);
}
