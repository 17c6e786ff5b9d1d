/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/watch.h"

#include <inttypes.h>

#include "common/cleanup.h"
#include "tests/simulator/memory.h"
#include "tests/simulator/status.h"

#define WATCH_MAGIC         0x68637457u
#define PIECE               ((size_t)64 << 10)
#define LAST_BOOKMARK_MS    2000 /* before the deadline */
#define TIMEOUT_MIN_SECONDS 1800

struct watch {
	uint32_t magic;
	struct view view;
	struct pin pin;
	int fd;
	uint64_t position; /* the changes up to this RV have been handled */
	uint64_t begun;    /* its value at the beginning */
	bool bookmarks;
	bool initial;    /* the initial state is being sent: that of `position` */
	bool end_marked; /* a bookmark ends the initial state */
	struct buf last; /* last key of the initial state sent */
	uint64_t deadline_ms;
	uint64_t bookmark_due_ms;
	uint64_t bookmark_round;
	bool last_bookmark_sent;
	struct buf piece;
	size_t sent;
	bool over; /* the stream ends after the piece */
};

static void watch_free(void *arg)
{
	struct watch *watch = arg;
	struct world *world = watch->view.world;

	CHECK_OBJ(watch, WATCH_MAGIC);
	pthread_mutex_lock(&world->lock);
	pin_drop(&watch->pin);
	watch->view.collection->watching--;
	pthread_mutex_unlock(&world->lock);
	view_release(&watch->view);
	buf_release(&watch->last);
	buf_release(&watch->piece);
	watch->magic = 0;
	free(watch);
}

/* ---- events ------------------------------------------------------------- */

static void watch_put_event(struct watch *watch, const char *type, struct bytes stored)
{
	enum object_form form = watch->view.form == OBJECT_METADATA ? OBJECT_METADATA : OBJECT_FULL;

	buf_printf(&watch->piece, "{\"type\":\"%s\",\"object\":", type);
	object_show(watch->view.collection->kind, form, stored, &watch->piece);
	buf_str(&watch->piece, "}\n");
}

static void watch_put_error(struct watch *watch, const struct status *status, const char *message)
{
	buf_str(&watch->piece, "{\"type\":\"ERROR\",\"object\":");
	status_put(&watch->piece, status, message);
	buf_str(&watch->piece, "}\n");
	watch->over = true;
}

static void watch_put_bookmark(struct watch *watch, bool ends_initial)
{
	static const char mark[] = "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}";
	const struct kind *kind = watch->view.collection->kind;
	bool sorted = kind->custom && watch->view.form != OBJECT_METADATA;
	CLEANUP(buf_release) struct buf object = BUF_INIT;

	buf_str(&object, "{");
	if (kind->custom) {
		buf_str(&object, "\"apiVersion\":\"");
		kind_put_group_version(kind, &object);
		buf_printf(&object, "\",\"kind\":\"%s\",", kind->name);
	}
	buf_str(&object, "\"metadata\":{");
	if (ends_initial && sorted)
		buf_printf(&object, "%s,", mark);
	buf_printf(&object, "\"resourceVersion\":\"%" PRIu64 "\"", watch->position);
	if (ends_initial && !sorted)
		buf_printf(&object, ",%s", mark);
	buf_str(&object, "}}");
	watch_put_event(watch, "BOOKMARK", buf_bytes(&object));
}

/* Appends this watch's event of a change, if any. */
static void watch_put_change(struct watch *watch, const struct version *version)
{
	const struct version *older = version->older;

	if (!view_covers(&watch->view, version->entry->key))
		return;
	if (watch->view.collection->swallow) {
		watch->view.collection->swallow--;
		return;
	}

	bool was = view_selects(&watch->view, older), is = view_selects(&watch->view, version);

	if (is) {
		watch_put_event(watch, was ? "MODIFIED" : "ADDED", version_text(version));
	} else if (was) {
		CLEANUP(buf_release) struct buf old = BUF_INIT;

		object_restamp(version_text(older), version->rv, &old);
		watch_put_event(watch, "DELETED", buf_bytes(&old));
	}
}

