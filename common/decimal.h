/* SPDX-License-Identifier: Apache-2.0 */
/* Text to numbers, for everything a person writes: decimal digits only, nothing before or behind
 * them, no sign, no overflow. */
#ifndef COMMON_DECIMAL_H
#define COMMON_DECIMAL_H

#include "common/bytes.h"

/* ERR_SYNTAX (a sentence without the name of the thing: "not a number: 'x'", "more than 5: '7'"). */
int decimal_parse(struct bytes text, uint64_t max, uint64_t *ret_number);

#endif
