/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "common/text/utf8.h"
#include "common/value/json.h"
#include "common/value/value.h"
#include "tests/unit/body.h"
#include "tests/unit/unit.h"

static struct buf body;

static void set_up(void)
{
	body = BUF_INIT;
}

static void tear_down(void)
{
	buf_release(&body);
}

TestSuite(value, .init = set_up, .fini = tear_down);

/* {"s": "text", "m": {"a": [1, -2, 0.5], "n": null}, "t": true, "x": 1E5} */
static void put_example(void)
{
	size_t root = value_open_map(&body);
	value_put_string(&body, BYTES_LIT("s"));
	value_put_string(&body, BYTES_LIT("text"));
	value_put_string(&body, BYTES_LIT("m"));
	size_t member = value_open_map(&body);
	value_put_string(&body, BYTES_LIT("a"));
	size_t array = value_open_array(&body);
	value_put_uint(&body, 1);
	value_put_int(&body, -2);
	value_put_double(&body, 0.5);
	value_close(&body, array, 3);
	value_put_string(&body, BYTES_LIT("n"));
	value_put_nil(&body);
	value_close(&body, member, 2);
	value_put_string(&body, BYTES_LIT("t"));
	value_put_bool(&body, true);
	value_put_string(&body, BYTES_LIT("x"));
	value_put_number_text(&body, BYTES_LIT("1E5"));
	value_close(&body, root, 4);
	cr_assert_eq(buf_error(&body), 0);
}

/* ---- reading ------------------------------------------------------------ */

Test(value, members_are_found_by_key)
{
	struct value root, member, item;

	put_example();
	cr_assert_eq(value_verify(buf_bytes(&body)), 0);
	cr_assert_eq(value_read(buf_bytes(&body), &root), 0);
	cr_assert_eq(root.type, VALUE_MAP);
	cr_assert_eq(root.count, 4);
	cr_assert_eq(value_find(&root, BYTES_LIT("x"), &item), FOUND);
	cr_assert_eq(item.type, VALUE_NUMBER);
	cr_assert(bytes_equal(item.text, BYTES_LIT("1E5")));
	cr_assert_eq(value_find(&root, BYTES_LIT("m"), &member), FOUND);
	cr_assert_eq(value_find(&member, BYTES_LIT("n"), &item), FOUND);
	cr_assert_eq(item.type, VALUE_NIL);
	cr_assert_eq(value_find(&member, BYTES_LIT("t"), &item), NOT_FOUND);
	cr_assert_eq(value_find(&root, BYTES_LIT(""), &item), NOT_FOUND);
	cr_assert_eq(value_find(&item, BYTES_LIT("n"), &item), NOT_FOUND);
}

Test(value, items_come_in_order)
{
	struct value root, member, item;
	struct value_iter iter;
	struct bytes key;

	put_example();
	cr_assert_eq(value_read(buf_bytes(&body), &root), 0);
	value_iter_init(&iter, &root);
	static const char *const keys[] = {"s", "m", "t", "x"};
	for (size_t i = 0; i < 4; i++) {
		cr_assert_eq(value_iter_next(&iter, &key, &item), FOUND);
		cr_assert(bytes_equal(key, bytes_str(keys[i])));
		if (i == 1)
			member = item;
	}
	cr_assert_eq(value_iter_next(&iter, &key, &item), END);
	cr_assert_eq(value_iter_next(&iter, &key, &item), END);

	cr_assert_eq(value_find(&member, BYTES_LIT("a"), &member), FOUND);
	value_iter_init(&iter, &member);
	cr_assert_eq(value_iter_next(&iter, &key, &item), FOUND);
	cr_assert_eq(key.size, 0);
	cr_assert(item.type == VALUE_UINT && item.u.u == 1);
	cr_assert_eq(value_iter_next(&iter, NULL, &item), FOUND);
	cr_assert(item.type == VALUE_INT && item.u.i == -2);
	cr_assert_eq(value_iter_next(&iter, NULL, &item), FOUND);
	cr_assert(item.type == VALUE_DOUBLE && item.u.d == 0.5);
	cr_assert_eq(value_iter_next(&iter, NULL, &item), END);
	value_iter_init(&iter, &item);
	cr_assert_eq(value_iter_next(&iter, NULL, &item), END, "a scalar has no items");
}

