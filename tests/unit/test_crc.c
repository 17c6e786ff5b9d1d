/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crc.h"

#include <criterion/criterion.h>

/* RFC 3720, appendix B.4. */
Test(crc, agrees_with_the_published_values)
{
	uint8_t bytes[32];

	cr_assert_eq(crc32c(0, "123456789", 9), 0xe3069283u);
	memset(bytes, 0, sizeof(bytes));
	cr_assert_eq(crc32c(0, bytes, sizeof(bytes)), 0x8a9136aau);
	memset(bytes, 0xff, sizeof(bytes));
	cr_assert_eq(crc32c(0, bytes, sizeof(bytes)), 0x62a8ab43u);
	for (int i = 0; i < 32; i++)
		bytes[i] = (uint8_t)i;
	cr_assert_eq(crc32c(0, bytes, sizeof(bytes)), 0x46dd794eu);
}

Test(crc, may_be_computed_in_pieces)
{
	const char text[] = "a text of some forty bytes, cut anywhere";
	uint32_t whole = crc32c(0, text, sizeof(text));

	for (size_t cut = 0; cut <= sizeof(text); cut++)
		cr_assert_eq(crc32c(crc32c(0, text, cut), text + cut, sizeof(text) - cut), whole);
}
