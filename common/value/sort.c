/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/sort.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/value.h"

#define FEW   16 /* members of a map to sort by insertion */
#define GUESS 64 /* bytes of an object for each remembered map, list and member */
#define PIECE 32 /* bytes: most members are not longer */

/* A map or list with items, in the order in which they begin. */
struct sort_container {
	const uint8_t *end;
	size_t next; /* the first one after its end */
};

/* A member of a map during its copy, from its key to the end of its value. */
struct sort_member {
	uint64_t prefix; /* of the key: its first bytes, big-endian */
	struct bytes key;
	const uint8_t *start, *value, *end;
	size_t container; /* the first one from the value on */
};

struct sorting {
	enum value_order order;
	struct buf *out; /* its size lags until value_sort() ends */
	uint8_t *to, *room_end;
	const uint8_t *start, *end; /* of the document */
	struct sort_container *containers;
	size_t n_containers, containers_room;
	struct sort_member *members; /* of all maps around the current one, and its own */
	size_t n, room;
};

/* ---- room --------------------------------------------------------------- */

/* Makes room for SIZE bytes, and for a piece copied whole. */
static __attribute__((noinline)) int sort_make_room(struct sorting *s, size_t size)
{
	size_t used = (size_t)(s->to - s->out->data);

	buf_truncate(s->out, used);
	if (!buf_grow(s->out, size + PIECE))
		return buf_error(s->out);
	(void)buf_grow(
		s->out, buf_spare(s->out)); /* all that is allocated; value_sort() gives it back */
	s->to = s->out->data + used;
	s->room_end = s->out->data + s->out->size;
	return 0;
}

/* Appends the bytes from START to END without a check of room: a copy is as long as the document
 * but for numbers. */
static inline void sort_copy(struct sorting *s, const uint8_t *start, const uint8_t *end)
{
	size_t size = (size_t)(end - start);

	if (size <= PIECE && (size_t)(s->end - start) >= PIECE)
		memcpy(s->to, start, PIECE);
	else
		memcpy(s->to, start, size);
	s->to += size;
}

/* Returns true if HEAD begins a map or list, perhaps an empty one. */
static inline bool sort_is_container(uint8_t head)
{
	return (head >= 0x80 && head < 0xa0) || (head >= 0xdc && head <= 0xdf);
}

/* Returns true if HEAD begins a double, a uint64 or a number kept as text. */
static inline bool sort_is_number(uint8_t head)
{
	return head == 0xcb || head == 0xcf || (head >= 0xc7 && head <= 0xc9) ||
	       (head >= 0xd4 && head <= 0xd8);
}

/* ---- containers --------------------------------------------------------- */

/* Finds the ends of all maps and lists in one walk: the copy would walk over each once per map
 * around it. */
static int sort_find_containers(struct sorting *s, const uint8_t *p)
{
	struct {
		uint64_t left; /* items to come, a pair is two */
		size_t number;
	} levels[VALUE_DEPTH_MAX + 1] = {{.left = 1}};
	size_t depth = 0;

	for (;;) {
		struct bytes rest = BYTES(p, (size_t)(s->end - p)), text;
		bool is_map = false;
		uint32_t count = 0;

		if (value_read_short_text(rest, &text)) {
			p = (const uint8_t *)text.data + text.size;
		} else if ((count = value_read_short_container(rest, &is_map))) {
			p++;
		} else {
			struct value item;
			int r = value_read(rest, &item);

			if (r < 0)
				return r;
			p += item.size;
			is_map = item.type == VALUE_MAP;
			count = item.count;
		}
		levels[depth].left--;
		if (count) {
			struct sort_container container = {.end = NULL};

			if (depth == VALUE_DEPTH_MAX)
				return err_set(ERR_CORRUPT, "stored value: nested too deep");
			int r = ARRAY_ADD(s->containers, s->n_containers, s->containers_room,
				container, "sorting an object");
			if (r < 0)
				return r;
			levels[++depth].left = (uint64_t)count << is_map;
			levels[depth].number = s->n_containers - 1;
		}
		while (!levels[depth].left) {
			if (!depth) {
				s->end = p;
				return 0;
			}
			s->containers[levels[depth--].number] =
				(struct sort_container){p, s->n_containers};
		}
	}
}

