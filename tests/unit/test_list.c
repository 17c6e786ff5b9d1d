/* SPDX-License-Identifier: Apache-2.0 */
#include "common/buf.h"
#include "reflector/feed/list.h"
#include "tests/unit/unit.h"

/* Items seen, each followed by ';'. */
static int keep_item(void *arg, struct bytes item, bool cut)
{
	buf_bytes_put(arg, item);
	buf_str(arg, cut ? "...;" : ";");
	return 0;
}

static struct list *new_list(struct buf *out, size_t item_max)
{
	struct list *list;

	cr_assert_eq(list_new(
			     &(struct list_options){
				     .item_max = item_max, .item_fn = keep_item, .arg = out},
			     &list),
		0);
	return list;
}

/* Pieces are copied: ASan detects reads outside of them. */
static int feed_piece(struct list *list, const char *data, size_t size)
{
	AUTO_FREE char *copy = malloc(size ? size : 1);

	memcpy(copy, data, size);
	int r = list_feed(list, copy, size);
	return r;
}

static const char typed[] =
	"{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":"
	"\"121\",\"continue\":\"eyJ2\",\"remainingItemCount\":3},\"items\":[{\"metadata\":{"
	"\"name\":\"a]\"}},"
	"{\"metadata\":{\"name\":\"b\\\"\"}} , {}]}\n";
static const char typed_items[] =
	"{\"metadata\":{\"name\":\"a]\"}};{\"metadata\":{\"name\":\"b\\\"\"}};{};";

Test(list, what_a_list_says_about_itself_loses_its_escapes)
{
	static const char body[] =
		"{\"kind\":\"Pod\\u004cist\",\"metadata\":{\"continue\":\"a\\u0026\\\"b\\/c\","
		"\"resourceVersion\":\"\\u003c7\\\\\",\"remainingItemCount\":3},\"items\":null}";
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	CLEANUP(list_free) struct list *list = new_list(&out, 0);
	struct list_page page;

	cr_assert_eq(feed_piece(list, body, sizeof(body) - 1), 0);
	OK(list_end(list, &page));
	cr_assert(bytes_equal(page.kind, BYTES_LIT("PodList")));
	cr_assert(bytes_equal(page.rv, BYTES_LIT("<7\\")), "%.*s", BYTES_ARG(page.rv));
	cr_assert(bytes_equal(page.continue_, BYTES_LIT("a&\"b/c")), "%.*s",
		BYTES_ARG(page.continue_));
	cr_assert_eq(page.remaining, 3);
}

static void check_typed(struct list *list, struct buf *out)
{
	struct list_page page;

	OK(list_end(list, &page));
	cr_assert_str_eq(buf_cstr(out), typed_items);
	cr_assert(bytes_equal(page.kind, BYTES_LIT("PodList")));
	cr_assert(bytes_equal(page.rv, BYTES_LIT("121")));
	cr_assert(bytes_equal(page.continue_, BYTES_LIT("eyJ2")));
	cr_assert_eq(page.remaining, 3);
	cr_assert_eq(page.items, 3);
}

Test(list, a_body_gives_the_same_items_wherever_it_is_split)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	CLEANUP(list_free) struct list *list = new_list(&out, 0);

	for (size_t a = 0; a < sizeof(typed); a++) {
		for (size_t b = a; b < sizeof(typed); b++) {
			list_reset(list);
			buf_reset(&out);
			cr_assert_eq(feed_piece(list, typed, a), 0);
			cr_assert_eq(feed_piece(list, typed + a, b - a), 0);
			cr_assert_eq(feed_piece(list, typed + b, sizeof(typed) - 1 - b), 0);
			check_typed(list, &out);
		}
	}
}

Test(list, a_body_gives_the_same_items_byte_by_byte)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	CLEANUP(list_free) struct list *list = new_list(&out, 0);

	for (size_t i = 0; i < sizeof(typed) - 1; i++)
		cr_assert_eq(feed_piece(list, typed + i, 1), 0);
	check_typed(list, &out);
}

static int cut(const char *body, size_t item_max, struct buf *out, struct list_page *ret_page)
{
	CLEANUP(list_free) struct list *list = new_list(out, item_max);
	int r = list_feed(list, body, strlen(body));

	if (r == 0)
		r = list_end(list, ret_page);
	return r;
}

