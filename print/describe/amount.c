/* SPDX-License-Identifier: Apache-2.0 */
#include "print/describe/describe_internal.h"

#include <inttypes.h>
#include <math.h>

#include "common/value/quantity.h"

bool amount_parse(struct bytes text, struct amount *ret_amount)
{
	struct quantity value;

	*ret_amount = (struct amount){0};
	if (!quantity_read(text, &value))
		return false;
	/* The number is exact to 64 bits: only the thousandths of huge ones are rounded. */
	long double milli =
		ceill(ldexpl((long double)value.mantissa, value.exponent - 64) * 1000 - 1e-9L);

	ret_amount->milli = milli >= (long double)INT64_MAX ? INT64_MAX : (int64_t)milli;
	if (value.negative)
		ret_amount->milli = -ret_amount->milli;
	ret_amount->is_binary = text.size && ((const char *)text.data)[text.size - 1] == 'i';
	return true;
}

void amount_add(struct amount *sum, const struct amount *more)
{
	if (!sum->milli)
		sum->is_binary = more->is_binary;
	if (__builtin_add_overflow(sum->milli, more->milli, &sum->milli))
		sum->milli = more->milli > 0 ? INT64_MAX : INT64_MIN;
}

void amount_max(struct amount *largest, const struct amount *other)
{
	if (other->milli > largest->milli)
		*largest = *other;
}

void amount_put(const struct amount *quantity, struct buf *out)
{
	static const char *const decimal[] = {"m", "", "k", "M", "G", "T", "P", "E"};
	static const char *const binary[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
	int64_t n = quantity->milli;
	size_t unit = 0;

	if (!n) {
		buf_str(out, "0");
	} else if (quantity->is_binary && n % 1000 == 0) {
		for (n /= 1000; n % 1024 == 0 && unit + 1 < ARRAY_SIZE(binary); n /= 1024)
			unit++;
		buf_printf(out, "%" PRId64 "%s", n, binary[unit]);
	} else {
		for (; n % 1000 == 0 && unit + 1 < ARRAY_SIZE(decimal); n /= 1000)
			unit++;
		buf_printf(out, "%" PRId64 "%s", n, decimal[unit]);
	}
}

int64_t amount_percent(const struct amount *part, const struct amount *whole)
{
	return whole->milli ? (int64_t)((double)part->milli / (double)whole->milli * 100) : 0;
}
