/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The comparison of KEP-5504: if both resourceVersions are decimal numbers from 1 to 2^128 - 1
 * without leading zero, the larger one is newer. Other texts can only be equal or not.
 */
#include "store/journal/journal.h"

static bool rv_is_well_formed(struct bytes rv)
{
	static const char largest[] = "340282366920938463463374607431768211455";
	const uint8_t *p = rv.data;

	if (rv.size == 0 || rv.size > sizeof(largest) - 1 || p[0] == '0')
		return false;
	for (size_t i = 0; i < rv.size; i++)
		if (p[i] < '0' || p[i] > '9')
			return false;
	return rv.size < sizeof(largest) - 1 || memcmp(p, largest, rv.size) <= 0;
}

int rv_compare(struct bytes a, struct bytes b)
{
	if (bytes_equal(a, b))
		return 0;
	if (!rv_is_well_formed(a) || !rv_is_well_formed(b))
		return RV_NOT_COMPARABLE;
	if (a.size != b.size)
		return a.size < b.size ? -1 : 1;
	return memcmp(a.data, b.data, a.size) < 0 ? -1 : 1;
}