static void watch_put_initial(struct watch *watch)
{
	const struct keylist *keys = &watch->view.collection->keys;
	const char *last = buf_cstr(&watch->last);
	struct keylist_place place = keylist_seek(keys, last);
	const struct entry *entry;

	while (watch->piece.size < PIECE) {
		entry = keylist_next(keys, &place);
		if (!entry || !view_covers(&watch->view, entry->key)) {
			watch->initial = false;
			if (watch->end_marked)
				watch_put_bookmark(watch, true);
			return;
		}
		if (!strcmp(entry->key, buf_cstr(&watch->last)))
			continue;
		buf_reset(&watch->last);
		buf_str(&watch->last, entry->key);

		const struct version *version = version_at(entry, watch->position);

		if (view_selects(&watch->view, version))
			watch_put_event(watch, "ADDED", version_text(version));
	}
}

static void watch_put_changes(struct watch *watch)
{
	struct collection *collection = watch->view.collection;
	const struct world *world = watch->view.world;
	size_t i = collection_after(collection, watch->position);

	for (; i < collection->end && watch->piece.size < PIECE; i++) {
		watch_put_change(watch, collection->log[i]);
		watch->position = collection->log[i]->rv;
	}
	uint64_t fresh = collection_fresh(world, collection);
	if (i == collection->end && fresh > watch->position)
		watch->position = fresh;
	pin_set(collection, &watch->pin, watch->position);
}

/* ---- time --------------------------------------------------------------- */

/* Returns whether a bookmark would say nothing, since the RV is of the future, or the client's
 * own. */
static bool watch_has_no_bookmark(const struct watch *watch)
{
	const struct world *world = watch->view.world;

	return !watch->bookmarks || watch->position > world->rv ||
	       (world->settings.progress_ms && watch->position <= watch->begun);
}

static bool watch_bookmark_is_due(const struct watch *watch, uint64_t now)
{
	const struct world *world = watch->view.world;

	if (watch_has_no_bookmark(watch))
		return false;
	if (watch->bookmark_round != world->bookmark_round)
		return true;
	if (!world->settings.bookmark_ms)
		return false;
	return now >= watch->bookmark_due_ms ||
	       (!watch->last_bookmark_sent && now + LAST_BOOKMARK_MS >= watch->deadline_ms);
}

static void watch_put_due_bookmark(struct watch *watch, uint64_t now)
{
	const struct world *world = watch->view.world;

	if (!watch_bookmark_is_due(watch, now))
		return;
	watch_put_bookmark(watch, false);
	watch->bookmark_round = world->bookmark_round;
	watch->bookmark_due_ms = now + world->settings.bookmark_ms;
	watch->last_bookmark_sent = now + LAST_BOOKMARK_MS >= watch->deadline_ms;
}

static uint64_t watch_next_due(const struct watch *watch)
{
	const struct world *world = watch->view.world;
	bool timed = world->settings.bookmark_ms && !watch_has_no_bookmark(watch);
	uint64_t due = watch->deadline_ms;

	if (timed && watch->bookmark_due_ms < due)
		due = watch->bookmark_due_ms;
	if (timed && !watch->last_bookmark_sent && watch->deadline_ms - LAST_BOOKMARK_MS < due)
		due = watch->deadline_ms - LAST_BOOKMARK_MS;
	return due;
}

/* Composes the next piece; waits until there is an event. Returns 0, or negative to cut the stream.
 */
static int watch_compose(struct watch *watch)
{
	struct world *world = watch->view.world;

	watch->sent = 0;
	buf_reset(&watch->piece);
	while (!watch->piece.size && !watch->over) {
		uint64_t now = world_now_ms();

		if (watch->pin.lost || now >= watch->deadline_ms) {
			watch->over = true;
			break;
		}
		if (watch->initial)
			watch_put_initial(watch);
		else
			watch_put_changes(watch);
		if (!watch->initial)
			watch_put_due_bookmark(watch, now);
		if (watch->piece.size || watch->initial)
			continue;
		if (watch->view.collection->gone) {
			watch->over = true;
			break;
		}
		if (!http_alive(watch->fd))
			return -1;
		world_wait(world, watch_next_due(watch));
	}
	REQUIRE(buf_error(&watch->piece) == 0);
	return 0;
}

