/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs with informers: they start and end, are slow, commit or do not, and are killed between
 * two calls. A restarted program with a cursor must get everything after the cursor once more. So
 * its view is then the state as of the cursor, never after the first uncommitted change.
 */
#include <inttypes.h>
#include <poll.h>
#include <string.h>

#include "common/err.h"
#include "reader/informer/informer.h"
#include "tests/model/world.h"

static const struct {
	uint32_t flags;
	const char *cursor;
	bool slow;
} kinds[WATCHERS] = {
	{0, "", false},
	{KINF_TRACK_KEYS, "", true},
	{0, "each-turn", false},
	{KINF_COMMIT_BY_HAND, "by-hand", false},
	{KINF_TRACK_KEYS | KINF_COMMIT_BY_HAND, "by-hand-slow", true},
	{0, "", true},
};

void watchers_open(struct world *world)
{
	for (unsigned i = 0; i < WATCHERS; i++) {
		struct watcher *w = &world->watcher[i];

		*w = (struct watcher){.world = world,
			.flags = kinds[i].flags,
			.slow = kinds[i].slow,
			.feed = i % FEEDS};
		(void)snprintf(w->cursor, sizeof(w->cursor), "%s", kinds[i].cursor);
		for (unsigned k = 0; k < LISTENERS; k++)
			w->listener[k] = (struct listener){.watcher = w, .reached = UINT64_MAX};
	}
}

static void kill_watcher(struct watcher *w)
{
	for (unsigned k = 0; w->informer && k < LISTENERS; k++) {
		struct listener *l = &w->listener[k];

		l->reached = l->handler && kinf_handler_synced(l->handler)
				     ? kinf_handler_event(l->handler)
				     : UINT64_MAX;
		l->handler = NULL;
	}
	kinf_informer_free(&w->informer);
}

void watchers_kill(struct world *world)
{
	for (unsigned i = 0; i < WATCHERS; i++)
		kill_watcher(&world->watcher[i]);
}

/* ---- beginning ---------------------------------------------------------- */

/* Reads the position committed by the program's last run, if there is one. */
static void read_cursor(struct watcher *w, struct follow_position *ret_begin)
{
	struct cursor_file file;
	int r = *w->cursor ? cursor_load(w->world->home, w->cursor, false, &file) : NOT_FOUND;

	MUST(r == FOUND || r == NOT_FOUND, "cursor '%s': %s", w->cursor, err_text(r));
	if (r == NOT_FOUND)
		return;
	MUST(file.n == 1, "cursor '%s' has %zu positions", w->cursor, file.n);
	*ret_begin = file.positions[0];
	cursor_release(&file);
	w->world->counts.resumed++;
	if (model_left_at(&w->world->model, ret_begin->feed))
		return;
	for (unsigned k = 0; k < LISTENERS; k++)
		MUST(ret_begin->seq <= w->listener[k].reached &&
				(!w->listener[k].uncommitted ||
					ret_begin->seq < w->listener[k].uncommitted),
			"cursor '%s' is at %" PRIu64 ", a handler was at %" PRIu64 ", and %" PRIu64
			" was not committed",
			w->cursor, ret_begin->seq, w->listener[k].reached,
			w->listener[k].uncommitted);
}

/* Chooses whether the informer begins at an event number, and the number. */
static void choose_from(struct watcher *w, struct follow_position *ret_begin)
{
	struct world *world = w->world;
	unsigned chance = world_random(world, 3), part = world_random(world, 100);
	uint32_t id = world->model.committed[w->feed].id;

	if (*w->cursor || chance || !id || !world_renew_snapshot(world))
		return;
	world->held = true;
	uint64_t visible = snapshot_visible(world->snapshot, id);
	uint64_t horizon = snapshot_horizon(world->snapshot);
	if (visible > horizon)
		*ret_begin =
			(struct follow_position){id, visible - (visible - horizon) * part / 100};
}

static void begin(struct watcher *w)
{
	struct world *world = w->world;
	struct follow_position begin = {0};

	read_cursor(w, &begin);
	choose_from(w, &begin);
	struct kinf_informer_options options = {.size = sizeof(options),
		.flags = w->flags,
		.cursor = *w->cursor ? w->cursor : NULL,
		.from = *w->cursor ? 0 : begin.seq};
	int r = kinf_informer_new(world->kinf, world_feeds[w->feed], &options, &w->informer);
	if (r == KINF_NO_FEED && !world->model.committed[w->feed].id)
		return;
	MUST(r == 0, "informer: %d (%s)", r, kinf_error(world->kinf));
	for (unsigned k = 0; k + 1 < LISTENERS; k++)
		listener_begin(&w->listener[k], begin.feed, begin.seq);
}

