/* SPDX-License-Identifier: Apache-2.0 */
/* CRC32C (Castagnoli), the checksum of all that kinformer stores. */
#ifndef COMMON_CRC_H
#define COMMON_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Goes on from CRC (0 to begin with) over SIZE bytes. */
uint32_t crc32c(uint32_t crc, const void *data, size_t size);

#endif
