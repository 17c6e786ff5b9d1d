/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash function: XXH3 of libxxhash (hash.c includes its header, no other file does). Its values
 * live in memory, and in the index, which can be built again (store/FORMAT.md). Tables whose keys
 * come from outside (names of objects) pass a random seed, so that nobody can choose keys that
 * collide.
 */
#ifndef COMMON_HASH_H
#define COMMON_HASH_H

#include <stdint.h>

#include "common/bytes.h"

uint64_t hash_bytes(struct bytes bytes, uint64_t seed);
uint64_t hash_u64(uint64_t number, uint64_t seed);

#endif
