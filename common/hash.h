/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash function: XXH3 of libxxhash (only hash.c includes its header). Hashes are kept in
 * memory, and on disk in the index, rebuilt at will, and in names of passed-over objects
 * (store/FORMAT.md). A table of keys from outside, such as names of objects, passes a random seed,
 * so that a user of the cluster can't choose colliding names.
 */
#ifndef COMMON_HASH_H
#define COMMON_HASH_H

#include <stdint.h>

#include "common/bytes.h"

uint64_t hash_bytes(struct bytes bytes, uint64_t seed);
uint64_t hash_u64(uint64_t number, uint64_t seed);

#endif
