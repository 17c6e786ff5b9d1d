/* SPDX-License-Identifier: Apache-2.0 */
#include "common/buf.h"
#include "common/value/json.h"
#include "common/value/omit.h"
#include "tests/unit/body.h"
#include "tests/unit/unit.h"

/* Returns JSON without m.x, "" if it has no m.x. */
static const char *without(const char *json)
{
	static struct buf text;
	CLEANUP(buf_release) struct buf document = BUF_INIT, less = BUF_INIT;

	body_put(json, &document);
	buf_reset(&text);
	int r = omit_member(buf_bytes(&document), "m", "x", &less);
	cr_assert_eq(r, less.size ? FOUND : NOT_FOUND);
	if (r == FOUND)
		cr_assert_eq(json_write(buf_bytes(&less), 0, &text), 0);
	return buf_cstr(&text);
}

Test(omit, the_member_is_left_out_and_all_else_is_kept_in_order)
{
	cr_assert_str_eq(
		without("{\"z\":1.0,\"m\":{\"b\":{\"x\":[1]},\"x\":[{}],\"a\":null},\"x\":2}"),
		"{\"z\":1.0,\"m\":{\"b\":{\"x\":[1]},\"a\":null},\"x\":2}");
	cr_assert_str_eq(without("{\"m\":{\"x\":1,\"x\":2},\"m\":3}"), "{\"m\":{},\"m\":3}");
}

Test(omit, what_is_not_there_is_not_found)
{
	static const char *const texts[] = {"{}", "1", "[]", "{\"m\":1}", "{\"m\":{}}", "{\"x\":1}",
		"{\"m\":[{\"x\":1}]}", "{\"a\":{\"m\":{\"x\":1}}}"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		cr_assert_str_eq(without(texts[i]), "", "%s", texts[i]);
}

Test(omit, damage_is_reported)
{
	CLEANUP(buf_release) struct buf document = BUF_INIT;

	body_put("{\"m\":{\"x\":1,\"a\":[\"text\"]},\"b\":{\"c\":true}}", &document);
	for (size_t size = 0; size < document.size; size++) {
		CLEANUP(buf_release) struct buf less = BUF_INIT;

		cr_assert_eq(omit_member(BYTES(document.data, size), "m", "x", &less), ERR_CORRUPT,
			"%zu", size);
	}
}
