/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crc.h"

#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* 0x1edc6f41 with its bits reversed */

static uint32_t by_bits(uint32_t crc, const uint8_t *data, size_t size)
{
	while (size--) {
		crc ^= *data++;
		for (int i = 0; i < 8; i++)
			crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
	}
	return crc;
}

#if defined(__x86_64__)
#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *data,
	size_t size)
{
	uint64_t wide = crc;

	for (; size >= 8; data += 8, size -= 8) {
		uint64_t word;
		memcpy(&word, data, sizeof(word));
		wide = _mm_crc32_u64(wide, word);
	}
	crc = (uint32_t)wide;
	while (size--)
		crc = _mm_crc32_u8(crc, *data++);
	return crc;
}

/* Every x86-64 of the last fifteen years has it; the others still get the right answer. */
uint32_t crc32c(uint32_t crc, const void *data, size_t size)
{
	return ~(__builtin_cpu_supports("sse4.2") ? by_instruction(~crc, data, size)
						  : by_bits(~crc, data, size));
}
#else
uint32_t crc32c(uint32_t crc, const void *data, size_t size)
{
	return ~by_bits(~crc, data, size);
}
#endif
