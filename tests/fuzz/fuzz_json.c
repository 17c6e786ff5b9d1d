/* SPDX-License-Identifier: Apache-2.0 */
/* JSON -> msgpack -> JSON -> msgpack: the msgpack of accepted JSON is well-formed, and equal the
 * second time. */
#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/value/json.h"
#include "common/value/sort.h"
#include "common/value/value.h"
#include "common/value/yaml.h"
#include "tests/fuzz/fuzz.h"

static void check(struct json_parser *parser, struct bytes document)
{
	struct buf text = BUF_INIT, again = BUF_INIT, yaml = BUF_INIT, sorted = BUF_INIT;

	REQUIRE(value_verify(document) == 0);
	REQUIRE(json_write(document, 0, &text) == 0);
	REQUIRE(json_parse(parser, buf_bytes(&text), NULL, &again) == 0);
	REQUIRE(bytes_equal(document, buf_bytes(&again)));
	REQUIRE(value_sort(document, VALUE_ORDER_YAML, &sorted) == 0);
	REQUIRE(value_verify(buf_bytes(&sorted)) == 0);
	REQUIRE(yaml_write(buf_bytes(&sorted), true, &yaml) == 0);
	buf_release(&text);
	buf_release(&again);
	buf_release(&yaml);
	buf_release(&sorted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf document = BUF_INIT;
	CLEANUP(json_parser_free) struct json_parser *parser = NULL;

	REQUIRE(json_parser_new(&parser) == 0);
	if (json_parse(parser, BYTES(data, size), NULL, &document) == 0)
		check(parser, buf_bytes(&document));
	buf_release(&document);
	return 0;
}
