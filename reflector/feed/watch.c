/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/watch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "reflector/feed/list.h"
#include "reflector/net/scan.h"
#include "reflector/net/status.h"

#define WATCH_MAGIC 0x57544348u

#define FRAME_MAX 65536 /* bytes of an event beside its object */

struct watch_stream {
	uint32_t magic;
	struct watch_options options;
	/* the event's bytes without blanks, {} for its object; empty: between two */
	struct buf frame;
	size_t depth; /* at the end of FRAME */
	bool in_string, escaped;
	bool in_object;       /* the cutter is in the object */
	bool has_object;      /* OBJECT is whole, */
	struct bytes object;  /* in the bytes being fed, or in the cutter */
	struct cutter cutter; /* of the object */
	bool ended;           /* the callback wants no more */
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
	watch->cutter.max = options->object_max ? options->object_max : LIST_ITEM_MAX;
	*ret_watch = watch;
	return 0;
}

void watch_free(struct watch_stream **watch)
{
	if (!*watch)
		return;
	CHECK_OBJ(*watch, WATCH_MAGIC);
	buf_release(&(*watch)->frame);
	buf_release(&(*watch)->cutter.partial);
	(*watch)->magic = 0;
	free(TAKE(*watch));
}

static void watch_begin_event(struct watch_stream *watch)
{
	buf_reset(&watch->frame);
	watch->depth = 0;
	watch->in_string = watch->escaped = watch->in_object = watch->has_object = false;
	cutter_reset(&watch->cutter);
}

void watch_reset(struct watch_stream *watch)
{
	CHECK_OBJ(watch, WATCH_MAGIC);
	watch_begin_event(watch);
	watch->ended = false;
	watch->offset = 0;
}

void watch_set_max(struct watch_stream *watch, size_t object_max)
{
	CHECK_OBJ(watch, WATCH_MAGIC);
	watch->cutter.max = object_max;
}

size_t watch_partial(const struct watch_stream *watch)
{
	CHECK_OBJ(watch, WATCH_MAGIC);
	return watch->frame.size + watch->cutter.partial.size;
}

size_t watch_used(const struct watch_stream *watch)
{
	CHECK_OBJ(watch, WATCH_MAGIC);
	return watch->used;
}

static int watch_read_type(struct bytes text, enum watch_type *ret_type)
{
	struct bytes type;
	char room[16];

	if (scan_string(text, room, sizeof(room), &type) != FOUND)
		return err_say(ERR_PROTOCOL, "the event's type is no text");
	for (enum watch_type i = 0; i < WATCH_TYPE_MAX; i++) {
		if (bytes_equal(type, bytes_str(type_names[i]))) {
			*ret_type = i;
			return 0;
		}
	}
	return err_say(ERR_PROTOCOL, "an event of an unknown type");
}

/* Reads the whole frame and delivers the event. */
static int watch_deliver(struct watch_stream *watch)
{
	struct api_event event = {.type = WATCH_TYPE_MAX, .object = watch->object};
	struct bytes frame = buf_bytes(&watch->frame), key, value;
	size_t at = 0;
	int r;

	while ((r = scan_member(frame, false, &at, &key, &value)) == FOUND) {
		if (bytes_equal(key, BYTES_LIT("type")))
			r = watch_read_type(value, &event.type);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return err_add(r, "in the event");
	if (event.type == WATCH_TYPE_MAX)
		return err_say(ERR_PROTOCOL, "an event without type");
	if (!watch->has_object)
		return err_say(
			ERR_PROTOCOL, "a %s event without object", watch_type_name(event.type));
	event.cut = watch->cutter.cut;
	r = watch->options.event_fn(watch->options.arg, &event);
	watch_begin_event(watch);
	return r;
}

/* Takes a byte beside the object; *RET_USED is 0 if it is the object's first one. */
static int watch_take_byte(struct watch_stream *watch, uint8_t c, size_t *ret_used)
{
	*ret_used = 1;
	if (!watch->in_string && scan_is_space(c))
		return 0;
	if (!watch->frame.size && c != '{')
		return err_say(ERR_PROTOCOL, c == '<' ? STATUS_WEB_PAGE : "no event");
	if (watch->frame.size == FRAME_MAX)
		return err_say(ERR_PROTOCOL, "an event of more than %d bytes beside its object",
			FRAME_MAX);
	if (watch->in_string) {
		if (c == '\n')
			return err_say(ERR_PROTOCOL, "a line feed inside a JSON string");
		watch->in_string = watch->escaped || c != '"';
		watch->escaped = !watch->escaped && c == '\\';
	} else if (c == '"') {
		watch->in_string = true;
	} else if (c == '{' && watch->depth == 1 &&
		   scan_ends_with(buf_bytes(&watch->frame), "\"object\":")) {
		if (watch->has_object)
			return err_say(ERR_PROTOCOL, "an event with two objects");
		watch->in_object = true;
		*ret_used = 0;
		return 0;
	} else if (c == '{' || c == '[') {
		watch->depth++;
	} else if (c == '}' || c == ']') {
		watch->depth--;
	}
	buf_byte(&watch->frame, c);
	if (buf_error(&watch->frame) < 0)
		return buf_error(&watch->frame);
	return watch->depth ? 0 : watch_deliver(watch);
}

/* Goes on through the object; *RET_USED is set in any case. */
static int watch_take_object(
	struct watch_stream *watch, const uint8_t *data, size_t size, size_t *ret_used)
{
	int r = cutter_take(&watch->cutter, data, size, ret_used, &watch->object);

	if (r == AGAIN)
		return 0;
	watch->in_object = false;
	watch->has_object = r == FOUND;
	buf_str(&watch->frame, "{}");
	return r < 0 ? r : buf_error(&watch->frame);
}

int watch_feed(struct watch_stream *watch, const void *data, size_t size)
{
	struct buf *partial = &watch->cutter.partial;
	const uint8_t *p = data;

	CHECK_OBJ(watch, WATCH_MAGIC);
	for (size_t done = 0, used = 0; done < size && !watch->ended; done += used) {
		bool scanning = watch->in_object;
		int r = scanning ? watch_take_object(watch, p + done, size - done, &used)
				 : watch_take_byte(watch, p[done], &used);

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
	if (!watch->has_object || partial->size)
		return 0;
	buf_bytes_put(partial, watch->object); /* until the next piece */
	watch->object = buf_bytes(partial);
	return buf_error(partial);
}
