/* SPDX-License-Identifier: Apache-2.0 */
/* Documents in kubectl's order. Those in YAML are in test_yaml_write.c. */
#include "common/value/sort.h"

#include "common/value/json.h"
#include "common/value/value.h"
#include "tests/unit/body.h"
#include "tests/unit/unit.h"

static void expect_sorted(const char *json, const char *wanted)
{
	struct buf body = body_of(json), sorted = BUF_INIT, text = BUF_INIT;

	cr_assert_eq(value_sort(buf_bytes(&body), VALUE_ORDER_JSON, &sorted), 0);
	cr_assert_eq(value_verify(buf_bytes(&sorted)), 0);
	cr_assert_eq(json_write(buf_bytes(&sorted), 0, &text), 0);
	cr_expect_str_eq(buf_cstr(&text), wanted);
	buf_release(&body);
	buf_release(&sorted);
	buf_release(&text);
}

Test(sort, members_of_each_map_are_in_the_order_of_their_bytes)
{
	expect_sorted("{}", "{}");
	expect_sorted("7", "7");
	expect_sorted("{\"b\":{\"z\":1,\"a\":[{\"d\":null,\"c\":true}]},\"a10\":1,\"a9\":2,\"B\":[]"
		      ",\"a\":\"\"}",
		"{\"B\":[],\"a\":\"\",\"a10\":1,\"a9\":2,\"b\":{\"a\":[{\"c\":true,\"d\":null}],"
		"\"z\":1}}");
	expect_sorted("{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":1,\"a\":3,\"b\":2}");
}

Test(sort, many_members_are_sorted_also)
{
	struct buf json = BUF_INIT, wanted = BUF_INIT;

	buf_byte(&json, '{');
	buf_byte(&wanted, '{');
	for (int i = 0; i < 1000; i++) {
		buf_printf(&json, "%s\"k%03d\":%d", i ? "," : "", 999 - i, 999 - i);
		buf_printf(&wanted, "%s\"k%03d\":%d", i ? "," : "", i, i);
	}
	buf_byte(&json, '}');
	buf_byte(&wanted, '}');
	expect_sorted(buf_cstr(&json), buf_cstr(&wanted));
	buf_release(&json);
	buf_release(&wanted);
}

Test(sort, numbers_are_those_of_a_go_program)
{
	expect_sorted("[1.0,1E5,-0,-0.0,18446744073709551615,9223372036854775808,1e999,1.50,-1]",
		"[1,100000,0,-0,18446744073709552000,9223372036854776000,1e999,1.5,-1]");
}

Test(sort, numbers_may_grow_before_what_stood_before_them)
{
	struct buf json = BUF_INIT, sorted = BUF_INIT;

	buf_printf(&json, "{\"z\":\"%0500d\",\"a\":[", 0);
	for (int i = 0; i < 50; i++)
		buf_printf(&json, "%s-1.2345678901234567e-%d", i ? "," : "", 200 + i);
	buf_str(&json, "]}");
	struct buf body = body_of(buf_cstr(&json));
	cr_assert_eq(value_sort(buf_bytes(&body), VALUE_ORDER_YAML, &sorted), 0);
	cr_assert_eq(value_verify(buf_bytes(&sorted)), 0);
	cr_assert_gt(sorted.size, body.size);
	buf_release(&json);
	buf_release(&body);
	buf_release(&sorted);
}

Test(sort, damaged_documents_are_reported)
{
	CLEANUP(buf_release)
	struct buf body =
		body_of("{\"b\":{\"z\":1.0,\"a\":[{\"d\":null,\"c\":[1,2]}]},\"a\":\"x\"}");

	for (size_t size = 0; size < body.size; size++) {
		uint8_t *cut = malloc(size + 1); /* of exact size, for AddressSanitizer */
		struct buf out = BUF_INIT;

		memcpy(cut + 1, body.data, size);
		cr_assert_eq(value_sort(BYTES(cut + 1, size), VALUE_ORDER_JSON, &out), ERR_CORRUPT,
			"%zu", size);
		buf_release(&out);
		free(cut);
	}
}
