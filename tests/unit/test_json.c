/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/mman.h>

#include "common/value/json.h"
#include "common/value/value.h"
#include "tests/unit/unit.h"

static struct json_parser *parser;
static struct buf body, text;

static void set_up(void)
{
	cr_assert_eq(json_parser_new(&parser), 0);
	body = text = BUF_INIT;
}

static void tear_down(void)
{
	json_parser_free(&parser);
	buf_release(&body);
	buf_release(&text);
}

TestSuite(json, .init = set_up, .fini = tear_down);

static int parse(const char *json)
{
	buf_reset(&body);
	return json_parse(parser, bytes_str(json), NULL, &body);
}

static const char *write_back(int indent)
{
	buf_reset(&text);
	OK(json_write(buf_bytes(&body), indent, &text));
	return buf_cstr(&text);
}

static void assert_becomes(const char *json, const char *wanted)
{
	int r = parse(json);

	cr_assert_eq(r, 0, "%s: %s", json, err_text(r));
	cr_assert_eq(value_verify(buf_bytes(&body)), 0, "%s", json);
	cr_assert_str_eq(write_back(0), wanted);
}

static void assert_same(const char *json)
{
	assert_becomes(json, json);
}

static void assert_syntax(const char *json, const char *part)
{
	int r = parse(json);

	cr_assert_eq(r, ERR_SYNTAX, "%s: %d", json, r);
	cr_assert(strstr(err_text(r), part), "%s: '%s' is not in '%s'", json, part, err_text(r));
	cr_assert_eq(body.size, 0);
}

/* ---- fidelity ----------------------------------------------------------- */

Test(json, numbers_come_back_as_they_were_written)
{
	static const char *const numbers[] = {"0", "-0", "-0.0", "0.0", "1", "-1", "1.0", "1.50",
		"1E5", "1e5", "1e+5", "1e-7", "1e-07", "0.0000001", "1e400", "-1e400", "1e-400",
		"0e0", "0.1", "0.30000000000000004", "1e21", "1e+21", "100000000000000000000",
		"123456789012345678901", "127", "128", "255", "256", "65535", "65536", "4294967295",
		"4294967296", "-32", "-33", "-128", "-129", "-32768", "-32769", "-2147483648",
		"-2147483649", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
		"-9223372036854775809", "18446744073709551615", "18446744073709551616", "5e-324",
		"1.7976931348623157e+308", "1.7976931348623157e308", "2.2250738585072014e-308",
		"12345678901234567890123456789012345678901234567890", "1e99999999999999999999",
		"1e-99999999999999999999", "3.141592653589793238462643383279"};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		assert_same(numbers[i]);
}

Test(json, structure_comes_back_as_it_was)
{
	static const char *const documents[] = {"null", "true", "false", "\"\"", "\"text\"", "{}",
		"[]", "[[]]", "[{}]", "{\"a\":{}}", "{\"a\":[]}", "[null,true,false,1,\"x\",[],{}]",
		"{\"b\":1,\"a\":2}", "{\"a\":1,\"a\":2,\"a\":{\"a\":3}}", "{\"\":1}",
		"{\"\":{\"\":\"\"}}", "{\"app.kubernetes.io/name\":\"x\",\"a/b.c\":null}",
		"{\"a\":[{\"b\":[1,{\"c\":[2]}]},3],\"d\":4}"};

	for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++)
		assert_same(documents[i]);
}

Test(json, strings_keep_their_characters)
{
	assert_same("\"\u00e4\u20ac\U0001f600\"");
	assert_same("{\"\u00e4\":\"\U0001f600\"}");
	assert_becomes("\"\\u00e4\\u20AC\\ud83d\\uDE00\"", "\"\u00e4\u20ac\U0001f600\"");
	assert_same("\"\\u0000\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f\\\"\\\\\"");
	assert_same("{\"a\\u0000b\":1,\"a\":2}");
	assert_becomes("\"\\/\\u0041\\u002f\"", "\"/A/\"");
	assert_becomes("\"<a&b>\"", "\"\\u003ca\\u0026b\\u003e\"");
	assert_becomes(
		"\"\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa\"", "\"\\u2028\\u2029\xe2\x80\xaa\"");
	assert_same("\"\x7f\"");
	assert_becomes("{\"\\u006b\\u0065y\":1}", "{\"key\":1}");
}