Test(list, keys_may_come_in_any_order_and_items_may_be_missing)
{
	static const struct {
		const char *body, *items;
	} cases[] = {
		{"{\"apiVersion\":\"x/"
		 "v1\",\"items\":[{\"a\":1}],\"kind\":\"CronTabList\",\"metadata\":{"
		 "\"resourceVersion\":\"5\"}}",
			"{\"a\":1};"},
		{"{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":null}", ""},
		{"{\"kind\":\"Widgets\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[{}]}",
			"{};"}, /* listKind of a definition */
		{"{\"metadata\":{\"resourceVersion\":\"5\"}}", ""},
		{" { \"metadata\" : { \"resourceVersion\" : \"5\" } , \"items\" : [ ] } \n", ""},
		{"{\"x\":{\"items\":[{\"no\":1}]},\"items\":[{\"a\":[]}],\"y\":[1,\"items\"],\"z\":"
		 "true,"
		 "\"metadata\":{\"resourceVersion\":\"5\"}}",
			"{\"a\":[]};"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf out = BUF_INIT;
		struct list_page page;

		cr_assert_eq(cut(cases[i].body, 0, &out, &page), 0, "%s: %s", cases[i].body,
			err_text(ERR_PROTOCOL));
		cr_assert_str_eq(buf_cstr(&out), cases[i].items);
		cr_assert_eq(page.remaining, -1);
		buf_release(&out);
	}
}

Test(list, bodies_that_are_no_list_are_refused)
{
	static const char *const bad[] = {"", "\xef\xbb\xbf{}", "[]", "null", "{}",
		"{\"items\":[]}", "{\"metadata\":{}}", "{\"metadata\":{\"resourceVersion\":\"\"}}",
		"{\"kind\":\"Status\",\"metadata\":{\"resourceVersion\":\"5\"}}",
		"{\"kind\":\"Table\",\"metadata\":{\"resourceVersion\":\"5\"}}",
		"{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[{}]",
		"{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[{}",
		"{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[{},]}",
		"{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[{}{}]}",
		"{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[null]}",
		"{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[1]}",
		"{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":{}}",
		"{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[],\"items\":[]}",
		"{\"metadata\":{\"resourceVersion\":\"5\"}}x",
		"{\"metadata\":{\"resourceVersion\":\"5\"}}{}",
		"{\"metadata\" {\"resourceVersion\":\"5\"}}", "{\"metadata\":,\"items\":[]}",
		"{,\"metadata\":{\"resourceVersion\":\"5\"}}",
		"{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":nu ll}",
		"{\"metadata\":{\"resourceVersion\":\"5\"},\"items\"::null}",
		"{\"a\":x\",\"items\":[{}],\"b\\\"\":1,\"metadata\":{\"resourceVersion\":\"5\"}}",
		"{\"metadata\":{\"resourceVersion\":\"5\"},}"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct buf out = BUF_INIT;
		struct list_page page;

		cr_assert_eq(cut(bad[i], 0, &out, &page), ERR_PROTOCOL, "'%s'", bad[i]);
		buf_release(&out);
	}
}

Test(list, damage_is_reported_with_its_byte)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	CLEANUP(list_free) struct list *list = new_list(&out, 0);
	const char *body = "{\"items\":[{\"a\":1} {}]}";

	cr_assert_eq(list_feed(list, body, 12), 0);
	cr_assert_eq(list_feed(list, body + 12, strlen(body) - 12), ERR_PROTOCOL);
	cr_assert_str_eq(err_text(ERR_PROTOCOL), "list, byte 18: no comma between items");
}

Test(list, c67_of_an_item_above_the_limit_the_beginning_is_given_and_the_rest_skipped)
{
	const char *body = "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[{\"a\":1},"
			   "{\"b\":\"0123456789}0123456789\"},{\"c\":3}]}";
	size_t size = strlen(body);
	struct list_page page;

	for (size_t a = 0; a <= size; a++) {
		struct buf out = BUF_INIT;
		struct list *list = new_list(&out, 12);

		cr_assert_eq(feed_piece(list, body, a), 0);
		cr_assert_eq(feed_piece(list, body + a, size - a), 0);
		cr_assert_eq(list_end(list, &page), 0);
		cr_assert_eq(page.items, 3);
		cr_assert_str_eq(
			buf_cstr(&out), "{\"a\":1};{\"b\":\"012345...;{\"c\":3};", "at %zu", a);
		list_free(&list);
		buf_release(&out);
	}
}

Test(list, c67_an_item_without_end_is_given_up_and_costs_no_memory)
{
	static char block[1 << 16];
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	CLEANUP(list_free) struct list *list = new_list(&out, 4 << 20);
	int r = list_feed(list, "{\"items\":[{\"a\":\"", 16);

	memset(block, 'x', sizeof(block));
	for (size_t fed = 0; !r && fed < (size_t)80 << 20; fed += sizeof(block))
		r = list_feed(list, block, sizeof(block));
	cr_assert_eq(r, ERR_TOO_LARGE);
}

static int refuse_item(void *arg, struct bytes item, bool cut)
{
	(void)arg;
	(void)cut;
	(void)item;
	return ERR_FAILPOINT;
}

Test(list, the_callbacks_error_comes_out)
{
	CLEANUP(list_free) struct list *list = NULL;

	cr_assert_eq(list_new(&(struct list_options){.item_fn = refuse_item}, &list), 0);
	cr_assert_eq(list_feed(list, "{\"items\":[{}]}", 14), ERR_FAILPOINT);
}
