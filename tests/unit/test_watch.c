/* SPDX-License-Identifier: Apache-2.0 */
#include "common/buf.h"
#include "reflector/feed/watch.h"
#include "tests/unit/unit.h"

static int keep_event(void *arg, const struct api_event *event)
{
	buf_printf(arg, "%s ", watch_type_name(event->type));
	buf_bytes_put(arg, event->object);
	buf_str(arg, event->cut ? "...;" : ";");
	return event->type == WATCH_ERROR ? END : 0;
}

static struct watch_stream *new_watch(struct buf *out, size_t object_max)
{
	struct watch_stream *watch;

	cr_assert_eq(watch_new(
			     &(struct watch_options){
				     .object_max = object_max, .event_fn = keep_event, .arg = out},
			     &watch),
		0);
	return watch;
}

static int feed_piece(struct watch_stream *watch, const char *data, size_t size)
{
	AUTO_FREE char *copy = malloc(size ? size : 1);

	memcpy(copy, data, size);
	int r = watch_feed(watch, copy, size);
	return r;
}

static const char stream[] =
	"{\"type\":\"ADDED\",\"object\":{\"a\":\"\xc3\xa4\\u00e4\"}}\n\n"
	"{\"object\":{\"b\":[1]},\"type\":\"MODIFIED\"}{\"type\":\"DELETED\",\"object\":{}}\r\n"
	" { \"type\" : \"BOOKMARK\" , \"object\" : {\"c\":\"}\"} }";
static const char events[] =
	"ADDED {\"a\":\"\xc3\xa4\\u00e4\"};MODIFIED {\"b\":[1]};DELETED {};BOOKMARK {\"c\":\"}\"};";

Test(watch, c22_events_are_the_same_wherever_the_stream_is_split)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	CLEANUP(watch_free) struct watch_stream *watch = new_watch(&out, 0);

	for (size_t a = 0; a < sizeof(stream); a++) {
		for (size_t b = a; b < sizeof(stream); b += 3) {
			watch_reset(watch);
			buf_reset(&out);
			cr_assert_eq(feed_piece(watch, stream, a), 0);
			cr_assert_eq(feed_piece(watch, stream + a, b - a), 0);
			cr_assert_eq(feed_piece(watch, stream + b, sizeof(stream) - 1 - b), 0);
			cr_assert_str_eq(buf_cstr(&out), events);
			cr_assert_eq(watch_partial(watch), 0);
		}
	}
}

Test(watch, an_events_type_loses_its_escapes)
{
	static const char escaped[] = "{\"type\":\"\\u0041DDED\",\"object\":{}}";
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	CLEANUP(watch_free) struct watch_stream *watch = new_watch(&out, 0);

	OK(feed_piece(watch, escaped, sizeof(escaped) - 1));
	cr_assert_str_eq(buf_cstr(&out), "ADDED {};");
}

Test(watch, c20_c21_events_are_the_same_byte_by_byte)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	CLEANUP(watch_free) struct watch_stream *watch = new_watch(&out, 0);

	for (size_t i = 0; i < sizeof(stream) - 1; i++)
		cr_assert_eq(feed_piece(watch, stream + i, 1), 0);
	cr_assert_str_eq(buf_cstr(&out), events);
}

Test(watch, a_whole_event_is_given_before_the_next_one_is_whole)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	CLEANUP(watch_free) struct watch_stream *watch = new_watch(&out, 0);
	const char *text = "{\"type\":\"ADDED\",\"object\":{}}\n{\"type\":\"AD";

	cr_assert_eq(watch_feed(watch, text, strlen(text)), 0);
	cr_assert_str_eq(buf_cstr(&out), "ADDED {};");
	cr_assert_eq(watch_partial(watch), 11);
	watch_reset(watch);
	cr_assert_eq(watch_partial(watch), 0);
}

struct enough {
	size_t left; /* events until it is enough */
	struct buf out;
};

static int take_some(void *arg, const struct api_event *event)
{
	struct enough *enough = arg;

	buf_bytes_put(&enough->out, event->object);
	return --enough->left ? 0 : AGAIN;
}

