/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/sort_value.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
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

/* ---- comparing ---------------------------------------------------------- */

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
	if (a->kind != b->kind)
		return a->kind > b->kind ? 1 : -1;
	if (a->kind == SORT_TEXT)
		return compare_natural(a->text, b->text);
	return a->kind == SORT_NUMBER ? quantity_compare(&a->number, &b->number) : 0;
}

/* ---- in tokens ---------------------------------------------------------- */

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
			ret_value->number = (struct quantity){.mantissa = le64_get(data),
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