/* Returns the end of the item at P, and moves *CONTAINER after the containers in it. */
static inline const uint8_t *sort_item_end(
	const struct sorting *s, const uint8_t *p, size_t *container)
{
	struct bytes rest = BYTES(p, (size_t)(s->end - p)), text;
	struct value item;
	bool is_map;

	if (value_read_short_text(rest, &text))
		return (const uint8_t *)text.data + text.size;
	if (!value_read_short_container(rest, &is_map)) {
		(void)value_read(rest, &item); /* read before */
		if (!item.count)
			return p + item.size;
	}
	p = s->containers[*container].end;
	*container = s->containers[*container].next;
	return p;
}

/* ---- orders ------------------------------------------------------------- */

/* Letters of other scripts count as signs: keys of Kubernetes are ASCII but for a few in custom
 * resources. */
static bool sort_is_letter(uint8_t c)
{
	return (uint8_t)((c | 0x20) - 'a') < 26 || c >= 0x80;
}

static bool sort_is_digit(uint8_t c)
{
	return (uint8_t)(c - '0') < 10;
}

/* Reads the digits at *AT. The number wraps around, as in go-yaml. */
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
	uint64_t before = 0; /* zeros within a number are digits, leading ones are not */
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

static int sort_compare(
	enum value_order order, const struct sort_member *a, const struct sort_member *b)
{
	uint64_t differ = a->prefix ^ b->prefix;

	if (differ) {
		int shift = 56 - (__builtin_clzll(differ) & ~7);
		uint8_t x = (uint8_t)(a->prefix >> shift), y = (uint8_t)(b->prefix >> shift);

		if (order == VALUE_ORDER_JSON || (sort_is_letter(x) && sort_is_letter(y)))
			return x - y;
	}
	return order == VALUE_ORDER_YAML ? sort_compare_yaml(a->key, b->key)
					 : bytes_compare(a->key, b->key);
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

/* ---- copying ------------------------------------------------------------ */

/* Appends the number from START to END in kubectl's form. */
static int sort_put_number(struct sorting *s, const uint8_t *start, const uint8_t *end)
{
	CLEANUP(buf_release) struct buf form = BUF_INIT;
	char text[VALUE_SCRATCH], json[VALUE_SCRATCH];
	struct number number, whole;
	struct value value;
	int r = value_read(BYTES(start, (size_t)(end - start)), &value);

	if (r < 0)
		return r;
	if (!value_number(&value, &number)) { /* too large for a double: kubectl fails */
		buf_put(&form, start, (size_t)(end - start));
	} else if (number.form == NUMBER_INT) {
		if (number.u.i >= 0)
			value_put_uint(&form, (uint64_t)number.u.i);
		else
			value_put_int(&form, number.u.i);
	} else if (s->order == VALUE_ORDER_JSON) {
		value_put_double(&form, number.u.d);
	} else if (number.u.d == 0) { /* -0 */
		value_put_uint(&form, 0);
	} else {
		/* kubectl makes YAML from JSON: a double written there as a whole number of 64 bits
		 * stays one. */
		struct bytes as_json = BYTES(json, number_format_double(number.u.d, json));

		if (number_parse(as_json, &whole) &&
			(whole.form == NUMBER_INT || whole.form == NUMBER_UINT))
			value_put_number_text(&form, as_json);
		else
			value_put_number_text(
				&form, BYTES(text, number_format_go(number.u.d, text)));
	}
	r = buf_error(&form);
	size_t room = (size_t)(s->end - s->start) + form.size; /* for all remaining items */
	if (r == 0 && (size_t)(s->room_end - s->to) < room + PIECE)
		r = sort_make_room(s, room);
	if (r < 0)
		return r;
	memcpy(s->to, form.data, form.size);
	s->to += form.size;
	return 0;
}

static int sort_put_item(
	struct sorting *s, const uint8_t *start, const uint8_t *end, size_t container);

static int sort_put_array(struct sorting *s, const struct value *array, size_t container)
{
	const uint8_t *p = array->inner.data;
	int r = 0;

	sort_copy(s, array->start, p);
	for (uint32_t left = array->count; r == 0 && left; left--) {
		size_t first = container;
		const uint8_t *start = p;

		p = sort_item_end(s, p, &container);
		r = sort_put_item(s, start, p, first);
	}
	return r;
}

/* Returns the first bytes of KEY, filled with zeros. END is after it. */
static inline uint64_t sort_prefix(struct bytes key, const uint8_t *end)
{
	uint64_t prefix = 0;

	if (key.size >= sizeof(prefix))
		return be64_get(key.data);
	if ((size_t)(end - (const uint8_t *)key.data) < sizeof(prefix))
		memcpy(&prefix, key.data, key.size);
	else if (key.size)
		prefix = le64_get(key.data) & (UINT64_MAX >> (64 - 8 * key.size));
	return __builtin_bswap64(prefix);
}

/* Finds the members of MAP. Sets *RET_AS_IT_IS if they are in order and unchanged, *RET_SORTED if
 * they are in order. */
static int sort_find_members(struct sorting *s, const struct value *map, size_t container,
	bool *ret_as_it_is, bool *ret_sorted)
{
	const uint8_t *p = map->inner.data;
	bool is_plain = true, is_sorted = true;
	int r = s->room - s->n >= map->count
			? 0
			: ARRAY_ROOM(s->members, s->n, s->room, map->count, "the members of a map");

	if (r < 0)
		return r;
	struct sort_member *member = &s->members[s->n], *first = member;
	for (; member < first + map->count; member++) {
		member->start = p;
		if (value_read_short_text(BYTES(p, (size_t)(s->end - p)), &member->key))
			p = (const uint8_t *)member->key.data + member->key.size;
		else
			r = value_read_key(&p, s->end, &member->key);
		if (r < 0)
			return r;
		member->prefix = sort_prefix(member->key, s->end);
		member->value = p;
		member->container = container;
		is_plain = is_plain && !sort_is_container(*p) && !sort_is_number(*p);
		p = sort_item_end(s, p, &container);
		member->end = p;
		is_sorted = is_sorted &&
			    (member == first || sort_compare(s->order, member - 1, member) <= 0);
	}
	s->n += map->count;
	*ret_as_it_is = is_plain && is_sorted;
	*ret_sorted = is_sorted;
	return 0;
}

/* Appends MAP, which ends at END. Its containers are numbered from CONTAINER on. */
static int sort_put_map(
	struct sorting *s, const struct value *map, const uint8_t *end, size_t container)
{
	size_t first = s->n;
	bool as_it_is, is_sorted;
	int r = sort_find_members(s, map, container, &as_it_is, &is_sorted);

