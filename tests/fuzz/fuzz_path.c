/* SPDX-License-Identifier: Apache-2.0 */
/* Field paths: the canonical text of an accepted path is accepted and finds the same values. */
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/json.h"
#include "common/value/path.h"
#include "tests/fuzz/fuzz.h"

static struct bytes document(void)
{
	static const char text[] = "{\"a\":{\"b\":[1,2,{\"c\":\"d\"}],\"b.c/d\":true},\"\":null,"
				   "\"e\":[[],[{\"f\":1.0}],{}],\"'\":{\"]\":0}}";
	static struct buf body;
	struct json_parser *parser = NULL;

	if (!body.size) {
		REQUIRE(json_parser_new(&parser) == 0);
		REQUIRE(json_parse(parser, BYTES_LIT(text), NULL, &body) == 0);
		json_parser_free(&parser);
	}
	return buf_bytes(&body);
}

static int count(void *arg, const struct value *value)
{
	size_t *sum = arg;

	*sum = *sum * 31 + value->size + 1;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_FREE char *text = strndup((const char *)data, size);
	CLEANUP(path_free) struct path *path = NULL, *again = NULL;
	size_t sum = 0, sum_again = 0;

	REQUIRE(text != NULL);
	if (path_parse(text, &path) < 0) {
		REQUIRE(!path && *err_text(ERR_SYNTAX));
		return 0;
	}
	REQUIRE(path_parse(path_text(path), &again) == 0);
	REQUIRE(!strcmp(path_text(path), path_text(again)));
	REQUIRE(path_eval(path, document(), count, &sum) == 0);
	REQUIRE(path_eval(again, document(), count, &sum_again) == 0);
	REQUIRE(sum == sum_again);
	REQUIRE(path_is_plural(path) == path_is_plural(again));
	return 0;
}
