/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/jsontext.h"

#include <criterion/criterion.h>

#include "common/cleanup.h"

static void expect_get(const char *text, const char *key, const char *expected)
{
	struct bytes found = jsontext_get(bytes_str(text), key);

	if (!expected)
		cr_assert_null(found.data, "%s in %s", key, text);
	else
		cr_assert(bytes_equal(found, bytes_str(expected)), "%s in %s: '%.*s'", key, text,
			BYTES_ARG(found));
}

Test(jsontext, members_are_found_with_their_spelling)
{
	expect_get("{\"a\":1.0}", "a", "1.0");
	expect_get(" { \"a\" : { \"b\" : [ 1 , {} ] } , \"c\" : -0.0 } ", "a.b", "[ 1 , {} ]");
	expect_get(" { \"a\" : { \"b\" : [ 1 , {} ] } , \"c\" : -0.0 } ", "c", "-0.0");
	expect_get("{\"x\":\"}\\\"{\",\"a\":null}", "a", "null");
	expect_get("{\"x\":{\"a\":1}}", "a", NULL);
	expect_get("[\"a\",1]", "a", NULL);
	expect_get("{\"a\":1,\"a\":2}", "a", "1");
}

Test(jsontext, broken_text_is_never_read_beyond_its_end)
{
	static const char text[] = "{\"a\":{\"b\":[1,\"x\\\"y\"]},\"c\":\"\\u00e9\",\"d\":[{},[]]}";

	for (size_t size = 0; size < sizeof(text); size++) {
		/* An exact heap copy: ASan sees a read behind it. */
		AUTO_FREE char *copy = malloc(size ? size : 1);
		CLEANUP(buf_release) struct buf out = BUF_INIT;
		struct bytes whole, cut = BYTES(copy, size);

		memcpy(copy, text, size);
		(void)jsontext_get(cut, "a.b");
		(void)jsontext_get(cut, "d");
		(void)jsontext_single(cut, &whole);
		cr_assert_leq(whole.size, size);
		jsontext_unescape(jsontext_get(cut, "c"), &out);
		jsontext_merge(cut, cut, &out);
	}
}

static void expect_merge(const char *target, const char *patch, const char *expected)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;

	jsontext_merge(bytes_str(target), bytes_str(patch), &out);
	cr_assert_str_eq(buf_cstr(&out), expected);
}

Test(jsontext, merge_patch_does_as_rfc_7386_says)
{
	expect_merge("{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}");
	expect_merge("{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}");
	expect_merge("{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}");
	expect_merge("{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}");
	expect_merge("{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}",
		"{\"a\":{\"b\":\"d\"}}");
	expect_merge("{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}");
	expect_merge("{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}");
	expect_merge("[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}");
	expect_merge("{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}");
	expect_merge("{\"a\":1.0,\"b\":1E5}", "{\"c\":-0.0}", "{\"a\":1.0,\"b\":1E5,\"c\":-0.0}");
}

Test(jsontext, escapes_go_both_ways)
{
	CLEANUP(buf_release) struct buf plain = BUF_INIT;
	CLEANUP(buf_release) struct buf text = BUF_INIT;

	jsontext_unescape(
		bytes_str("\"q\\\"b\\\\s\\/n\\n\\u00e9\\u65e5\\ud83d\\ude00\\u003c\""), &plain);
	cr_assert_str_eq(buf_cstr(&plain), "q\"b\\s/n\n\303\251\346\227\245\360\237\230\200<");
	jsontext_put_string(&text, buf_bytes(&plain));
	cr_assert_str_eq(
		buf_cstr(&text), "\"q\\\"b\\\\s/n\\n\303\251\346\227\245\360\237\230\200\\u003c\"");
}

Test(jsontext, single_value_means_nothing_behind_it)
{
	struct bytes value;

	cr_assert(jsontext_single(bytes_str(" {\"a\":1} \n"), &value));
	cr_assert(bytes_equal(value, BYTES_LIT("{\"a\":1}")));
	cr_assert_not(jsontext_single(bytes_str("{} {}"), &value));
	cr_assert_not(jsontext_single(bytes_str("  "), &value));
}
