/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/body.h"

#include "common/value/json.h"
#include "tests/unit/unit.h"

void body_put(const char *json, struct buf *out)
{
	struct json_parser *parser = NULL;

	cr_assert_eq(json_parser_new(&parser), 0);
	int r = json_parse(parser, bytes_str(json), NULL, out);
	cr_assert_eq(r, 0, "%s: %s", json, err_text(r));
	json_parser_free(&parser);
}

struct buf body_of(const char *json)
{
	struct buf body = BUF_INIT;

	body_put(json, &body);
	return body;
}
