/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts a watch stream into events, `{"type":"MODIFIED","object":{...}}` one after the other, by
 * depth, not by line: blank lines, missing line feeds and any split of the bytes are all the same.
 * The end of the object is searched once, and its text is handed on unparsed. It is copied unless
 * the event lies whole in the network buffer. The two keys may come in either order.
 *
 * A stream's end inside an event (watch_partial) loses nothing: the watch goes on from the last
 * event taken, and the broken one comes again.
 */
#ifndef REFLECTOR_FEED_WATCH_H
#define REFLECTOR_FEED_WATCH_H

#include "common/bytes.h"

enum watch_type {
	WATCH_ADDED,
	WATCH_MODIFIED,
	WATCH_DELETED,
	WATCH_BOOKMARK,
	WATCH_ERROR,
	WATCH_TYPE_MAX
};
const char *watch_type_name(enum watch_type type);

struct api_event {
	enum watch_type type;
	struct bytes object; /* its text, borrowed until the callback returns */
	bool cut;            /* larger than object_max: the text is its beginning */
};

/* Takes one event. A negative result makes watch_feed() return it at once. END (after an ERROR
 * event) makes it return 0 and ignore the rest of the stream. AGAIN makes it return AGAIN; the
 * caller feeds the rest of the bytes (from watch_used() on) again later. */
typedef int watch_event_fn(void *arg, const struct api_event *event);

struct watch_options {
	size_t object_max; /* 0: LIST_ITEM_MAX */
	watch_event_fn *event_fn;
	void *arg;
};

struct watch_stream;

int watch_new(const struct watch_options *options, struct watch_stream **ret_watch);
void watch_free(struct watch_stream **watch);
void watch_reset(struct watch_stream *watch);
/* Another object_max, from the next stream on. */
void watch_set_max(struct watch_stream *watch, size_t object_max);

/* 0; ERR_PROTOCOL (no event, an unknown type, no object), ERR_TOO_LARGE, both with the stream's
 * byte offset; the callback's result; -ENOMEM. */
int watch_feed(struct watch_stream *watch, const void *data, size_t size);
/* Bytes taken by the last watch_feed(): fewer than given only after AGAIN. */
size_t watch_used(const struct watch_stream *watch);

/* Bytes of an incomplete event. */
size_t watch_partial(const struct watch_stream *watch);

#endif
