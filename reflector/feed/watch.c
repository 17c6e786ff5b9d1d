/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/watch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "reflector/feed/list.h"
#include "reflector/feed/scan.h"

#define WATCH_MAGIC 0x57544348u

struct watch_stream {
	uint32_t magic;
	bool inside; /* an event has begun */
	bool ended;  /* the callback wants no more */
	struct watch_options options;
	struct cutter cutter;
	uint64_t offset;
	size_t used;
};

static const char *const type_names[WATCH_TYPE_MAX] = {
	[WATCH_ADDED] = "ADDED",
	[WATCH_MODIFIED] = "MODIFIED",
	[WATCH_DELETED] = "DELETED",
	[WATCH_BOOKMARK] = "BOOKMARK",
	[WATCH_ERROR] = "ERROR",
};

const char *watch_type_name(enum watch_type type)
{
	return type < WATCH_TYPE_MAX ? type_names[type] : "?";
}

int watch_new(const struct watch_options *options, struct watch_stream **ret_watch)
{
	struct watch_stream *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return err_set(-ENOMEM, "a watch");
	watch->magic = WATCH_MAGIC;
	watch->options = *options;
	if (!watch->options.event_max)
		watch->options.event_max = LIST_ITEM_MAX;
	cutter_init(&watch->cutter, watch->options.event_max);
	*ret_watch = watch;
	return 0;
}

void watch_free(struct watch_stream **watch)
{
	if (!*watch)
		return;
	CHECK_OBJ(*watch, WATCH_MAGIC);
	cutter_release(&(*watch)->cutter);
	(*watch)->magic = 0;
	free(TAKE(*watch));
}

void watch_reset(struct watch_stream *watch)
{
	CHECK_OBJ(watch, WATCH_MAGIC);
	watch->inside = watch->ended = false;
	watch->offset = 0;
	cutter_reset(&watch->cutter);
}

void watch_set_max(struct watch_stream *watch, size_t event_max)
{
	CHECK_OBJ(watch, WATCH_MAGIC);
	watch->cutter.max = event_max;
}

size_t watch_partial(const struct watch_stream *watch)
{
	CHECK_OBJ(watch, WATCH_MAGIC);
	return watch->cutter.partial.size;
}

size_t watch_used(const struct watch_stream *watch)
{
	CHECK_OBJ(watch, WATCH_MAGIC);
	return watch->used;
}

static int watch_read_type(struct bytes value, enum watch_type *ret_type)
{
	struct bytes text;

	if (scan_plain_string(value, &text) != FOUND)
		return err_say(ERR_PROTOCOL, "the event's type is no text");
	for (enum watch_type t = 0; t < WATCH_TYPE_MAX; t++) {
		if (bytes_equal(text, bytes_str(type_names[t]))) {
			*ret_type = t;
			return 0;
		}
	}
	return err_say(ERR_PROTOCOL, "an event of an unknown type");
}

static int watch_deliver(struct watch_stream *watch, struct bytes text)
{
	struct api_event event = {.type = WATCH_TYPE_MAX, .cut = watch->cutter.cut};
	struct bytes key, value;
	size_t at = 0;
	int r;

	while ((r = (event.cut ? scan_member_cut : scan_member)(text, &at, &key, &value)) ==
		FOUND) {
		if (bytes_equal(key, BYTES_LIT("type"))) {
			r = watch_read_type(value, &event.type);
			if (r < 0)
				return r;
		} else if (bytes_equal(key, BYTES_LIT("object"))) {
			event.object = value;
		}
	}
	if (r < 0)
		return err_add(r, "in the event");
	if (event.type == WATCH_TYPE_MAX)
		return err_say(ERR_PROTOCOL, "an event without type");
	if (!event.object.size || *(const char *)event.object.data != '{')
		return err_say(ERR_PROTOCOL, "a %s event without object",
			watch_type_name(event.type));
	return watch->options.event_fn(watch->options.arg, &event);
}

/* DATA stands inside an event. */
static int watch_take_event(
	struct watch_stream *watch, const uint8_t *data, size_t size, size_t *ret_used)
{
	struct bytes text;
	int r = cutter_take(&watch->cutter, data, size, ret_used, &text);

	if (r != FOUND)
		return r < 0 ? r : 0; /* the rest of the event is still to come */
	watch->inside = false;
	r = watch_deliver(watch, text);
	cutter_reset(&watch->cutter);
	return r;
}

static int watch_begin_event(struct watch_stream *watch, uint8_t c, size_t *ret_used)
{
	*ret_used = 1;
	if (scan_is_space(c))
		return 0;
	if (c != '{')
		return err_say(ERR_PROTOCOL, "no event");
	cutter_reset(&watch->cutter);
	watch->inside = true;
	*ret_used = 0;
	return 0;
}

int watch_feed(struct watch_stream *watch, const void *data, size_t size)
{
	const uint8_t *p = data;

	CHECK_OBJ(watch, WATCH_MAGIC);
	for (size_t done = 0, used = 0; done < size && !watch->ended; done += used) {
		bool scanning = watch->inside;
		int r = scanning ? watch_take_event(watch, p + done, size - done, &used)
			: watch_begin_event(watch, p[done], &used);

		if (r == END)
			watch->ended = true;
		if (r == AGAIN) {
			watch->used = done + used;
			watch->offset += watch->used;
			return AGAIN;
		}
		if (r < 0)
			return err_add(r, "watch, byte %" PRIu64,
				watch->offset + done + (scanning ? used : 0));
	}
	watch->used = size;
	watch->offset += size;
	return 0;
}