Test(json, half_a_surrogate_pair_becomes_the_replacement_character)
{
	assert_becomes("\"\\ud800\"", "\"\ufffd\"");
	assert_becomes("\"a\\udc00b\"", "\"a\ufffdb\"");
	assert_becomes("\"\\ud800\\u0041\"", "\"\ufffdA\"");
	assert_becomes("\"\\ud800\\ud800\\udc00\"", "\"\ufffd\U00010000\"");
	assert_becomes("\"\\ud800\\n\"", "\"\ufffd\\n\"");
	assert_becomes("\"\\udbff\\udfff\"", "\"\U0010ffff\"");
}

Test(json, blanks_between_tokens_do_not_matter)
{
	assert_becomes(" \t\r\n{ \"a\" : [ 1 , 2 , \"x\" ] ,\n \"b\" : { } , \"c\":[ ] }\n ",
		"{\"a\":[1,2,\"x\"],\"b\":{},\"c\":[]}");
	assert_becomes(" 12 ", "12");
	assert_becomes("\n\"a b\"\t", "\"a b\"");
}

Test(json, containers_and_strings_of_any_size_are_kept)
{
	static const size_t sizes[] = {15, 16, 31, 32, 255, 256, 65535, 65536, 70000};
	CLEANUP(buf_release) struct buf json = BUF_INIT;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		buf_reset(&json);
		buf_str(&json, "{\"list\":[0");
		for (size_t n = 1; n < sizes[i]; n++)
			buf_printf(&json, ",%zu", n % 7);
		buf_str(&json, "],\"map\":{\"k0\":0");
		for (size_t n = 1; n < sizes[i]; n++)
			buf_printf(&json, ",\"k%zu\":%zu", n, n);
		buf_printf(&json, "},\"text\":\"%0*d\",\"number\":1%0*d}", (int)sizes[i], 0,
			(int)sizes[i], 0);
		assert_same(buf_cstr(&json));
	}
}

/* ---- refusals ----------------------------------------------------------- */

Test(json, what_is_no_json_is_refused_with_its_place)
{
	assert_syntax("", "empty");
	assert_syntax(" \n", "blanks");
	assert_syntax("{", "byte 1: expected a key");
	assert_syntax("{\"a\"", "byte 4: expected ':'");
	assert_syntax("{\"a\":", "byte 5: expected a value");
	assert_syntax("{\"a\":1", "byte 6: expected ',' or '}'");
	assert_syntax("{\"a\":1,}", "byte 7: expected a key");
	assert_syntax("{\"a\" 1}", "byte 5: expected ':'");
	assert_syntax("{\"a\"::1}", "byte 5: expected a value");
	assert_syntax("{1:2}", "byte 1: expected a key");
	assert_syntax("{\"a\":1 \"b\":2}", "byte 7: expected ',' or '}'");
	assert_syntax("{\"a\":1]", "byte 6: expected ',' or '}'");
	assert_syntax("[1,]", "byte 3: expected a value");
	assert_syntax("[,1]", "byte 1: expected a value");
	assert_syntax("[1 2]", "byte 3: expected ',' or ']'");
	assert_syntax("[1}", "byte 2: expected ',' or ']'");
	assert_syntax("[", "found the end");
	assert_syntax("]", "byte 0: expected a value");
	assert_syntax("nul", "byte 0: expected a value");
	assert_syntax("nulll", "byte 0: expected a value");
	assert_syntax("truefalse", "byte 0: expected a value");
	assert_syntax("'a'", "byte 0: expected a value");
	assert_syntax("\"a", "unterminated");
	assert_syntax("[\"a]", "unterminated");
	assert_syntax("\"\\x\"", "escape");
	assert_syntax("\"\\u12g4\"", "escape");
	assert_syntax("\"\\u123\"", "escape");
	assert_syntax("\"a\tb\"", "control character");
	assert_syntax("\"a\"b", "after the document");
	assert_syntax("NaN", "expected a value");
	assert_syntax("[Infinity]", "expected a value");
	assert_syntax("/* */ 1", "expected a value");
}

