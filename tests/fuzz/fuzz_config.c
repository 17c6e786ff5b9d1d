/* SPDX-License-Identifier: Apache-2.0 */
/* kinf.yaml: any bytes are refused with a sentence, or give a configuration to free. */
#include "common/check.h"
#include "common/cleanup.h"
#include "common/config/config.h"
#include "common/err.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(config_free) struct config *config = NULL;
	int r = config_parse((const char *)data, size, "kinf.yaml", &config);

	REQUIRE((r == 0) == (config != NULL));
	REQUIRE(r == 0 || *err_text(r));
	return 0;
}
