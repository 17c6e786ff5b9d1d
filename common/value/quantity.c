/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/quantity.h"

#include <math.h>

#define EXPONENT_MAX 400 /* decimal; more is no quantity */

static bool quantity_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

struct quantity_text {
	const char *at, *end;
};

static bool quantity_char(struct quantity_text *c, char wanted)
{
	if (c->at == c->end || *c->at != wanted)
		return false;
	c->at++;
	return true;
}

/* e3, E-3. Divides by negative powers: 100m is 0.1 to the last bit. */
static bool quantity_exponent(struct quantity_text *c, long double *worth)
{
	bool negative = quantity_char(c, '-');
	int exponent = 0;

	if (!negative)
		(void)quantity_char(c, '+');
	if (c->at == c->end)
		return false;
	for (; c->at < c->end; c->at++) {
		if (!quantity_is_digit(*c->at) || exponent > EXPONENT_MAX)
			return false;
		exponent = exponent * 10 + (*c->at - '0');
	}
	*worth = negative ? *worth / powl(10, exponent) : *worth * powl(10, exponent);
	return exponent <= EXPONENT_MAX;
}

/* Reads the suffix at the end of the text. */
static bool quantity_suffix(struct quantity_text *c, long double *worth)
{
	static const char small[] = "mun", large[] = "kMGTPE"; /* powers of 1/1000, of 1000 */
	static const char binary[] = "KMGTPE";                 /* of 1024, followed by an i */
	size_t size = (size_t)(c->end - c->at);
	const char *found;

	if (size == 0)
		return true;
	if (size == 1 && (found = memchr(small, *c->at, sizeof(small) - 1)))
		*worth /= powl(1000, (long double)(found - small + 1));
	else if (size == 1 && (found = memchr(large, *c->at, sizeof(large) - 1)))
		*worth *= powl(1000, (long double)(found - large + 1));
	else if (size == 2 && c->at[1] == 'i' &&
		 (found = memchr(binary, *c->at, sizeof(binary) - 1)))
		*worth = ldexpl(*worth, 10 * (int)(found - binary + 1));
	else
		return (quantity_char(c, 'e') || quantity_char(c, 'E')) &&
		       quantity_exponent(c, worth);
	return true;
}

bool quantity_read(struct bytes text, struct quantity *ret_quantity)
{
	struct quantity_text c = {text.data, (const char *)text.data + text.size};
	bool negative = quantity_char(&c, '-'), any = false, point = false;
	long double worth = 0, unit = 1;
	int exponent;

	if (!negative)
		(void)quantity_char(&c, '+');
	/* Digits with at most one point among them. */
	for (; c.at < c.end && (quantity_is_digit(*c.at) || (*c.at == '.' && !point)); c.at++) {
		if (*c.at == '.') {
			point = true;
			continue;
		}
		any = true;
		worth = worth * 10 + (*c.at - '0');
		if (point)
			unit *= 10;
	}
	worth /= unit;
	if (!any || !quantity_suffix(&c, &worth) || !isfinite(worth))
		return false;
	*ret_quantity = (struct quantity){0};
	if (worth != 0) {
		long double fraction = frexpl(worth, &exponent);

		*ret_quantity = (struct quantity){.mantissa = (uint64_t)ldexpl(fraction, 64),
			.exponent = exponent,
			.negative = negative};
	}
	return true;
}

int quantity_compare(const struct quantity *a, const struct quantity *b)
{
	int sign = a->negative ? -1 : 1;

	if (a->negative != b->negative)
		return sign;
	if (!a->mantissa || !b->mantissa)
		return sign * ((a->mantissa > 0) - (b->mantissa > 0));
	if (a->exponent != b->exponent)
		return a->exponent > b->exponent ? sign : -sign;
	return sign * ((a->mantissa > b->mantissa) - (a->mantissa < b->mantissa));
}
