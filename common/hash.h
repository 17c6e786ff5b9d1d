/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash function: XXH3 of libxxhash (only hash.c includes its header). Stored hashes are in the
 * index, a rebuildable database, and in names of objects passed over (store/FORMAT.md). A table of
 * outside keys, such as object names, needs a random seed: cluster users could choose colliding
 * names.
 */
#ifndef COMMON_HASH_H
#define COMMON_HASH_H

#include <stdint.h>

#include "common/bytes.h"

uint64_t hash_bytes(struct bytes bytes, uint64_t seed);
uint64_t hash_u64(uint64_t number, uint64_t seed);

#endif