	if (r < 0)
		return r;
	if (!is_sorted)
		sort_members(s, s->members + first, map->count);
	sort_copy(s, map->start, as_it_is ? end : map->inner.data);
	for (size_t i = first; r == 0 && !as_it_is && i < first + map->count; i++) {
		const struct sort_member *member = &s->members[i];
		uint8_t head = *member->value;

		if (!sort_is_container(head) && !sort_is_number(head)) {
			sort_copy(s, member->start, member->end);
			continue;
		}
		sort_copy(s, member->start, member->value);
		r = sort_put_item(
			s, member->value, member->end, member->container); /* MEMBER may move */
	}
	s->n = first;
	return r;
}

/* Appends the item from START to END. Its containers are numbered from CONTAINER on. */
static int sort_put_item(
	struct sorting *s, const uint8_t *start, const uint8_t *end, size_t container)
{
	struct value value;

	if (sort_is_number(*start))
		return sort_put_number(s, start, end);
	if (!sort_is_container(*start)) {
		sort_copy(s, start, end);
		return 0;
	}
	int r = value_read(BYTES(start, (size_t)(end - start)), &value);
	if (r < 0)
		return r;
	if (!value.count) {
		sort_copy(s, start, end);
		return 0;
	}
	return value.type == VALUE_MAP ? sort_put_map(s, &value, end, container + 1)
				       : sort_put_array(s, &value, container + 1);
}

int value_sort(struct bytes document, enum value_order order, struct buf *out)
{
	const uint8_t *start = document.data;
	struct sorting s = {
		.order = order, .out = out, .start = start, .end = start + document.size};
	size_t before = out->size;

	s.to = out->data ? out->data + before : NULL;
	int r = ARRAY_ROOM(s.containers, 0, s.containers_room, FEW + document.size / GUESS,
		"sorting an object");
	if (r == 0)
		r = ARRAY_ROOM(
			s.members, 0, s.room, FEW + document.size / GUESS, "sorting an object");
	if (r == 0)
		r = sort_find_containers(&s, start);
	if (r == 0)
		r = sort_make_room(&s, (size_t)(s.end - start));
	if (r == 0)
		r = sort_put_item(&s, start, s.end, 0);
	size_t after = r < 0 ? before : (size_t)(s.to - out->data);
	if (out->size > after)
		buf_truncate(out, after);
	free(s.members);
	free(s.containers);
	return r < 0 ? r : buf_error(out);
}
