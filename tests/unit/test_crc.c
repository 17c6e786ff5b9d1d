/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crc.h"
#include "tests/unit/unit.h"

Test(crc, known_answers)
{
	uint8_t data[32];

	cr_assert_eq(crc32c(0, "123456789", 9), 0xe3069283u);
	cr_assert_eq(crc32c(0, "", 0), 0);
	memset(data, 0, sizeof(data)); /* RFC 3720, B.4 */
	cr_assert_eq(crc32c(0, data, sizeof(data)), 0x8a9136aau);
	memset(data, 0xff, sizeof(data));
	cr_assert_eq(crc32c(0, data, sizeof(data)), 0x62a8ab43u);
}

Test(crc, all_ways_agree_at_every_length_and_alignment)
{
	static uint8_t data[8200];
	uint32_t seed = 1;

	for (size_t i = 0; i < sizeof(data); i++) {
		seed = seed * 1664525u + 1013904223u;
		data[i] = (uint8_t)(seed >> 24);
	}
	for (size_t size = 0; size < 8190; size += size < 40 ? 1 : 37)
		for (size_t at = 0; at < 9; at += 3)
			cr_assert_eq(crc32c(7, data + at, size),
				crc32c_by_table(7, data + at, size), "%zu bytes at %zu", size, at);
}

Test(crc, continues_where_it_stopped)
{
	static const char text[] = "a body in two parts";
	uint32_t whole = crc32c(0, text, sizeof(text));

	for (size_t cut = 0; cut <= sizeof(text); cut++)
		cr_assert_eq(crc32c(crc32c(0, text, cut), text + cut, sizeof(text) - cut), whole);
}
