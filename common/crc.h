/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli), as in iSCSI and ext4: the checksum of stored records. */
#ifndef COMMON_CRC_H
#define COMMON_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Returns the checksum of bytes of checksum CRC (0: none) with the SIZE bytes of DATA after them. */
uint32_t crc32c(uint32_t crc, const void *data, size_t size);

/* The same without the instruction of the CPU; for tests. */
uint32_t crc32c_by_table(uint32_t crc, const void *data, size_t size);

#endif
