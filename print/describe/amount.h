/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of Kubernetes quantities (100m, 1.5Gi, 1e3), printed as kubectl prints them: in the form
 * of the first that was not zero, with the largest unit that needs no fraction.
 */
#ifndef PRINT_DESCRIBE_AMOUNT_H
#define PRINT_DESCRIBE_AMOUNT_H

#include "common/buf.h"

struct amount {
	int64_t milli;  /* thousandths; those beyond the range count as the end of it */
	bool is_binary; /* Ki, Mi, ... */
};

/* Reads TEXT. Returns whether it is a quantity; smaller parts than a thousandth are rounded up. */
bool amount_parse(struct bytes text, struct amount *ret_amount);
void amount_add(struct amount *sum, const struct amount *more);
/* Makes *LARGEST the larger one. */
void amount_max(struct amount *largest, const struct amount *other);
void amount_put(const struct amount *quantity, struct buf *out);
/* Returns how many hundredths of WHOLE that is; 0 if WHOLE is 0. */
int64_t amount_percent(const struct amount *part, const struct amount *whole);

#endif
