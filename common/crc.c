/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crc.h"

#include <pthread.h>

#include "common/bytes.h"

#define POLYNOMIAL 0x82f63b78u /* reflected */

/* bytes_table[k][b]: the checksum's change by byte b and k zero bytes. */
static uint32_t bytes_table[8][256];

/* STATE is the checksum before its final inversion. */
static uint32_t crc_by_table(uint32_t state, const uint8_t *p, size_t size)
{
	for (; size >= 8; p += 8, size -= 8) {
		uint64_t v = le64_get(p) ^ state;
		state = 0;
		for (int k = 0; k < 8; k++)
			state ^= bytes_table[7 - k][v >> 8 * k & 0xff];
	}
	for (; size; p++, size--)
		state = state >> 8 ^ bytes_table[0][(state ^ *p) & 0xff];
	return state;
}

typedef uint32_t crc_fn(uint32_t state, const uint8_t *p, size_t size);

#if defined(__x86_64__)

/*
 * The CPU starts one instruction a cycle but needs three for its result: three blocks run at once.
 * A linear map, that of BLOCK zero bytes, joins their checksums; block_table holds it.
 */
#define BLOCK 512u
static uint32_t block_table[4][256];

static uint32_t crc_after_block(uint32_t state)
{
	return block_table[0][state & 0xff] ^ block_table[1][state >> 8 & 0xff] ^
	       block_table[2][state >> 16 & 0xff] ^ block_table[3][state >> 24];
}

__attribute__((target("sse4.2"))) static uint32_t crc_by_instruction(
	uint32_t state, const uint8_t *p, size_t size)
{
	for (; size >= (size_t)3 * BLOCK; p += (size_t)3 * BLOCK, size -= (size_t)3 * BLOCK) {
		uint64_t a = state, b = 0, c = 0;
		for (size_t i = 0; i < BLOCK; i += 8) {
			a = __builtin_ia32_crc32di(a, le64_get(p + i));
			b = __builtin_ia32_crc32di(b, le64_get(p + BLOCK + i));
			c = __builtin_ia32_crc32di(c, le64_get(p + (size_t)2 * BLOCK + i));
		}
		state = crc_after_block((uint32_t)a) ^ (uint32_t)b;
		state = crc_after_block(state) ^ (uint32_t)c;
	}
	uint64_t wide = state;
	for (; size >= 8; p += 8, size -= 8)
		wide = __builtin_ia32_crc32di(wide, le64_get(p));
	state = (uint32_t)wide;
	/* Rows and record heads are short: the last seven bytes one by one would take as long as
	 * the 56 before them. */
	if (size & 4) {
		state = __builtin_ia32_crc32si(state, le32_get(p));
		p += 4;
	}
	if (size & 2) {
		state = __builtin_ia32_crc32hi(state, le16_get(p));
		p += 2;
	}
	return size & 1 ? __builtin_ia32_crc32qi(state, *p) : state;
}

static crc_fn *crc_choose(void)
{
	static const uint8_t zeros[BLOCK];
	uint32_t of_bit[32];

	for (int bit = 0; bit < 32; bit++)
		of_bit[bit] = crc_by_table(1u << bit, zeros, BLOCK);
	for (int k = 0; k < 4; k++)
		for (uint32_t b = 0; b < 256; b++)
			for (int bit = 0; bit < 8; bit++)
				if (b >> bit & 1)
					block_table[k][b] ^= of_bit[8 * k + bit];
	return __builtin_cpu_supports("sse4.2") ? crc_by_instruction : crc_by_table;
}

#else

static crc_fn *crc_choose(void)
{
	return crc_by_table;
}

#endif

static crc_fn *crc_best;

static void crc_setup(void)
{
	for (uint32_t b = 0; b < 256; b++) {
		uint32_t crc = b;
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
		bytes_table[0][b] = crc;
	}
	for (int k = 1; k < 8; k++)
		for (uint32_t b = 0; b < 256; b++) {
			uint32_t crc = bytes_table[k - 1][b];
			bytes_table[k][b] = crc >> 8 ^ bytes_table[0][crc & 0xff];
		}
	/* Pairs with the acquire in crc32c(). */
	__atomic_store_n(&crc_best, crc_choose(), __ATOMIC_RELEASE);
}

static pthread_once_t crc_once = PTHREAD_ONCE_INIT;

uint32_t crc32c(uint32_t crc, const void *data, size_t size)
{
	crc_fn *fn = __atomic_load_n(&crc_best, __ATOMIC_ACQUIRE);

	if (!fn) {
		(void)pthread_once(&crc_once, crc_setup);
		fn = crc_best;
	}
	return ~fn(~crc, data, size);
}

uint32_t crc32c_by_table(uint32_t crc, const void *data, size_t size)
{
	(void)pthread_once(&crc_once, crc_setup);
	return ~crc_by_table(~crc, data, size);
}
