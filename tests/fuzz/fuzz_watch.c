/* SPDX-License-Identifier: Apache-2.0 */
/* A watch stream is framed the same in one piece and in many, and what is left of it is known. */
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/err.h"
#include "reflector/record/object.h"
#include "reflector/feed/watch.h"
#include "tests/fuzz/fuzz.h"

#define EVENT_MAX 512

static int keep_event(void *arg, const struct api_event *event)
{
	struct object_identity identity;

	buf_printf(arg, "%s%s ", watch_type_name(event->type), event->cut ? "+" : "");
	buf_bytes_put(arg, event->object);
	(void)object_identity(event->object, false, &identity); /* an object that is none is an error of it */
	return event->type == WATCH_ERROR ? END : 0;
}

/* Pieces of their own memory, so that reading beyond one is seen. */
static int feed(struct watch_stream *watch, const uint8_t *data, size_t size, size_t piece)
{
	int r = 0;

	for (size_t at = 0; at < size && !r; at += piece) {
		size_t n = size - at < piece ? size - at : piece;
		uint8_t *copy = malloc(n);

		REQUIRE(copy != NULL);
		memcpy(copy, data + at, n);
		r = watch_feed(watch, copy, n);
		free(copy);
	}
	return r;
}

/* Of two things that are wrong the larger pieces show the later one first. */
static bool same_result(int a, int b)
{
	return a == b || (a < 0 && b < 0 && (a == ERR_TOO_LARGE || b == ERR_TOO_LARGE));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole = BUF_INIT, pieces = BUF_INIT;
	struct watch_options options = {.event_max = EVENT_MAX, .event_fn = keep_event, .arg = &whole};
	struct watch_stream *a = NULL, *b = NULL;

	if (size < 1)
		return 0;
	REQUIRE(watch_new(&options, &a) == 0);
	options.arg = &pieces;
	REQUIRE(watch_new(&options, &b) == 0);

	int r = feed(a, data + 1, size - 1, size);
	int s = feed(b, data + 1, size - 1, data[0] % 67 + 1u);

	REQUIRE(same_result(r, s));
	REQUIRE(bytes_equal(buf_bytes(&whole), buf_bytes(&pieces)));
	REQUIRE(r < 0 || watch_partial(a) == watch_partial(b));
	watch_free(&a);
	watch_free(&b);
	buf_release(&whole);
	buf_release(&pieces);
	return 0;
}