Test(value, text_of_a_member_of_a_member_is_found)
{
	struct bytes text;
	size_t root = value_open_map(&body);

	value_put_string(&body, BYTES_LIT("metadata"));
	size_t metadata = value_open_map(&body);
	value_put_string(&body, BYTES_LIT("name"));
	value_put_string(&body, BYTES_LIT("web"));
	value_put_string(&body, BYTES_LIT("generation"));
	value_put_uint(&body, 3);
	value_close(&body, metadata, 2);
	value_close(&body, root, 1);
	cr_assert_eq(value_find_text(buf_bytes(&body), "metadata", "name", &text), FOUND);
	cr_assert(bytes_equal(text, BYTES_LIT("web")));
	cr_assert_eq(value_find_text(buf_bytes(&body), "metadata", "generation", &text), NOT_FOUND);
	cr_assert_eq(value_find_text(buf_bytes(&body), "metadata", "uid", &text), NOT_FOUND);
	cr_assert_eq(value_find_text(buf_bytes(&body), "spec", "name", &text), NOT_FOUND);
	cr_assert_eq(value_find_text(BYTES_NONE, "spec", "name", &text), ERR_CORRUPT);
}

Test(value, integers_keep_their_value_at_every_width)
{
	for (int bit = 0; bit < 64; bit++) {
		for (int64_t d = -1; d <= 1; d++) {
			uint64_t u = ((uint64_t)1 << bit) + (uint64_t)d;
			int64_t i = (int64_t)(0 - u);
			struct value value;
			buf_reset(&body);
			value_put_uint(&body, u);
			cr_assert_eq(value_read(buf_bytes(&body), &value), 0);
			cr_assert_eq(value.size, body.size);
			cr_assert(value.type == VALUE_UINT && value.u.u == u);
			buf_reset(&body);
			value_put_int(&body, i);
			cr_assert_eq(value_read(buf_bytes(&body), &value), 0);
			cr_assert_eq(value.type, i < 0 ? VALUE_INT : VALUE_UINT);
			cr_assert_eq(value.u.i, i);
		}
	}
}

Test(value, sizes_are_those_of_the_first_item)
{
	size_t size;

	put_example();
	size_t example = body.size;
	value_put_nil(&body);
	cr_assert_eq(value_size(buf_bytes(&body), &size), 0);
	cr_assert_eq(size, example);
	cr_assert_eq(value_verify(buf_bytes(&body)), ERR_CORRUPT, "bytes behind the end");
	cr_assert_eq(value_size(BYTES(body.data, example - 1), &size), ERR_CORRUPT);
}

/* Items of one byte, short texts and the others are passed in different ways, and again near the
 * end of the bytes. */
Test(value, every_form_of_an_item_is_passed_whole)
{
	static const size_t texts[] = {0, 1, 30, 31, 32, 33, 254, 255, 256, 65535, 65536};
	static const uint32_t counts[] = {0, 1, 7, 8, 15, 16, 17, 300};
	static char text[65536];

	for (unsigned form = 0; form < 40; form++)
		for (size_t after = 0; after < 50; after += 7) {
			size_t size;

			buf_reset(&body);
			if (form < 11)
				value_put_string(&body, BYTES(text, texts[form]));
			else if (form < 27) {
				bool is_map = form % 2;
				uint32_t count = counts[(form - 11) / 2];
				size_t opened =
					is_map ? value_open_map(&body) : value_open_array(&body);

				for (uint32_t i = 0; i < count; i++) {
					if (is_map)
						value_put_string(&body, BYTES(text, i % 40));
					value_put_uint(&body, i);
				}
				value_close(&body, opened, count);
			} else if (form < 34)
				value_put_int(&body, (int64_t)-1 << (form - 27) * 10);
			else if (form < 37)
				value_put_uint(&body, (uint64_t)127 << (form - 34) * 20);
			else if (form == 37)
				value_put_double(&body, 0.5);
			else if (form == 38)
				value_put_bool(&body, true);
			else
				value_put_nil(&body);
			size_t wanted = body.size;
			for (size_t i = 0; i < after; i++)
				value_put_nil(&body);
			cr_assert_eq(value_size(buf_bytes(&body), &size), 0);
			cr_assert_eq(size, wanted, "form %u, %zu bytes after it", form, after);
		}
}