Test(json, numbers_outside_the_grammar_are_refused)
{
	static const char *const numbers[] = {"+1", "01", "-01", "00", "1.", ".5", "1.e5", "1e",
		"1e+", "-", "--1", "1-", "0x10", "1_0", "1 .5", "1e5.5", "- 1", "1a", "1,5",
		"1.5.5", "e5"};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		assert_syntax(numbers[i], "JSON");
}

Test(json, something_behind_the_document_is_refused)
{
	assert_syntax("{}{}", "byte 2: something after the document");
	assert_syntax("1 2", "byte 2: something after the document");
	assert_syntax("[] x", "byte 3: something after the document");
	assert_syntax("null,", "byte 4: something after the document");
	assert_syntax("{}}", "byte 2: something after the document");
}

Test(json, bytes_that_are_not_utf8_are_refused)
{
	assert_syntax("\"\xff\"", "UTF-8");
	assert_syntax("\"\xc0\xaf\"", "UTF-8");
	assert_syntax("\"\xed\xa0\x80\"", "UTF-8");
	assert_syntax("\"\xf4\x90\x80\x80\"", "UTF-8");
	assert_syntax("\"\xe2\x82\"", "UTF-8");
}

static void put_nested(struct buf *json, int depth)
{
	for (int i = 0; i < depth; i++)
		buf_str(json, i % 2 ? "{\"a\":" : "[");
	buf_str(json, "1");
	for (int i = depth; i-- > 0;)
		buf_str(json, i % 2 ? "}" : "]");
}

Test(json, nesting_ends_at_the_limit)
{
	CLEANUP(buf_release) struct buf json = BUF_INIT;

	put_nested(&json, VALUE_DEPTH_MAX);
	assert_same(buf_cstr(&json));
	buf_reset(&json);
	put_nested(&json, VALUE_DEPTH_MAX + 1);
	cr_assert_eq(parse(buf_cstr(&json)), ERR_TOO_LARGE);
	cr_assert_eq(body.size, 0);
	buf_reset(&json);
	for (int i = 0; i < 1000000; i++)
		buf_byte(&json, '[');
	cr_assert_eq(parse(buf_cstr(&json)), ERR_TOO_LARGE);
}

Test(json, a_failed_parse_leaves_the_output_as_it_was)
{
	buf_str(&body, "before");
	cr_assert_eq(json_parse(parser, BYTES_LIT("{\"a\":[1,2,x]}"), NULL, &body), ERR_SYNTAX);
	cr_assert_eq(body.size, 6);
	body.limit = 20;
	cr_assert_eq(json_parse(parser, BYTES_LIT("[\"longer than the limit\"]"), NULL, &body),
		ERR_TOO_LARGE);
	cr_assert_eq(body.size, 6);
	cr_assert_eq(json_parse(parser, BYTES_LIT("[1]"), NULL, &body), 0);
	cr_assert_eq(body.size, 8);
}

/* The text ends where readable memory ends, at every length around simdjson's blocks. */
Test(json, nothing_is_read_behind_the_text)
{
	size_t page = 4096;
	char *map =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(map, MAP_FAILED);
	cr_assert_eq(mprotect(map + page, page, PROT_NONE), 0);
	for (size_t size = 4; size < 600; size++) {
		char *json = map + page - size;
		memset(json, 'x', size);
		json[0] = json[size - 1] = '"';
		if (size % 2)
			memcpy(json + size - 3, "\\n", 2);
		buf_reset(&body);
		int r = json_parse(parser, BYTES(json, size), NULL, &body);
		cr_assert_eq(r, 0, "%zu: %s", size, err_text(r));
	}
	for (size_t size = 1; size < 300; size++) {
		char *json = map + page - size;
		memset(json, '1', size);
		buf_reset(&body);
		cr_assert_eq(json_parse(parser, BYTES(json, size), NULL, &body), 0);
	}
	munmap(map, 2 * page);
}

