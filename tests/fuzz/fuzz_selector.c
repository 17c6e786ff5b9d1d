/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Label and field selectors: the canonical text of an accepted one is accepted too, and is its own
 * canonical text; matching answers something for any document.
 */
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/json.h"
#include "common/value/selector.h"
#include "tests/fuzz/fuzz.h"

typedef int parse_fn(const char *text, struct selector **ret_selector);

static struct bytes document(void)
{
	static const char text[] =
		"{\"metadata\":{\"name\":\"a\",\"labels\":{\"a\":\"b\",\"n\":\"7\"}},"
		"\"spec\":{\"nodeName\":\"n1\",\"x\":[1,{\"y\":null}]}}";
	static struct buf body;
	struct json_parser *parser = NULL;

	if (!body.size) {
		REQUIRE(json_parser_new(&parser) == 0);
		REQUIRE(json_parse(parser, BYTES_LIT(text), NULL, &body) == 0);
		json_parser_free(&parser);
	}
	return buf_bytes(&body);
}

static void check(parse_fn *parse, const char *text)
{
	CLEANUP(selector_free) struct selector *selector = NULL, *again = NULL;

	if (parse(text, &selector) < 0) {
		REQUIRE(!selector && *err_text(ERR_SYNTAX));
		return;
	}

	int match = selector_match(selector, document());

	REQUIRE(match == 0 || match == 1);
	REQUIRE(parse(selector_text(selector), &again) == 0);
	REQUIRE(!strcmp(selector_text(selector), selector_text(again)));
	REQUIRE(selector_count(selector) == selector_count(again));
	REQUIRE(selector_match(again, document()) == match);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_FREE char *text = strndup((const char *)data, size);

	REQUIRE(text != NULL);
	check(selector_parse_labels, text);
	check(selector_parse_fields, text);
	check(selector_parse_query, text);
	return 0;
}
