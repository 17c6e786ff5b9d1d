/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/model/listener.h"

#include <inttypes.h>
#include <string.h>

#include "reader/informer/informer.h"
#include "tests/model/world.h"

/* ---- pieces ------------------------------------------------------------- */

static bool takes(const struct listener *l, int key, const struct object *object)
{
	return l->filtered ? selection_takes(&l->selection, key, object) : object->there;
}

static int key_of(const struct kinf_object *object)
{
	int key = key_number(BYTES(object->key, object->key_size));

	MUST(key >= 0, "handler: an object '%.*s'", (int)object->key_size, object->key);
	return key;
}

/* The object's record. */
static const struct entry *entry_of(const struct listener *l, const struct kinf_object *object)
{
	const struct model *model = &l->watcher->world->model;

	MUST(object->event > 0 && object->event <= model->committed_n, "handler: event %" PRIu64,
		object->event);
	const struct entry *entry = &model->log[object->event - 1];
	MUST(entry->id == object->feed && entry->key == key_of(object),
		"handler: event %" PRIu64 " is not of %.*s", object->event, (int)object->key_size,
		object->key);
	return entry;
}

static void check_state(const struct kinf_object *object, const struct entry *entry)
{
	const char *text;
	char want[24];
	size_t size;

	(void)snprintf(want, sizeof(want), "%" PRIu64, entry->object.rv);
	MUST(bytes_equal(BYTES(object->resource_version, object->resource_version_size),
		     bytes_str(want)),
		"handler: event %" PRIu64 ": resourceVersion", object->event);
	(void)snprintf(want, sizeof(want), "node-%u", entry->object.node);
	MUST(kinf_object_path(object, "spec.nodeName", &text, &size) == KINF_FOUND &&
			bytes_equal(BYTES(text, size), bytes_str(want)),
		"handler: event %" PRIu64 ": node", object->event);
}

/* Adds the key to the work queue, and checks the cache for the change in some calls. Does not use
 * the world's random numbers, because the number of calls in a step depends on time. */
static void check_cache(struct listener *l, const struct kinf_object *object)
{
	struct world *world = l->watcher->world;

	worker_add(world, l->watcher->feed, object->feed, key_of(object), object->event);
	if (object->event * 2654435761u % 2)
		return;
	(void)cached_check(world, l->watcher->feed, object->feed, object->event);
}

/* Notes a change to repeat if the program is killed before its next commit. */
static void note_change(struct listener *l, uint64_t event)
{
	if (!l->uncommitted && kinf_handler_synced(l->handler))
		l->uncommitted = event;
}

static void take(struct listener *l, const struct kinf_object *object, const struct entry *entry)
{
	int key = key_of(object);

	MUST(entry->type != DELETED && takes(l, key, &entry->object),
		"handler: event %" PRIu64 " is none for it", object->event);
	check_state(object, entry);
	check_cache(l, object);
	l->view[key] = (struct latest){object->event, entry->object};
	l->view[key].object.there = true;
	l->watcher->world->counts.calls++;
}

/* ---- callbacks ---------------------------------------------------------- */

static void on_add(void *arg, const struct kinf_object *object, int initial)
{
	struct listener *l = arg;
	const struct entry *entry = entry_of(l, object);

	MUST(!l->view[key_of(object)].object.there, "handler: %.*s is added, but known at %" PRIu64,
		(int)object->key_size, object->key, l->view[key_of(object)].seq);
	MUST(!initial || !kinf_handler_synced(l->handler), "handler: initial call after SYNC");
	take(l, object, entry);
	if (!initial)
		note_change(l, object->event);
}

static void on_update(void *arg, const struct kinf_object *old, const struct kinf_object *object)
{
	struct listener *l = arg;
	const struct latest known = l->view[key_of(object)];
	const struct entry *entry = entry_of(l, object);

	MUST(known.object.there, "handler: %.*s is updated, but not known", (int)object->key_size,
		object->key);
	if (old) {
		bool resync = object->event == known.seq;

		MUST(old->event == known.seq && (resync || entry->prev == known.seq),
			"handler: %" PRIu64 " updates %" PRIu64 ", it was told %" PRIu64,
			object->event, old->event, known.seq);
		check_state(old, entry_of(l, old));
		l->watcher->world->counts.resyncs += resync;
	} else {
		MUST(l->watcher->flags & KINF_TRACK_KEYS && known.seq != object->event,
			"handler: update without old state");
	}
	take(l, object, entry);
	if (object->event != known.seq)
		note_change(l, object->event);
}