Test(json, every_beginning_of_a_document_is_refused)
{
	static const char document[] = "{\"a\":[1,-2.5e3,true,null,{\"b\\u0041\":\"\\ud83d\\ude00 "
				       "\u00e4\"}],\"c\":{\"d\":[]}}";

	assert_becomes(document,
		"{\"a\":[1,-2.5e3,true,null,{\"bA\":\"\U0001f600 \u00e4\"}],\"c\":{\"d\":[]}}");
	for (size_t n = 0; n + 1 < sizeof(document) - 1; n++) {
		buf_reset(&body);
		cr_assert_eq(json_parse(parser, BYTES(document, n), NULL, &body), ERR_SYNTAX);
	}
}

Test(json, flipped_bits_give_an_error_or_a_sound_body)
{
	static const char document[] = "{\"a\":[1,-2.5e3,true,null,{\"b\\u0041\":\"\\ud83d\\ude00 "
				       "\u00e4\"}],\"c\":{\"d\":[]}}";
	char copy[sizeof(document)];

	for (size_t bit = 0; bit < 8 * (sizeof(document) - 1); bit++) {
		memcpy(copy, document, sizeof(copy));
		copy[bit / 8] = (char)(copy[bit / 8] ^ 1 << bit % 8);
		buf_reset(&body);
		int r = json_parse(parser, BYTES(copy, sizeof(copy) - 1), NULL, &body);
		cr_assert(r == 0 || r == ERR_SYNTAX, "bit %zu: %d", bit, r);
		if (r < 0)
			continue;
		cr_assert_eq(value_verify(buf_bytes(&body)), 0);
		(void)write_back(0);
	}
}

/* ---- options ------------------------------------------------------------ */

static void assert_with(const char *json, const struct json_options *options, const char *wanted)
{
	buf_reset(&body);
	int r = json_parse(parser, bytes_str(json), options, &body);
	cr_assert_eq(r, 0, "%s: %s", json, err_text(r));
	cr_assert_eq(value_verify(buf_bytes(&body)), 0);
	cr_assert_str_eq(write_back(0), wanted);
}

