/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/sort_value.h"

#include <math.h>

#define EXPONENT_MAX 400 /* decimal; beyond it nothing is a quantity */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* ---- quantities ---- */

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

/* e3, E-3. Divides where there is something to divide by: 100m is 0.1 to the last bit. */
static bool quantity_exponent(struct quantity_text *c, long double *worth)
{
	bool negative = quantity_char(c, '-');
	int exponent = 0;

	if (!negative)
		(void)quantity_char(c, '+');
	if (c->at == c->end)
		return false;
	for (; c->at < c->end; c->at++) {
		if (!is_digit(*c->at) || exponent > EXPONENT_MAX)
			return false;
		exponent = exponent * 10 + (*c->at - '0');
	}
	*worth = negative ? *worth / powl(10, exponent) : *worth * powl(10, exponent);
	return exponent <= EXPONENT_MAX;
}

/* Reads the suffix, which has to end the text. */
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
		return (quantity_char(c, 'e') || quantity_char(c, 'E')) && quantity_exponent(c, worth);
	return true;
}

static bool quantity_read(struct bytes text, struct sort_number *ret_number)
{
	struct quantity_text c = {text.data, (const char *)text.data + text.size};
	bool negative = quantity_char(&c, '-'), any = false, point = false;
	long double worth = 0, unit = 1;
	int exponent;

	if (!negative)
		(void)quantity_char(&c, '+');
	/* Digits with at most one point among them. */
	for (; c.at < c.end && (is_digit(*c.at) || (*c.at == '.' && !point)); c.at++) {
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
	*ret_number = (struct sort_number){0};
	if (worth != 0) {
		long double fraction = frexpl(worth, &exponent);

		*ret_number = (struct sort_number){.mantissa = (uint64_t)ldexpl(fraction, 64),
			.exponent = exponent,
			.negative = negative};
	}
	return true;
}

void sort_value_read(struct bytes text, struct sort_value *ret_value)
{
	*ret_value = (struct sort_value){.kind = SORT_MISSING};
	if (!text.size)
		return;
	if (quantity_read(text, &ret_value->number)) {
		ret_value->kind = SORT_NUMBER;
		return;
	}
	ret_value->kind = SORT_TEXT;
	ret_value->text = text;
}

/* ---- comparing ---- */

/* The run of digits at I, without leading zeros; I moves past it. */
static struct bytes digits_at(struct bytes text, size_t *i)
{
	const char *p = text.data;

	while (*i < text.size && p[*i] == '0')
		++*i;
	size_t first = *i;
	while (*i < text.size && is_digit(p[*i]))
		++*i;
	return BYTES(p + first, *i - first);
}

static int compare_natural(struct bytes a, struct bytes b)
{
	const char *p = a.data, *q = b.data;
	size_t i = 0, j = 0;

	while (i < a.size && j < b.size) {
		if (is_digit(p[i]) && is_digit(q[j])) {
			struct bytes x = digits_at(a, &i), y = digits_at(b, &j);
			int r = x.size != y.size ? (x.size > y.size ? 1 : -1) : bytes_compare(x, y);
			if (r)
				return r;
			continue;
		}
		if (p[i] != q[j])
			return (uint8_t)p[i] > (uint8_t)q[j] ? 1 : -1;
		i++;
		j++;
	}
	if (i < a.size || j < b.size)
		return i < a.size ? 1 : -1;
	return bytes_compare(a, b); /* equal but for leading zeros */
}

int sort_value_compare(const struct sort_value *a, const struct sort_value *b)
{
	const struct sort_number *x = &a->number, *y = &b->number;
	int sign = x->negative ? -1 : 1;

	if (a->kind != b->kind)
		return a->kind > b->kind ? 1 : -1;
	if (a->kind == SORT_TEXT)
		return compare_natural(a->text, b->text);
	if (a->kind != SORT_NUMBER)
		return 0;
	if (x->negative != y->negative)
		return sign;
	if (!x->mantissa || !y->mantissa)
		return sign * ((x->mantissa > 0) - (y->mantissa > 0));
	if (x->exponent != y->exponent)
		return x->exponent > y->exponent ? sign : -sign;
	return sign * ((x->mantissa > y->mantissa) - (x->mantissa < y->mantissa));
}

/* ---- in tokens ---- */

#define NUMBER_SIZE 13

void sort_value_put(struct buf *buf, const struct sort_value *value)
{
	uint8_t number[NUMBER_SIZE], size[4];

	buf_byte(buf, (uint8_t)value->kind);
	if (value->kind == SORT_NUMBER) {
		le64_put(number, value->number.mantissa);
		le32_put(number + 8, (uint32_t)value->number.exponent);
		number[12] = value->number.negative;
		buf_put(buf, number, sizeof(number));
	} else if (value->kind == SORT_TEXT) {
		le32_put(size, (uint32_t)value->text.size);
		buf_put(buf, size, sizeof(size));
		buf_bytes_put(buf, value->text);
	}
}

/* Cuts SIZE bytes off the beginning of REST. Returns NULL when it has fewer. */
static const uint8_t *token_bytes(struct bytes *rest, size_t size)
{
	const uint8_t *data = rest->data;

	if (rest->size < size)
		return NULL;
	*rest = BYTES(data + size, rest->size - size);
	return data;
}

bool sort_value_take(struct bytes *rest, struct sort_value *ret_value)
{
	const uint8_t *data = token_bytes(rest, 1);
	uint32_t size;

	if (!data)
		return false;
	*ret_value = (struct sort_value){.kind = data[0]};
	switch (data[0]) {
	case SORT_MISSING:
		return true;
	case SORT_NUMBER:
		data = token_bytes(rest, NUMBER_SIZE);
		if (data)
			ret_value->number = (struct sort_number){.mantissa = le64_get(data),
				.exponent = (int32_t)le32_get(data + 8),
				.negative = data[12] != 0};
		return data != NULL;
	case SORT_TEXT:
		data = token_bytes(rest, 4);
		if (!data)
			return false;
		size = le32_get(data);
		data = token_bytes(rest, size);
		if (data)
			ret_value->text = BYTES(data, size);
		return data != NULL;
	default:
		return false;
	}
}