/* By its record; or, with the state known last: unseen, or by leaving the filter; or by its key
 * alone. */
static void on_delete(void *arg, const struct kinf_object *object, int final_state_unknown)
{
	struct listener *l = arg;
	struct latest *known = &l->view[key_of(object)];

	MUST(known->object.there, "handler: %.*s is deleted, but not known", (int)object->key_size,
		object->key);
	if (!object->event) {
		MUST(l->watcher->flags & KINF_TRACK_KEYS && final_state_unknown && !object->body,
			"handler: deleted without a state");
	} else if (object->event == known->seq) {
		check_state(object, entry_of(l, object));
		MUST(final_state_unknown || l->filtered, "handler: deleted with an old state");
	} else {
		const struct entry *entry = entry_of(l, object);

		MUST(entry->type == DELETED && entry->prev == known->seq && !final_state_unknown,
			"handler: event %" PRIu64 " deletes %" PRIu64 ", it was told %" PRIu64,
			object->event, entry->prev, known->seq);
		check_cache(l, object);
		note_change(l, object->event);
	}
	known->object.there = false;
	l->watcher->world->counts.calls++;
}

static void on_sync(void *arg)
{
	struct listener *l = arg;

	l->watcher->world->counts.syncs++;
}

static void on_lapped(void *arg)
{
	struct listener *l = arg;

	memset(l->view, 0, sizeof(l->view));
	l->watcher->world->counts.lapses++;
}

/* ---- life --------------------------------------------------------------- */

static void view_of(const struct listener *l, uint32_t id, uint64_t seq, struct latest view[KEYS])
{
	model_state(&l->watcher->world->model, id, seq, view);
	for (int k = 0; k < KEYS; k++)
		view[k].object.there = takes(l, k, &view[k].object);
}

void listener_begin(struct listener *l, uint32_t id, uint64_t seq)
{
	struct world *world = l->watcher->world;
	struct kinf_term term;
	struct kinf_query query;
	struct kinf_handler_options options = {.size = sizeof(options),
		.arg = l,
		.on_add = on_add,
		.on_update = on_update,
		.on_delete = on_delete,
		.on_sync = on_sync,
		.on_lapped = on_lapped};

	l->uncommitted = 0;
	l->filtered = world_random(world, 2);
	if (l->filtered) {
		selection_random(world, false, &l->selection);
		selection_query(&l->selection, NULL, &term, &query);
		options.filter = &query;
	}
	memset(l->view, 0, sizeof(l->view));
	if (id)
		view_of(l, id, seq, l->view);
	int r = kinf_informer_add_handler(l->watcher->informer, &options, &l->handler);
	MUST(r == 0, "handler: %d (%s)", r, kinf_error(world->kinf));
}

/* Returns the first key with a difference to feed ID's state as of SEQ; -1: none. */
static int first_other(const struct listener *l, uint32_t id, uint64_t seq)
{
	struct latest view[KEYS];

	view_of(l, id, seq, view);
	for (int k = 0; k < KEYS; k++)
		if (l->view[k].object.there != view[k].object.there ||
			(view[k].object.there && l->view[k].seq != view[k].seq))
			return k;
	return -1;
}

bool listener_is(const struct listener *l, uint32_t id, uint64_t seq)
{
	return first_other(l, id, seq) < 0;
}

void listener_check(const struct listener *l)
{
	const struct kinf_informer *informer = l->watcher->informer;

	if (!informer->feeds || !kinf_handler_synced(l->handler))
		return;
	uint64_t position = kinf_handler_event(l->handler);
	int key = first_other(l, informer->feeds[0], position);
	MUST(key < 0, "handler at %" PRIu64 " of '%s': key %d is %s at %" PRIu64, position,
		world_feeds[l->watcher->feed], key, l->view[key].object.there ? "there" : "gone",
		l->view[key].seq);
}