Test(value, containers_grow_their_head_when_closed)
{
	static const uint32_t counts[] = {0, 1, 15, 16, 65535, 65536};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		buf_reset(&body);
		size_t outer = value_open_array(&body);
		size_t map = value_open_map(&body);
		for (uint32_t n = 0; n < counts[i]; n++) {
			value_put_string(&body, BYTES_LIT("k"));
			value_put_uint(&body, n);
		}
		value_close(&body, map, counts[i]);
		value_put_string(&body, BYTES_LIT("behind"));
		value_close(&body, outer, 2);
		cr_assert_eq(value_verify(buf_bytes(&body)), 0);
		struct value root, item;
		struct value_iter iter;
		cr_assert_eq(value_read(buf_bytes(&body), &root), 0);
		value_iter_init(&iter, &root);
		cr_assert_eq(value_iter_next(&iter, NULL, &item), FOUND);
		cr_assert_eq(item.count, counts[i]);
		cr_assert_eq(value_iter_next(&iter, NULL, &item), FOUND);
		cr_assert(bytes_equal(item.text, BYTES_LIT("behind")));
	}
}

Test(value, a_buffer_that_is_full_stays_refused)
{
	buf_init(&body, 10);
	size_t root = value_open_map(&body);
	value_put_string(&body, BYTES_LIT("longer than ten"));
	value_put_nil(&body);
	value_close(&body, root, 1);
	cr_assert_eq(buf_error(&body), ERR_TOO_LARGE);
}

/* ---- damage ------------------------------------------------------------- */

static size_t n_items;

/* Reads all values, as users do. */
static int visit(const struct value *value, int depth)
{
	char scratch[VALUE_SCRATCH];
	struct bytes key, text;
	struct value_iter iter;
	struct value item;
	int r;

	n_items++;
	if (value->type != VALUE_MAP && value->type != VALUE_ARRAY)
		cr_assert_eq(value_scalar_text(value, scratch, &text), FOUND);
	if (value->type == VALUE_STRING || value->type == VALUE_NUMBER)
		(void)utf8_is_valid(value->text); /* touches every byte */
	if (depth > VALUE_DEPTH_MAX)
		return 0;
	value_iter_init(&iter, value);
	while ((r = value_iter_next(&iter, &key, &item)) == FOUND) {
		(void)utf8_is_valid(key);
		r = visit(&item, depth + 1);
		if (r < 0)
			return r;
	}
	return r == END ? 0 : r;
}

/* In memory of exactly its size: the sanitizer detects a byte too far. */
static void assert_harmless(struct bytes bytes)
{
	AUTO_FREE uint8_t *copy = malloc(bytes.size ? bytes.size : 1);
	struct buf json = BUF_INIT;
	struct value root, item;
	size_t size;

	if (bytes.size)
		memcpy(copy, bytes.data, bytes.size);
	struct bytes document = BYTES(copy, bytes.size);
	int verified = value_verify(document);
	cr_assert(verified == 0 || verified == ERR_CORRUPT);
	int r = value_size(document, &size);
	cr_assert(r == ERR_CORRUPT || size <= document.size);
	if (verified == 0)
		cr_assert(r == 0 && size == document.size);
	r = json_write(document, 2, &json);
	cr_assert(r == ERR_CORRUPT || (r == 0 && json.size));
	cr_assert(verified < 0 || r == 0);
	buf_release(&json);
	r = value_read(document, &root);
	if (r == 0) {
		r = visit(&root, 0);
		(void)value_find(&root, BYTES_LIT("x"), &item);
		(void)value_find_text(document, "m", "a", &document);
	}
	cr_assert(r == 0 || r == ERR_CORRUPT);
	cr_assert(verified < 0 || r == 0);
}

static void put_json(const char *json)
{
	buf_reset(&body);
	body_put(json, &body);
}

