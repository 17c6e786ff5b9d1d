/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/sort.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/err.h"
#include "common/value/value.h"

#define FEW 16 /* members of a map that are sorted by insertion */

/* A member of a map that is being copied, from its key to the end of its value. */
struct sort_member {
	struct bytes key;
	const uint8_t *start, *value, *end;
};

struct sorting {
	enum value_order order;
	struct buf *out;
	struct sort_member *members; /* of all maps around the current one, and its own */
	size_t n, room;
	unsigned depth;
};

/* ---- orders ---- */

/* Letters of other scripts are not told from their signs and digits: keys of Kubernetes are ASCII but for a few in custom
 * resources. */
static bool sort_is_letter(uint8_t c)
{
	return (uint8_t)((c | 0x20) - 'a') < 26 || c >= 0x80;
}

static bool sort_is_digit(uint8_t c)
{
	return (uint8_t)(c - '0') < 10;
}

/* Reads the digits at *AT on. The number wraps around, as go-yaml's. */
static uint64_t sort_read_digits(const uint8_t *p, size_t size, size_t *at, uint64_t from)
{
	for (; *at < size && sort_is_digit(p[*at]); ++*at)
		from = from * 10 + (uint64_t)(p[*at] - '0');
	return from;
}

/* The order of keyList in go-yaml: signs before letters, numbers by their value. */
static int sort_compare_yaml(struct bytes x, struct bytes y)
{
	const uint8_t *a = x.data, *b = y.data;
	size_t i = 0, n = x.size < y.size ? x.size : y.size;

	while (i < n && a[i] == b[i])
		i++;
	if (i == n)
		return (x.size > y.size) - (x.size < y.size);
	bool a_letter = sort_is_letter(a[i]), b_letter = sort_is_letter(b[i]);
	if (a_letter || b_letter)
		return a_letter && b_letter ? a[i] - b[i] : a_letter ? 1 : -1;
	uint64_t before = 0; /* zeros within a number are digits, those before it are not */
	if (a[i] == '0' || b[i] == '0')
		for (size_t k = i; k && !before && sort_is_digit(a[k - 1]); k--)
			before = a[k - 1] != '0';
	size_t a_end = i, b_end = i;
	int64_t a_number = (int64_t)sort_read_digits(a, x.size, &a_end, before);
	int64_t b_number = (int64_t)sort_read_digits(b, y.size, &b_end, before);
	if (a_number != b_number)
		return a_number < b_number ? -1 : 1;
	if (a_end != b_end)
		return a_end < b_end ? -1 : 1;
	return a[i] - b[i];
}

static inline int sort_compare(enum value_order order, const struct sort_member *a, const struct sort_member *b)
{
	return order == VALUE_ORDER_YAML ? sort_compare_yaml(a->key, b->key) : bytes_compare(a->key, b->key);
}

static int sort_compare_members(const void *x, const void *y, void *order)
{
	const struct sort_member *a = x, *b = y;
	int r = sort_compare(*(const enum value_order *)order, a, b);

	return r ? r : (a->start > b->start) - (a->start < b->start);
}

static void sort_members(struct sorting *s, struct sort_member *members, size_t n)
{
	if (n > FEW) {
		qsort_r(members, n, sizeof(*members), sort_compare_members, &s->order);
		return;
	}
	for (size_t i = 1; i < n; i++) {
		struct sort_member moved = members[i];
		size_t at = i;

		for (; at && sort_compare(s->order, &members[at - 1], &moved) > 0; at--)
			members[at] = members[at - 1];
		members[at] = moved;
	}
}

/* ---- copying ---- */

/* Appends a number, read from START on, whose form is not the one that kubectl prints. */
static int sort_put_number(struct sorting *s, const uint8_t *start, const uint8_t *end)
{
	char text[VALUE_SCRATCH], json[VALUE_SCRATCH];
	struct number number, whole;
	struct value value;
	int r = value_read(BYTES(start, (size_t)(end - start)), &value);

	if (r < 0)
		return r;
	if (!value_number(&value, &number)) /* too large for a double: kubectl fails */
		buf_put(s->out, start, (size_t)(end - start));
	else if (number.form == NUMBER_INT && number.u.i >= 0)
		value_put_uint(s->out, (uint64_t)number.u.i);
	else if (number.form == NUMBER_INT)
		value_put_int(s->out, number.u.i);
	else if (s->order == VALUE_ORDER_YAML && number.u.d == 0)
		value_put_uint(s->out, 0); /* -0 */
	else if (s->order == VALUE_ORDER_JSON)
		value_put_double(s->out, number.u.d);
	else {
		/* The YAML is made of the JSON: a double that is written there as a whole number of 64 bits stays one. */
		struct bytes as_json = BYTES(json, number_format_double(number.u.d, json));

		if (number_parse(as_json, &whole) && (whole.form == NUMBER_INT || whole.form == NUMBER_UINT))
			value_put_number_text(s->out, as_json);
		else
			value_put_number_text(s->out, BYTES(text, number_format_go(number.u.d, text)));
	}
	return 0;
}

