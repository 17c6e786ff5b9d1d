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
#include "reflector/net/status.h"

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
	watch->cutter.max = watch->options.event_max;
	*ret_watch = watch;
	return 0;
}

void watch_free(struct watch_stream **watch)
{
	if (!*watch)
		return;
	CHECK_OBJ(*watch, WATCH_MAGIC);
	buf_release(&(*watch)->cutter.partial);
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

static int watch_deliver(struct watch_stream *watch, struct bytes text)
{
	struct api_event event = {.type = WATCH_TYPE_MAX, .cut = watch->cutter.cut};
	struct bytes key, value, type;
	char room[16];
	size_t at = 0;
	int r;

	while ((r = scan_member(text, event.cut, &at, &key, &value)) == FOUND) {
		if (bytes_equal(key, BYTES_LIT("type"))) {
			if (scan_string(value, room, sizeof(room), &type) != FOUND)
				return err_say(ERR_PROTOCOL, "the event's type is no text");
			event.type = 0;
			while (event.type < WATCH_TYPE_MAX &&
				!bytes_equal(type, bytes_str(type_names[event.type])))
				event.type++;
			if (event.type == WATCH_TYPE_MAX)
				return err_say(ERR_PROTOCOL, "an event of an unknown type");
		} else if (bytes_equal(key, BYTES_LIT("object"))) {
			event.object = value;
		}
	}
	if (r < 0)
		return err_add(r, "in the event");
	if (event.type == WATCH_TYPE_MAX)
		return err_say(ERR_PROTOCOL, "an event without type");
	if (!event.object.size || *(const char *)event.object.data != '{')
		return err_say(
			ERR_PROTOCOL, "a %s event without object", watch_type_name(event.type));
	return watch->options.event_fn(watch->options.arg, &event);
}

int watch_feed(struct watch_stream *watch, const void *data, size_t size)
{
	const uint8_t *p = data;

	CHECK_OBJ(watch, WATCH_MAGIC);
	for (size_t done = 0, used = 0; done < size && !watch->ended; done += used) {
		bool scanning = watch->inside;
		struct bytes text;
		int r = 0;

		if (scanning) {
			r = cutter_take(&watch->cutter, p + done, size - done, &used, &text);
			if (r == FOUND) {
				watch->inside = false;
				r = watch_deliver(watch, text);
				cutter_reset(&watch->cutter);
			} else if (r == AGAIN) {
				r = 0; /* the rest of the event is still to come */
			}
		} else if (p[done] == '{') {
			cutter_reset(&watch->cutter);
			watch->inside = true;
			used = 0;
		} else {
			used = 1;
			if (!scan_is_space(p[done]))
				r = err_say(ERR_PROTOCOL,
					p[done] == '<' ? STATUS_WEB_PAGE : "no event");
		}
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