static const char *const documents[] = {
	"{\"s\":\"text\",\"m\":{\"a\":[1,-2,0.5],\"n\":null},\"t\":true,\"x\":1E5}",
	"[0,127,128,255,256,65536,4294967296,-1,-33,-129,-32769,-2147483649,1e-7,1.0,1.00,-0.00]",
	"[[[[[[[[]]]]]]],{},\"\",\"a string of more than thirty-one bytes, with \\u0000 and "
	"\u20ac\"]",
	"{\"01\":1,\"02\":1,\"03\":1,\"04\":1,\"05\":1,\"06\":1,\"07\":1,\"08\":1,\"09\":1,\"10\":"
	"1,"
	"\"11\":1,\"12\":1,\"13\":1,\"14\":1,\"15\":1,\"16\":[1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8]"
	"}",
};

Test(value, truncated_bodies_are_refused)
{
	for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
		put_json(documents[i]);
		assert_harmless(buf_bytes(&body));
		for (size_t n = 0; n < body.size; n++) {
			cr_assert_eq(value_verify(BYTES(body.data, n)), ERR_CORRUPT);
			assert_harmless(BYTES(body.data, n));
		}
	}
}

Test(value, flipped_bits_do_no_harm)
{
	for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
		put_json(documents[i]);
		for (size_t bit = 0; bit < 8 * body.size; bit++) {
			body.data[bit / 8] = (uint8_t)(body.data[bit / 8] ^ 1u << bit % 8);
			assert_harmless(buf_bytes(&body));
			body.data[bit / 8] = (uint8_t)(body.data[bit / 8] ^ 1u << bit % 8);
		}
	}
	cr_assert_gt(n_items, 1000);
}

Test(value, forms_that_are_never_written_are_refused)
{
	static const char *const bodies[] = {"\xc1", "\xc4\x01x", "\xc5\x00\x01x",
		"\xca\x00\x00\x00\x00",
		"\xd4\x02"
		"1",
		"\xd6\x01"
		"abcd",
		"\x81\x01\x01", "\xa1\xff", "\xcb\x7f\xf0zzzzzz", "\xcb\x7f\xf8zzzzzz",
		"\xcb\xff\xf8zzzzzz", "\xd4\x01-"};

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		cr_assert_eq(value_verify(bytes_str(bodies[i])), ERR_CORRUPT, "%zu", i);
		assert_harmless(bytes_str(bodies[i]));
	}
}

Test(value, counts_beyond_the_document_are_refused_at_once)
{
	static const uint8_t array[] = {0xdd, 0xff, 0xff, 0xff, 0xff, 1, 2, 3};
	static const uint8_t map[] = {0xdf, 0xff, 0xff, 0xff, 0xff, 0xa1, 'k', 3};
	struct value value;

	cr_assert_eq(value_read(BYTES(array, sizeof(array)), &value), ERR_CORRUPT);
	cr_assert_eq(value_read(BYTES(map, sizeof(map)), &value), ERR_CORRUPT);
}

Test(value, nesting_beyond_the_limit_is_refused_without_recursion)
{
	size_t size, depth = 1000000;

	for (size_t i = 0; i < depth; i++)
		buf_byte(&body, 0x91);
	value_put_nil(&body);
	cr_assert_eq(value_verify(buf_bytes(&body)), ERR_CORRUPT);
	cr_assert_eq(value_size(buf_bytes(&body), &size), 0);
	cr_assert_eq(size, depth + 1);
	cr_assert_eq(
		value_verify(BYTES(body.data + depth - VALUE_DEPTH_MAX, VALUE_DEPTH_MAX + 1)), 0);
}

/* ---- text of scalars ---------------------------------------------------- */

static void assert_text(const char *json, const char *wanted)
{
	char scratch[VALUE_SCRATCH];
	struct value value;
	struct bytes text;

	put_json(json);
	cr_assert_eq(value_read(buf_bytes(&body), &value), 0);
	cr_assert_eq(value_scalar_text(&value, scratch, &text), FOUND);
	cr_assert(bytes_equal(text, bytes_str(wanted)), "%s: %.*s", json, BYTES_ARG(text));
}

Test(value, scalars_have_a_text)
{
	char scratch[VALUE_SCRATCH];
	struct value value;
	struct bytes text;

	assert_text("\"a\\\"b\"", "a\"b");
	assert_text("null", "");
	assert_text("true", "true");
	assert_text("false", "false");
	assert_text("-9223372036854775808", "-9223372036854775808");
	assert_text("18446744073709551615", "18446744073709551615");
	assert_text("0.25", "0.25");
	assert_text("1.0", "1.0");
	put_json("[1]");
	cr_assert_eq(value_read(buf_bytes(&body), &value), 0);
	cr_assert_eq(value_scalar_text(&value, scratch, &text), NOT_FOUND);
}

