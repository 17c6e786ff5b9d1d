/* SPDX-License-Identifier: Apache-2.0 */
/* A watch stream is framed the same in one piece, in many, with pauses, and when the stream begins
 * again; its remaining bytes are known. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/err.h"
#include "reflector/feed/watch.h"
#include "reflector/record/object.h"
#include "tests/fuzz/fuzz.h"

#define EVENT_MAX 512

struct reader {
	struct buf text;
	bool pauses; /* after each event */
};

static void read_bookmark(struct bytes bookmark, struct buf *out)
{
	uint64_t age_s;
	char why[OBJECT_STALE_MAX];

	buf_str(out, object_ends_initial(bookmark) ? "last " : "");
	if (object_is_stale(bookmark, &age_s, why))
		buf_printf(out, "%" PRIu64 " %s", age_s, why);
}

static int keep_event(void *arg, const struct api_event *event)
{
	struct reader *reader = arg;
	struct object_identity identity;

	buf_printf(&reader->text, "%s%s ", watch_type_name(event->type), event->cut ? "+" : "");
	buf_bytes_put(&reader->text, event->object);
	(void)object_identity(
		event->object, event->cut, &identity); /* a malformed object is an error of it */
	if (event->type == WATCH_BOOKMARK && !event->cut)
		read_bookmark(event->object, &reader->text);
	if (event->type == WATCH_ERROR)
		return END;
	return reader->pauses ? AGAIN : 0;
}

/* Copies the pieces: a read beyond one is detected. */
static int feed(struct watch_stream *watch, const uint8_t *data, size_t size, size_t piece)
{
	int r = 0;

	for (size_t at = 0; at < size && (r == 0 || r == AGAIN); at += watch_used(watch)) {
		size_t n = size - at < piece ? size - at : piece;
		uint8_t *copy = malloc(n);

		REQUIRE(copy != NULL);
		memcpy(copy, data + at, n);
		r = watch_feed(watch, copy, n);
		free(copy);
		REQUIRE(r < 0 || (watch_used(watch) > 0 && watch_used(watch) <= n));
		REQUIRE(r != 0 || watch_used(watch) == n);
	}
	return r == AGAIN ? 0 : r;
}

/* Of two errors the larger pieces show the later one first. */
static bool same_result(int a, int b)
{
	return a == b || (a < 0 && b < 0 && (a == ERR_TOO_LARGE || b == ERR_TOO_LARGE));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reader whole = {BUF_INIT, false}, pieces = {BUF_INIT, size > 0 && data[0] & 1};
	struct watch_options options = {
		.object_max = EVENT_MAX, .event_fn = keep_event, .arg = &whole};
	struct watch_stream *a = NULL, *b = NULL;

	if (size < 1)
		return 0;
	REQUIRE(watch_new(&options, &a) == 0);
	options.arg = &pieces;
	REQUIRE(watch_new(&options, &b) == 0);

	int r = feed(a, data + 1, size - 1, size);
	int s = feed(b, data + 1, size - 1, data[0] % 67 + 1u);

	REQUIRE(same_result(r, s));
	REQUIRE(bytes_equal(buf_bytes(&whole.text), buf_bytes(&pieces.text)));
	REQUIRE(r < 0 || watch_partial(a) == watch_partial(b));
	buf_reset(&whole.text);
	watch_reset(a);
	REQUIRE(feed(a, data + 1, size - 1, size) == r);
	REQUIRE(bytes_equal(buf_bytes(&whole.text), buf_bytes(&pieces.text)));
	watch_free(&a);
	watch_free(&b);
	buf_release(&whole.text);
	buf_release(&pieces.text);
	return 0;
}