/* Returns whether the item that begins with HEAD is a container. */
static inline bool sort_is_container(uint8_t head)
{
	return (head >= 0x80 && head < 0xa0) || (head >= 0xdc && head <= 0xdf);
}

/* Returns whether the item that begins with HEAD is a double, a uint64 or a number kept as text. */
static inline bool sort_is_number(uint8_t head)
{
	return head == 0xcb || head == 0xcf || (head >= 0xc7 && head <= 0xc9) || (head >= 0xd4 && head <= 0xd8);
}

static int sort_put_item(struct sorting *s, const uint8_t *start, const uint8_t *end);

static int sort_put_array(struct sorting *s, const struct value *array, const uint8_t *end)
{
	const uint8_t *p = array->inner.data;
	int r = 0;

	buf_put(s->out, array->start, array->size);
	for (uint32_t left = array->count; r == 0 && left; left--) {
		const uint8_t *start = p;

		r = value_pass(&p, end, 1);
		if (r == 0)
			r = sort_put_item(s, start, p);
	}
	return r;
}

/* Finds the members of MAP. Sets *RET_AS_IT_IS if they are in order and none has to be changed. */
static int sort_find_members(struct sorting *s, const struct value *map, const uint8_t *end, bool *ret_as_it_is)
{
	const uint8_t *p = map->inner.data;
	size_t first = s->n;
	bool as_it_is = true;
	int r = map->count ? ARRAY_ROOM(s->members, s->n, s->room, map->count, "the members of a map") : 0;

	for (uint32_t left = map->count; r == 0 && left; left--) {
		struct sort_member *member = &s->members[s->n];
		struct bytes text;

		member->start = p;
		if (value_read_short_text(BYTES(p, (size_t)(end - p)), &member->key))
			p = (const uint8_t *)member->key.data + member->key.size;
		else
			r = value_read_key(&p, end, &member->key);
		if (r < 0)
			break;
		member->value = p;
		if (value_read_short_text(BYTES(p, (size_t)(end - p)), &text)) {
			p = (const uint8_t *)text.data + text.size;
		} else {
			r = value_pass(&p, end, 1);
			as_it_is &= r == 0 && !sort_is_container(*member->value) && !sort_is_number(*member->value);
		}
		member->end = p;
		as_it_is = as_it_is && (s->n == first || sort_compare(s->order, member - 1, member) <= 0);
		s->n++;
	}
	*ret_as_it_is = as_it_is;
	return r;
}

static int sort_put_map(struct sorting *s, const struct value *map, const uint8_t *end)
{
	size_t first = s->n;
	bool as_it_is;
	int r = sort_find_members(s, map, end, &as_it_is);

	if (r == 0 && as_it_is) {
		buf_put(s->out, map->start, (size_t)(end - map->start));
	} else if (r == 0) {
		sort_members(s, s->members + first, map->count);
		buf_put(s->out, map->start, map->size);
	}
	for (size_t i = first; r == 0 && !as_it_is && i < first + map->count; i++) {
		struct sort_member member = s->members[i]; /* the array grows below */
		uint8_t head = *member.value;

		if (!sort_is_container(head) && !sort_is_number(head)) {
			buf_put(s->out, member.start, (size_t)(member.end - member.start));
			continue;
		}
		buf_put(s->out, member.start, (size_t)(member.value - member.start));
		r = sort_put_item(s, member.value, member.end);
	}
	s->n = first;
	return r;
}

/* Appends the item from START to END. */
static int sort_put_item(struct sorting *s, const uint8_t *start, const uint8_t *end)
{
	struct value value;

	if (sort_is_number(*start))
		return sort_put_number(s, start, end);
	if (!sort_is_container(*start)) {
		buf_put(s->out, start, (size_t)(end - start));
		return 0;
	}
	int r = value_read(BYTES(start, (size_t)(end - start)), &value);
	if (r < 0)
		return r;
	if (s->depth == VALUE_DEPTH_MAX)
		return err_set(ERR_CORRUPT, "stored value: nested too deep");
	s->depth++;
	r = value.type == VALUE_MAP ? sort_put_map(s, &value, end) : sort_put_array(s, &value, end);
	s->depth--;
	return r;
}

int value_sort(struct bytes document, enum value_order order, struct buf *out)
{
	struct sorting s = {.order = order, .out = out};
	size_t size;
	int r = value_size(document, &size);

	if (r == 0)
		r = sort_put_item(&s, document.data, (const uint8_t *)document.data + size);
	free(s.members);
	return r < 0 ? r : buf_error(out);
}