Test(json, dropped_paths_never_reach_the_output)
{
	struct path *paths[3];

	cr_assert_eq(path_parse("metadata.managedFields", &paths[0]), 0);
	cr_assert_eq(path_parse("metadata.annotations['a.b/c']", &paths[1]), 0);
	cr_assert_eq(path_parse("status", &paths[2]), 0);
	struct json_options options = {.drop = (const struct path *const *)paths, .n_drop = 3};

	assert_with("{\"metadata\":{\"name\":\"x\",\"managedFields\":[{\"a\":{\"b\":[1]}},\"]\"],"
		    "\"uid\":\"u\"}}",
		&options, "{\"metadata\":{\"name\":\"x\",\"uid\":\"u\"}}");
	assert_with("{\"metadata\":{\"managedFields\":null},\"status\":1}", &options,
		"{\"metadata\":{}}");
	assert_with("{\"metadata\":{\"annotations\":{\"a.b/c\":\"{\\\"x\\\":1}\",\"d\":\"e\"}}}",
		&options, "{\"metadata\":{\"annotations\":{\"d\":\"e\"}}}");
	assert_with(
		"{\"managedFields\":1,\"spec\":{\"status\":2,\"metadata\":{\"managedFields\":3}}}",
		&options,
		"{\"managedFields\":1,\"spec\":{\"status\":2,\"metadata\":{\"managedFields\":3}}}");
	assert_with("{\"metadata\":[{\"managedFields\":1}]}", &options,
		"{\"metadata\":[{\"managedFields\":1}]}");
	assert_with(
		"{\"metadata\":\"text\",\"\\u0073tatus\":{}}", &options, "{\"metadata\":\"text\"}");
	assert_with("{\"status\":{},\"a\":1,\"status\":[]}", &options, "{\"a\":1}");
	static const char *const bad[] = {"{\"status\":}", "{\"status\":,}", "{\"status\":[}",
		"{\"status\"}", "{\"status\":[[]", "{\"status\":]}"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(json_parse(parser, bytes_str(bad[i]), &options, &body), ERR_SYNTAX,
			"%s", bad[i]);
	for (size_t i = 0; i < 3; i++)
		path_free(&paths[i]);
}

Test(json, kind_is_put_first_where_there_is_none)
{
	struct json_options options = {.kind = "Pod", .api_version = "v1"};

	assert_with("{\"metadata\":{}}", &options,
		"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{}}");
	assert_with("{}", &options, "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}");
	assert_with("{\"kind\":\"X\",\"a\":1}", &options, "{\"kind\":\"X\",\"a\":1}");
	assert_with("{\"a\":1,\"apiVersion\":null}", &options, "{\"a\":1,\"apiVersion\":null}");
	assert_with("{\"a\":{\"kind\":\"X\"}}", &options,
		"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"a\":{\"kind\":\"X\"}}");
	assert_with("[{\"a\":1}]", &options, "[{\"a\":1}]");
	assert_with("{\"1\":1,\"2\":2,\"3\":3,\"4\":4,\"5\":5,\"6\":6,\"7\":7,\"8\":8,\"9\":9,"
		    "\"10\":1,\"11\":1,\"12\":1,\"13\":1,\"14\":1,\"kind\":{}}",
		&options,
		"{\"1\":1,\"2\":2,\"3\":3,\"4\":4,\"5\":5,\"6\":6,\"7\":7,\"8\":8,\"9\":9,"
		"\"10\":1,\"11\":1,\"12\":1,\"13\":1,\"14\":1,\"kind\":{}}");
}

/* ---- writing ------------------------------------------------------------ */

Test(json, indented_output_looks_like_kubectl)
{
	cr_assert_eq(parse("{\"a\":[1,{\"b\":{}}],\"c\":[],\"d\":{\"e\":null}}"), 0);
	cr_assert_str_eq(write_back(4), "{\n"
					"    \"a\": [\n"
					"        1,\n"
					"        {\n"
					"            \"b\": {}\n"
					"        }\n"
					"    ],\n"
					"    \"c\": [],\n"
					"    \"d\": {\n"
					"        \"e\": null\n"
					"    }\n"
					"}");
}

Test(json, damaged_bodies_are_not_written)
{
	static const char *const bodies[] = {"\x81\x01\x02", "\x92\x01",
		"\xa5"
		"abc",
		"\xc1", "\xc4\x01x", "\xd4\x02x", "\xd4\x01x", "\xdf\xff\xff\xff\xff", "\xc0\xc0",
		""};

	buf_str(&text, "before");
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		cr_assert_eq(json_write(bytes_str(bodies[i]), 0, &text), ERR_CORRUPT, "%zu", i);
		cr_assert_eq(text.size, 6);
	}
}

/* Strings are looked at in blocks: each length and each place of an escape. */
Test(json, each_string_is_written_with_its_escapes)
{
	static const struct {
		const char *stored, *written;
	} escapes[] = {{"\"", "\\\""}, {"&", "\\u0026"}, {"<", "\\u003c"}, {">", "\\u003e"},
		{"\\", "\\\\"}, {"\n", "\\n"}, {"\x1f", "\\u001f"}, {"\xe2\x80\xa8", "\\u2028"},
		{"\xe2\x82\xac", "\xe2\x82\xac"}, {"\x7f", "\x7f"}, {" ", " "}, {"$", "$"},
		{"?", "?"}};
	CLEANUP(buf_release) struct buf plain = BUF_INIT, wanted = BUF_INIT;

	for (size_t i = 0; i < 300; i++)
		buf_byte(&plain, (uint8_t)('A' + i % 26));
	for (size_t e = 0; e < sizeof(escapes) / sizeof(*escapes); e++)
		for (size_t before = 0; before < 40; before++)
			for (size_t after = 0; after < 260; after += after < 40 ? 1 : 43) {
				buf_reset(&text);
				buf_reset(&body);
				buf_reset(&wanted);
				buf_put(&text, plain.data, before);
				buf_str(&text, escapes[e].stored);
				buf_put(&text, plain.data, after);
				size_t array = value_open_array(&body);
				value_put_string(&body, buf_bytes(&text));
				value_put_nil(&body);
				value_close(&body, array, 2);
				buf_str(&wanted, "[\"");
				buf_put(&wanted, plain.data, before);
				buf_str(&wanted, escapes[e].written);
				buf_put(&wanted, plain.data, after);
				buf_str(&wanted, "\",null]");
				/* A copy: ASan detects reads past it. */
				AUTO_FREE uint8_t *copy = malloc(body.size);
				memcpy(copy, body.data, body.size);
				buf_release(&text);
				cr_assert_eq(json_write(BYTES(copy, body.size), 0, &text), 0);
				cr_assert_str_eq(buf_cstr(&text), buf_cstr(&wanted));
			}
}

