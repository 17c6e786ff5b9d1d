/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a stored body: a verified one can be sorted, and written as JSON and as YAML;
 * nothing else breaks. */
#include "common/buf.h"
#include "common/check.h"
#include "common/value/json.h"
#include "common/value/sort.h"
#include "common/value/value.h"
#include "common/value/yaml.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf json = BUF_INIT, yaml = BUF_INIT, sorted = BUF_INIT;
	struct bytes document = BYTES(data, size), text;
	bool good = value_verify(document) == 0;

	REQUIRE((json_write(document, 2, &json) == 0) >= good);
	REQUIRE((yaml_write(document, false, &yaml) == 0) >= good);
	REQUIRE((value_sort(document, VALUE_ORDER_JSON, &sorted) == 0) >= good);
	(void)value_find_text(document, "metadata", "name", &text); /* damaged ones have none */
	buf_release(&json);
	buf_release(&yaml);
	buf_release(&sorted);
	return 0;
}