/* ---- numbers ------------------------------------------------------------ */

static double random_double(uint64_t *state)
{
	double d;

	do {
		*state = *state * 6364136223846793005u + 1442695040888963407u;
		uint64_t bits = *state ^ *state >> 31;
		memcpy(&d, &bits, sizeof(d));
	} while (!isfinite(d));
	return d;
}

Test(number, every_double_reads_back_from_its_own_form)
{
	uint64_t state = 7;

	for (int i = 0; i < 20000; i++) {
		char text[NUMBER_TEXT_MAX + 1];
		double d = random_double(&state);
		if (i % 2) /* small whole numbers with a few digits after the point */
			d = trunc(fmod(d, 1e6) * 100) / 100;
		size_t n = number_format_double(d, text);
		cr_assert(n <= NUMBER_TEXT_MAX && number_is_valid(BYTES(text, n)));
		text[n] = '\0';
		cr_assert(strtod(text, NULL) == d, "%s", text);
		struct number number;
		cr_assert(number_parse(BYTES(text, n), &number));
		cr_assert_neq(number.form, NUMBER_TEXT, "%s", text);
	}
}

Test(number, integers_and_doubles_are_told_apart_from_text)
{
	static const struct {
		const char *text;
		enum number_form form;
	} cases[] = {{"0", NUMBER_UINT}, {"-1", NUMBER_INT}, {"-0", NUMBER_DOUBLE},
		{"0.5", NUMBER_DOUBLE}, {"1.0", NUMBER_TEXT}, {"1E5", NUMBER_TEXT},
		{"1e5", NUMBER_TEXT}, {"-0.0", NUMBER_TEXT}, {"18446744073709551615", NUMBER_UINT},
		{"18446744073709551616", NUMBER_TEXT}, {"-9223372036854775808", NUMBER_INT},
		{"-9223372036854775809", NUMBER_TEXT}, {"1e-7", NUMBER_DOUBLE},
		{"1e400", NUMBER_TEXT}, {"1e-400", NUMBER_TEXT},
		{"100000000000000000000", NUMBER_DOUBLE}, {"1e+21", NUMBER_DOUBLE},
		{"1e21", NUMBER_TEXT}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct number number;
		cr_assert(number_parse(bytes_str(cases[i].text), &number));
		cr_assert_eq(number.form, cases[i].form, "%s", cases[i].text);
	}
	struct number number;
	cr_assert_not(number_parse(BYTES_NONE, &number));
	cr_assert_not(number_parse(BYTES_LIT("1\0"), &number));
}

/* ---- UTF-8 -------------------------------------------------------------- */

Test(utf8, the_width_is_the_number_of_characters)
{
	cr_assert_eq(utf8_width(BYTES_NONE), 0);
	cr_assert_eq(utf8_width(BYTES_LIT("pod-1")), 5);
	cr_assert_eq(utf8_width(BYTES_LIT("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z")), 4);
}

Test(utf8, well_formed_sequences_are_told_from_others)
{
	static const char *const good[] = {"", "abc", "\x7f", "\xc2\x80", "\xdf\xbf",
		"\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80",
		"\xf4\x8f\xbf\xbf", "long ascii text \xe2\x82\xac more ascii text"};
	static const char *const bad[] = {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2",
		"\xc2\x7f", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe2\x82", "\xe2\x82z",
		"\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",
		"long ascii text \xe2\x82", "\xf0\x90\x80"};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		cr_assert(utf8_is_valid(bytes_str(good[i])), "%zu", i);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_not(utf8_is_valid(bytes_str(bad[i])), "%zu", i);
}

Test(utf8, every_scalar_value_is_written_as_valid_text)
{
	uint8_t bytes[4];

	for (uint32_t code = 0; code <= 0x10ffff; code++) {
		if (code >= 0xd800 && code <= 0xdfff)
			continue;
		size_t n = utf8_put(code, bytes);
		cr_assert(utf8_is_valid(BYTES(bytes, n)), "%x", code);
		cr_assert_eq(n, code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4);
	}
}
