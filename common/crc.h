/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli), as in iSCSI and ext4: the checksum of stored records. */
#ifndef COMMON_CRC_H
#define COMMON_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Continues the checksum CRC (0: a new one) with SIZE bytes of DATA. Returns the new checksum. */
uint32_t crc32c(uint32_t crc, const void *data, size_t size);

/* Computes the same in plain C; for tests. */
uint32_t crc32c_by_table(uint32_t crc, const void *data, size_t size);

#endif
