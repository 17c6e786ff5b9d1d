/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and Kubernetes quantities by their value: 9, -1.5, 100m, 1.5Gi, 1e3. */
#ifndef COMMON_VALUE_QUANTITY_H
#define COMMON_VALUE_QUANTITY_H

#include <stdbool.h>

#include "common/bytes.h"

/* (-1)^negative * mantissa / 2^64 * 2^exponent, the mantissa's highest bit set; all 0: 0. Whole
 * numbers of 64 bits are exact. */
struct quantity {
	uint64_t mantissa;
	int32_t exponent;
	bool negative;
};

/* Reads TEXT. Returns false if it is neither number nor quantity. */
bool quantity_read(struct bytes text, struct quantity *ret_quantity);

/* <0, 0, >0. */
int quantity_compare(const struct quantity *a, const struct quantity *b);

#endif
