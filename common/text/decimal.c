/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/decimal.h"

#include <inttypes.h>

#include "common/err.h"

int decimal_parse(struct bytes text, uint64_t max, uint64_t *ret_number)
{
	const uint8_t *p = text.data;
	bool is_too_large = false;
	uint64_t n = 0;

	if (!text.size)
		return err_say(ERR_SYNTAX, "not a number: ''");
	for (size_t i = 0; i < text.size; i++) {
		if (p[i] < '0' || p[i] > '9')
			return err_say(ERR_SYNTAX, "not a number: '%.*s'", BYTES_ARG(text));
	}
	for (size_t i = 0; i < text.size && !is_too_large; i++)
		is_too_large = __builtin_mul_overflow(n, (uint64_t)10, &n) ||
			       __builtin_add_overflow(n, (uint64_t)(p[i] - '0'), &n);
	if (is_too_large || n > max)
		return err_say(ERR_SYNTAX, "more than %" PRIu64 ": '%.*s'", max, BYTES_ARG(text));
	*ret_number = n;
	return 0;
}
