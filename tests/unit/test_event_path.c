/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the work for one watch event. The Makefile links the counted functions by --wrap. */
#include "reflector/net/scan.h"
#include "reflector/feed/watch.h"
#include "tests/unit/record_text.h"

#define WRAPS(type, name, ...) \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

static struct {
	size_t scanned; /* bytes of JSON scanned for ends of values only */
	size_t parses, parsed;
	size_t searches; /* in the trees */
} work;

WRAPS(int, json_parse, struct json_parser *parser, struct bytes text,
	const struct json_options *options, struct buf *out)
{
	work.parses++;
	work.parsed += text.size;
	return __real_json_parse(parser, text, options, out);
}

WRAPS(int, cutter_take, struct cutter *cutter, const uint8_t *data, size_t size, size_t *ret_used,
	struct bytes *ret_text)
{
	int r = __real_cutter_take(cutter, data, size, ret_used, ret_text);

	work.scanned += *ret_used;
	return r;
}

WRAPS(int, scan_key, struct bytes text, bool cut, size_t *at, struct bytes *ret_key)
{
	size_t before = *at;
	int r = __real_scan_key(text, cut, at, ret_key);

	work.scanned += *at - before;
	return r;
}

WRAPS(int, scan_value, struct bytes text, bool cut, size_t *at, struct bytes *ret_value)
{
	size_t before = *at;
	int r = __real_scan_value(text, cut, at, ret_value);

	work.scanned += *at - before;
	return r;
}

WRAPS(int, scan_member, struct bytes text, bool cut, size_t *at, struct bytes *ret_key,
	struct bytes *ret_value)
{
	size_t before = *at;
	int r = __real_scan_member(text, cut, at, ret_key, ret_value);

	work.scanned += *at - before;
	return r;
}

WRAPS(int, cursor_seek, struct cursor *cursor, struct bytes key, struct bytes *ret_key,
	struct bytes *ret_value)
{
	work.searches++;
	return __real_cursor_seek(cursor, key, ret_key, ret_value);
}

static int take_event(void *arg, const struct api_event *event)
{
	struct bytes rv;

	(void)arg;
	return record_event(feed, event, false, &rv);
}

static void feed_event(struct watch_stream *watch, const char *type, const char *object)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;

	buf_printf(&text, "{\"type\":\"%s\",\"object\":%s}\n", type, object);
	memset(&work, 0, sizeof(work));
	OK(watch_feed(watch, text.data, text.size));
	cr_expect_eq(work.parses, 1, "%s", type);
	cr_expect_eq(work.parsed, strlen(object), "%s", type);
	cr_expect_lt(
		work.scanned, text.size + 2, "%s: %zu of %zu bytes", type, work.scanned, text.size);
	cr_expect_eq(work.searches, 1, "%s", type);
}

Test(event_path, an_event_is_scanned_and_parsed_once_and_its_head_searched_once, .init = set_up,
	.fini = tear_down)
{
	CLEANUP(watch_free) struct watch_stream *watch = NULL;

	first_list();
	cr_assert_eq(watch_new(&(struct watch_options){.event_fn = take_event}, &watch), 0);
	uint64_t before = last_seq();
	feed_event(watch, "ADDED", pod("aa", "uaa", "11"));
	feed_event(watch, "MODIFIED", pod("aa", "uaa", "12"));
	feed_event(watch, "ADDED", pod("z", "uz", "13"));
	feed_event(watch, "DELETED", pod("aa", "uaa", "14"));
	cr_assert_str_eq(
		log_after(before), "ADDED d/aa@11 MODIFIED d/aa@12 ADDED d/z@13 DELETED d/aa@14");
}