static ssize_t watch_read(void *arg, char *out, size_t room)
{
	struct watch *watch = arg;

	CHECK_OBJ(watch, WATCH_MAGIC);
	if (watch->sent == watch->piece.size) {
		int r = 0;

		if (!watch->over) {
			pthread_mutex_lock(&watch->view.world->lock);
			r = watch_compose(watch);
			pthread_mutex_unlock(&watch->view.world->lock);
		} else {
			buf_reset(&watch->piece);
			watch->sent = 0;
		}
		if (r < 0)
			return r;
	}
	size_t left = watch->piece.size - watch->sent, n = left < room ? left : room;

	if (n)
		memcpy(out, watch->piece.data + watch->sent, n);
	watch->sent += n;
	return (ssize_t)n;
}

/* ---- begin -------------------------------------------------------------- */

static void watch_begin_after(struct watch *watch, uint64_t rv)
{
	static const struct status expired = {.code = 410, .reason = "Expired"};
	uint64_t floor = collection_floor(watch->view.world, watch->view.collection);
	CLEANUP(buf_release) struct buf message = BUF_INIT;

	watch->position = rv;
	if (rv >= floor)
		return;
	buf_printf(&message, "too old resource version: %" PRIu64 " (%" PRIu64 ")", rv, floor);
	watch_put_error(watch, &expired, buf_cstr(&message));
}

static void watch_begin_initial(struct watch *watch, const struct list_options *options)
{
	struct world *world = watch->view.world;
	struct collection *collection = watch->view.collection;
	uint64_t wanted = *options->rv_text ? options->rv : world->rv;
	bool reached = collection_await(world, collection, wanted);

	watch->position = collection_fresh(world, collection);
	watch->initial = true;
	watch->end_marked = options->bookmarks && world->settings.watch_list;
	if (reached)
		return;
	buf_str(&watch->piece, "{\"type\":\"ERROR\",\"object\":");
	status_put_too_large(&watch->piece, wanted, watch->position);
	buf_str(&watch->piece, "}\n");
	watch->over = true;
}

static void watch_begin(struct watch *watch, const struct list_options *options)
{
	struct world *world = watch->view.world;
	uint64_t now = world_now_ms();
	int64_t seconds = options->timeout_seconds
				  ? options->timeout_seconds
				  : TIMEOUT_MIN_SECONDS + random() % TIMEOUT_MIN_SECONDS;

	watch->bookmarks = options->bookmarks;
	watch->deadline_ms = now + (uint64_t)seconds * 1000;
	watch->bookmark_due_ms = now + world->settings.bookmark_ms;
	watch->bookmark_round = world->bookmark_round;
	watch->last_bookmark_sent = seconds * 1000 <= LAST_BOOKMARK_MS;
	buf_str(&watch->last, watch->view.prefix);
	if (options->initial_events)
		watch_begin_initial(watch, options);
	else
		watch_begin_after(watch, options->rv
						 ? options->rv
						 : collection_fresh(world, watch->view.collection));
	watch->begun = watch->position;
	pin_set(watch->view.collection, &watch->pin, watch->position);
	watch->view.collection->watching++;
}

void watch_answer(
	struct view *view, const struct list_options *options, int fd, struct http_answer *answer)
{
	struct watch *watch = memory_take(sizeof(*watch));

	watch->magic = WATCH_MAGIC;
	watch->view = *view;
	watch->fd = fd;
	pthread_mutex_lock(&view->world->lock);
	watch_begin(watch, options);
	pthread_mutex_unlock(&view->world->lock);
	http_answer_header(answer, "Content-Type", "application/json");
	answer->stream = (struct http_stream){.read = watch_read, .free = watch_free, .arg = watch};
}
