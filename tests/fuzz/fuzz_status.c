/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a refusal: always one kind of failure and one printable line. */
#include <string.h>

#include "common/check.h"
#include "reflector/net/status.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int codes[] = {
		0, 400, 401, 403, 404, 409, 410, 422, 429, 500, 502, 503, 504, 999};
	struct status status;

	if (size < 1)
		return 0;
	status_read(codes[data[0] % (sizeof(codes) / sizeof(codes[0]))], data[0],
		BYTES(data + 1, size - 1), &status);
	REQUIRE(status.kind < FAILURE_KIND_MAX);
	REQUIRE(memchr(status.text, '\0', sizeof(status.text)));
	for (const unsigned char *p = (const unsigned char *)status.text; *p; p++)
		REQUIRE(*p >= 0x20 && *p != 0x7f);
	return 0;
}
