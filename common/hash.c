/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hash.h"

#include <xxhash.h>

uint64_t hash_bytes(struct bytes bytes, uint64_t seed)
{
	return XXH3_64bits_withSeed(bytes.data, bytes.size, seed);
}

uint64_t hash_u64(uint64_t number, uint64_t seed)
{
	return XXH3_64bits_withSeed(&number, sizeof(number), seed);
}