Test(json, one_item_of_a_document_is_written)
{
	cr_assert_eq(parse("[{\"a\":[1,\"x\"]},\"second\",3]"), 0);
	const uint8_t *at = body.data + 1, *end = body.data + body.size;

	for (size_t i = 0; i < 3; i++) {
		cr_assert_eq(json_write_item(&at, end, 0, 0, &text), 0);
		buf_byte(&text, ' ');
	}
	cr_assert_str_eq(buf_cstr(&text), "{\"a\":[1,\"x\"]} \"second\" 3 ");
	cr_assert_eq(at, end);
	cr_assert_eq(json_write_item(&at, end, 0, 0, &text), ERR_CORRUPT);
}

Test(json, output_keeps_to_its_limit)
{
	static const char json[] = "[\"0123456789\",\"<23456789\",{\"a\":[]},12]";

	cr_assert_eq(parse(json), 0);
	size_t size = strlen(write_back(0));
	for (size_t limit = 1; limit < size + 80; limit++) {
		buf_release(&text);
		text.limit = limit;
		int r = json_write(buf_bytes(&body), 0, &text);
		cr_assert(r == ERR_TOO_LARGE ? limit < size + 64 : r == 0 && limit >= size,
			"%zu of %zu: %d", limit, size, r);
		cr_assert_eq(text.size, r == 0 ? size : 0);
	}
	text.limit = 0;
}

Test(json, output_that_reaches_its_limit_is_taken_back)
{
	cr_assert_eq(parse("[\"0123456789\",\"0123456789\"]"), 0);
	text.limit = 16;
	cr_assert_eq(json_write(buf_bytes(&body), 0, &text), ERR_TOO_LARGE);
	cr_assert_eq(text.size, 0);
}

static struct json_identity identity_of(const char *json)
{
	struct json_identity identity = {0};

	buf_reset(&body);
	OK(json_parse(
		parser, bytes_str(json), &(struct json_options){.identity = &identity}, &body));
	return identity;
}

Test(json, an_objects_identity_comes_with_its_body)
{
	struct json_identity id = identity_of(
		"{\"kind\":\"Pod\",\"name\":\"no\",\"spec\":{\"metadata\":{\"uid\":\"no\"},"
		"\"kind\":\"no\"},"
		"\"metadata\":{\"labels\":{\"name\":\"no\"},\"name\":\"a\",\"namespace\":\"d\","
		"\"ownerReferences\":[{\"uid\":\"no\"}],\"resourceVersion\":\"5\",\"uid\":\"u\"},"
		"\"status\":{\"uid\":\"no\"}}");

	cr_assert(!id.is_odd);
	cr_assert(bytes_equal(id.kind, BYTES_LIT("Pod")));
	cr_assert(bytes_equal(id.name_space, BYTES_LIT("d")));
	cr_assert(bytes_equal(id.name, BYTES_LIT("a")));
	cr_assert(bytes_equal(id.uid, BYTES_LIT("u")));
	cr_assert(bytes_equal(id.rv, BYTES_LIT("5")));
	id = identity_of("{\"metadata\":{}}");
	cr_assert(!id.is_odd && !id.name.size && !id.kind.size);
}

Test(json, an_identity_with_escapes_or_of_another_type_is_odd)
{
	cr_assert(identity_of("{\"metadata\":{\"name\":\"\\u0061\"}}").is_odd);
	cr_assert(identity_of("{\"metadata\":{\"name\":null}}").is_odd);
	cr_assert(identity_of("{\"kind\":{}}").is_odd);
	cr_assert(!identity_of("{\"metadata\":{\"labels\":{\"name\":\"\\u0061\"}}}").is_odd);
}