Test(watch, bytes_after_a_pause_are_fed_again)
{
	const char *text = "{\"type\":\"ADDED\",\"object\":{\"a\":1}}\n"
			   "{\"type\":\"BOOKMARK\",\"object\":{\"a\":2}}\n{\"type\":\"ADDED\","
			   "\"object\":{\"a\":3}}";
	size_t size = strlen(text);

	for (size_t split = 0; split <= size; split++) {
		struct enough enough = {.left = 2};
		struct watch_stream *watch = NULL;

		cr_assert_eq(
			watch_new(&(struct watch_options){.event_fn = take_some, .arg = &enough},
				&watch),
			0);
		size_t at = 0;
		int r = watch_feed(watch, text, split);
		at += watch_used(watch);
		if (r == 0)
			r = watch_feed(watch, text + at, size - at), at += watch_used(watch);
		cr_assert_eq(r, AGAIN, "split at %zu", split);
		cr_assert_str_eq(buf_cstr(&enough.out), "{\"a\":1}{\"a\":2}");
		enough.left = 2;
		cr_assert_eq(watch_feed(watch, text + at, size - at), 0);
		cr_assert_str_eq(buf_cstr(&enough.out), "{\"a\":1}{\"a\":2}{\"a\":3}");
		watch_free(&watch);
		buf_release(&enough.out);
	}
}

Test(watch, c27_nothing_is_taken_after_an_error_event)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	CLEANUP(watch_free) struct watch_stream *watch = new_watch(&out, 0);
	const char *text =
		"{\"type\":\"ERROR\",\"object\":{\"code\":410}}{\"type\":\"ADDED\",\"object\":{}}";

	cr_assert_eq(watch_feed(watch, text, strlen(text)), 0);
	cr_assert_eq(watch_feed(watch, text, strlen(text)), 0);
	cr_assert_str_eq(buf_cstr(&out), "ERROR {\"code\":410};");
}

Test(watch, c35_c36_text_that_is_no_event_is_refused)
{
	static const char *const bad[] = {"x", "[]", "{}", "{\"type\":\"ADDED\"}",
		"{\"object\":{}}", "{\"type\":\"FOO\",\"object\":{}}", "{\"type\":1,\"object\":{}}",
		"{\"type\":\"ADDED\",\"object\":null}", "{\"type\":\"ADDED\",\"object\":\"\"}",
		"{\"type\":\"ADDED\" \"object\":{}}", "{\"type\":\"A\nDDED\",\"object\":{}}",
		"{\"type\":\"ADDED\",\"object\":{},\"object\":{}}", "<html>bad gateway</html>"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct buf out = BUF_INIT;
		struct watch_stream *watch = new_watch(&out, 0);

		cr_assert_eq(
			watch_feed(watch, bad[i], strlen(bad[i])), ERR_PROTOCOL, "'%s'", bad[i]);
		cr_assert_eq(out.size, 0);
		watch_free(&watch);
		buf_release(&out);
	}
}

Test(watch, c67_of_an_event_above_the_limit_the_beginning_is_given_and_the_rest_skipped)
{
	const char *stream_ = "{\"type\":\"ADDED\",\"object\":{\"a\":\"0123456789}\"}}\n"
			      "{\"type\":\"DELETED\",\"object\":{}}\n";
	size_t size = strlen(stream_);

	for (size_t a = 0; a <= size; a++) {
		struct buf out = BUF_INIT;
		struct watch_stream *watch = new_watch(&out, 11);

		cr_assert_eq(feed_piece(watch, stream_, a), 0);
		cr_assert_eq(feed_piece(watch, stream_ + a, size - a), 0);
		cr_assert_str_eq(
			buf_cstr(&out), "ADDED {\"a\":\"01234...;DELETED {};", "at %zu", a);
		cr_assert_eq(watch_partial(watch), 0);
		watch_free(&watch);
		buf_release(&out);
	}
}

Test(watch, an_event_with_too_much_beside_its_object_is_refused)
{
	struct buf out = BUF_INIT, text = BUF_INIT;
	struct watch_stream *watch = new_watch(&out, 20);

	buf_str(&text, "{\"type\":\"ADDED\",\"x\":\"");
	for (size_t i = 0; i < 70000; i++)
		buf_byte(&text, 'x');
	buf_str(&text, "\",\"object\":{}}");
	cr_assert_eq(watch_feed(watch, text.data, text.size), ERR_PROTOCOL);
	cr_assert_eq(out.size, 0);
	watch_free(&watch);
	buf_release(&out);
	buf_release(&text);
}

Test(watch, only_the_member_of_the_event_itself_is_its_object)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	CLEANUP(watch_free) struct watch_stream *watch = new_watch(&out, 0);
	const char *text = "{\"x\":{\"object\":{\"a\":1}},\"y\":\",\\\"object\\\":{\","
			   "\"type\":\"ADDED\",\"object\":{\"b\":2},\"z\":[{}]}";

	OK(watch_feed(watch, text, strlen(text)));
	cr_assert_str_eq(buf_cstr(&out), "ADDED {\"b\":2};");
}