/* ---- running ------------------------------------------------------------ */

static bool is_synced(const struct watcher *w)
{
	for (unsigned k = 0; k < LISTENERS; k++)
		if (w->listener[k].handler && !kinf_handler_synced(w->listener[k].handler))
			return false;
	return true;
}

static void committed(struct watcher *w)
{
	for (unsigned k = 0; k < LISTENERS; k++)
		w->listener[k].uncommitted = 0;
}

static void dispatch(struct watcher *w, int max)
{
	int r = kinf_informer_dispatch(w->informer, max);

	MUST(r >= 0 || (r == KINF_NO_FEED && !w->world->model.committed[w->feed].id),
		"dispatch: %d (%s)", r, kinf_error(w->world->kinf));
	for (unsigned k = 0; k < LISTENERS; k++)
		if (w->listener[k].handler)
			listener_check(&w->listener[k]);
	if (r > 0 && is_synced(w) && !(w->flags & KINF_COMMIT_BY_HAND))
		committed(w);
}

static void commit(struct watcher *w)
{
	int r = kinf_informer_commit(w->informer);

	MUST(r == 0 || r == KINF_AGAIN, "commit: %d (%s)", r, kinf_error(w->world->kinf));
	if (r == 0)
		committed(w);
}

/* Kills the program after a commit of some handlers, to give its handlers different positions. */
static void die_behind_a_commit(struct watcher *w, int max)
{
	dispatch(w, max);
	commit(w);
	kill_watcher(w);
}

/* Adds or removes the last handler while the informer runs, if handlers begin with the initial
 * state. */
static void add_or_remove(struct watcher *w)
{
	struct listener *l = &w->listener[LISTENERS - 1];

	if (!l->handler && kinf_informer_phase(w->informer) != KINF_INFORMER_NEW) {
		listener_begin(l, 0, 0);
	} else if (l->handler) {
		MUST(kinf_informer_remove_handler(w->informer, l->handler) == 0, "removing");
		l->handler = NULL;
		l->uncommitted = 0;
	}
}

/* As if the time of a handler's resync had come. */
static void resync(struct watcher *w)
{
	struct listener *l = &w->listener[world_random(w->world, LISTENERS)];

	if (l->handler)
		l->handler->resync_owed = true;
}

void step_watchers(struct world *world)
{
	static const int most[] = {1, 3, 20, 0};
	struct watcher *w = &world->watcher[world_random(world, WATCHERS)];
	unsigned chance = world_random(world, 40), max = world_random(world, 4);

	if (!w->informer)
		begin(w);
	else if (chance == 0)
		kill_watcher(w);
	else if (chance < 4)
		add_or_remove(w);
	else if (chance < 8 && *w->cursor)
		commit(w);
	else if (chance < 18 && *w->cursor)
		die_behind_a_commit(w, most[max]);
	else if (chance < 20)
		resync(w);
	else if (!w->slow || chance < 24)
		dispatch(w, most[max]);
}

/* ---- settling ----------------------------------------------------------- */

/* Returns true if the handlers have got all visible changes. Positions do not tell: without changes
 * they move only once a second. */
static bool is_current(const struct watcher *w, uint32_t id, uint64_t visible)
{
	if (!w->informer->feeds || w->informer->feeds[0] != id || !is_synced(w))
		return false;
	for (unsigned k = 0; k < LISTENERS; k++)
		if (w->listener[k].handler && !listener_is(&w->listener[k], id, visible))
			return false;
	return true;
}

/* Runs the informer once more if it is not current yet. */
static bool settle(struct watcher *w)
{
	uint32_t id = w->world->model.committed[w->feed].id;
	uint64_t visible = id ? snapshot_visible(w->world->snapshot, id) : 0;

	if (!visible || is_current(w, id, visible))
		return true;
	dispatch(w, 0);
	return is_current(w, id, visible);
}

/* Changes arrive without a pause; a program without changes reads the log once a second. */
void watchers_settle(struct world *world)
{
	bool has_time[WATCHERS], settled = false;

	for (unsigned i = 0; i < WATCHERS; i++)
		has_time[i] = world->watcher[i].informer &&
			      (!world->watcher[i].slow || world_random(world, 4) == 0);
	for (unsigned tries = 0; !settled; tries++) {
		settled = true;
		for (unsigned i = 0; i < WATCHERS; i++)
			settled &= !has_time[i] || settle(&world->watcher[i]);
		MUST(settled || tries < 2000, "an informer does not come to an end");
		if (!settled)
			(void)poll(NULL, 0, 5);
	}
}
