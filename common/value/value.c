/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/value.h"

#include <math.h>
#include <msgpack.h>

#include "common/check.h"
#include "common/err.h"
#include "common/text/utf8.h"
#include "common/value/number.h"

/* ---- reading ---- msgpack-c unpacks into a tree of objects of its own. Bodies are read in place
 * in a mapped file with most items skipped: hence our own reader. */

#define HEAD_MAX 9 /* double, int64, uint64; strings and extensions have at most 6 */

/* The first bytes of an item. COUNT is the bytes after the head of a string or a number kept as
 * text, the items or pairs of a container. */
struct value_head {
	enum value_type type;
	uint32_t size;
	uint32_t count;
};

/* The types 0xc0 to 0xdf: size of the head and of its length. value_put_*() writes none of the zero
 * ones. */
static const struct {
	uint8_t type;
	uint8_t size;
	uint8_t length; /* bytes of the length; 0: it is COUNT */
	uint8_t count;
} heads[32] = {
	[0xc0 - 0xc0] = {VALUE_NIL, 1, 0, 0},
	[0xc2 - 0xc0] = {VALUE_BOOL, 1, 0, 0},
	[0xc3 - 0xc0] = {VALUE_BOOL, 1, 0, 0},
	[0xc7 - 0xc0] = {VALUE_NUMBER, 3, 1, 0},
	[0xc8 - 0xc0] = {VALUE_NUMBER, 4, 2, 0},
	[0xc9 - 0xc0] = {VALUE_NUMBER, 6, 4, 0},
	[0xcb - 0xc0] = {VALUE_DOUBLE, 9, 0, 0},
	[0xcc - 0xc0] = {VALUE_UINT, 2, 0, 0},
	[0xcd - 0xc0] = {VALUE_UINT, 3, 0, 0},
	[0xce - 0xc0] = {VALUE_UINT, 5, 0, 0},
	[0xcf - 0xc0] = {VALUE_UINT, 9, 0, 0},
	[0xd0 - 0xc0] = {VALUE_INT, 2, 0, 0},
	[0xd1 - 0xc0] = {VALUE_INT, 3, 0, 0},
	[0xd2 - 0xc0] = {VALUE_INT, 5, 0, 0},
	[0xd3 - 0xc0] = {VALUE_INT, 9, 0, 0},
	[0xd4 - 0xc0] = {VALUE_NUMBER, 2, 0, 1},
	[0xd5 - 0xc0] = {VALUE_NUMBER, 2, 0, 2},
	[0xd6 - 0xc0] = {VALUE_NUMBER, 2, 0, 4},
	[0xd7 - 0xc0] = {VALUE_NUMBER, 2, 0, 8},
	[0xd8 - 0xc0] = {VALUE_NUMBER, 2, 0, 16},
	[0xd9 - 0xc0] = {VALUE_STRING, 2, 1, 0},
	[0xda - 0xc0] = {VALUE_STRING, 3, 2, 0},
	[0xdb - 0xc0] = {VALUE_STRING, 5, 4, 0},
	[0xdc - 0xc0] = {VALUE_ARRAY, 3, 2, 0},
	[0xdd - 0xc0] = {VALUE_ARRAY, 5, 4, 0},
	[0xde - 0xc0] = {VALUE_MAP, 3, 2, 0},
	[0xdf - 0xc0] = {VALUE_MAP, 5, 4, 0},
};

static __attribute__((cold, noinline)) int value_corrupt(const char *what)
{
	return err_set(ERR_CORRUPT, "stored value: %s", what);
}

/* Reads a big-endian number of SIZE bytes, 1, 2, 4 or 8. */
static uint64_t value_get_integer(const uint8_t *p, size_t size)
{
	uint64_t u = 0;

	for (size_t i = 0; i < size; i++)
		u = u << 8 | p[i];
	return u;
}

static int value_head_read_long(const uint8_t *p, size_t left, struct value_head *head)
{
	unsigned int i = *p - 0xc0u;

	if (!heads[i].size)
		return value_corrupt("unknown type");
	if (heads[i].size > left)
		return value_corrupt("cut off");
	*head = (struct value_head){heads[i].type, heads[i].size, heads[i].count};
	if (heads[i].length)
		head->count = (uint32_t)value_get_integer(p + 1, heads[i].length);
	if (head->type == VALUE_NUMBER && p[head->size - 1] != VALUE_NUMBER_TEXT)
		return value_corrupt("unknown extension");
	return 0;
}

/* Reads the head at P and checks LEFT against its minimum content, a byte per item. */
static inline int value_head_read(const uint8_t *p, size_t left, struct value_head *head)
{
	int r;

	if (left == 0)
		return value_corrupt("cut off");
	if (*p >= 0xa0 && *p < 0xc0)
		*head = (struct value_head){VALUE_STRING, 1, *p & 0x1fu};
	else if (*p < 0x80)
		*head = (struct value_head){VALUE_UINT, 1, 0};
	else if (*p < 0x90)
		*head = (struct value_head){VALUE_MAP, 1, *p & 0x0fu};
	else if (*p < 0xa0)
		*head = (struct value_head){VALUE_ARRAY, 1, *p & 0x0fu};
	else if (*p >= 0xe0)
		*head = (struct value_head){VALUE_INT, 1, 0};
	else if ((r = value_head_read_long(p, left, head)) < 0)
		return r;
	if (head->count > left - head->size)
		return value_corrupt("cut off");
	return 0;
}

int value_read(struct bytes document, struct value *ret_value)
{
	const uint8_t *p = document.data;
	struct value_head head;
	unsigned int unused; /* bits of an integer */

	int r = value_head_read(p, document.size, &head);
	if (r < 0)
		return r;
	*ret_value = (struct value){.type = head.type, .size = head.size, .start = p};
	switch (head.type) {
	case VALUE_STRING:
	case VALUE_NUMBER:
		ret_value->text = BYTES(p + head.size, head.count);
		ret_value->size += head.count;
		break;
	case VALUE_ARRAY:
	case VALUE_MAP:
		ret_value->count = head.count;
		ret_value->inner = BYTES(p + head.size, document.size - head.size);
		break;
	case VALUE_BOOL:
		ret_value->u.b = *p & 1;
		break;
	case VALUE_INT:
	case VALUE_UINT:
		ret_value->u.u = head.size == 1 ? *p : value_get_integer(p + 1, head.size - 1);
		if (head.type == VALUE_UINT)
			break;
		unused = head.size == 1 ? 56 : 64 - 8 * (head.size - 1);
		ret_value->u.i = (int64_t)(ret_value->u.u << unused) >> unused;
		if (ret_value->u.i >= 0)
			ret_value->type = VALUE_UINT;
		break;
	case VALUE_DOUBLE:
		ret_value->u.u = be64_get(p + 1); /* the bits of u.d */
		return isfinite(ret_value->u.d) ? 0 : value_corrupt("an infinite number or NaN");
	default: /* nil has nothing more */
		break;
	}
	return 0;
}

#define STEP_MAX 32   /* bytes */
#define TEXT_8   0xd9 /* a text of up to 255 bytes */

/* Eight entries that grow from FIRST by EACH. */
#define EIGHT(first, each) \
	first, first + each, first + 2 * each, first + 3 * each, first + 4 * each, \
		first + 5 * each, first + 6 * each, first + 7 * each

/* One more than the items after a head of one byte, unless a text; 0: any other head. */
static const uint8_t value_follow[256] = {
	[0x00 ... 0x7f] = 1, /* 0 to 127 */
	[0x80] = EIGHT(1, 2),
	EIGHT(17, 2), /* maps of 0 to 15 pairs */
	[0x90] = EIGHT(1, 1),
	EIGHT(9, 1), /* arrays of 0 to 15 items */
	[0xc0] = 1,
	[0xc2] = 1,
	[0xc3] = 1,          /* nil, false, true */
	[0xe0 ... 0xff] = 1, /* -32 to -1 */
};

/* No decoding, no recursion: PENDING counts the remaining items, each of at least a byte. */
int value_pass(const uint8_t **at, const uint8_t *end, uint64_t items)
{
	const uint8_t *p = *at;
	struct value_head head;

	for (uint64_t pending = items; pending; pending--) {
		size_t left = (size_t)(end - p);

		if (left >= STEP_MAX) {
			if (*p >= 0xa0 &&
				/* not by the table: the next head waits for this length */
				*p < 0xc0) {
				p += 1 + (*p & 0x1f);
				continue;
			}
			if (value_follow[*p]) {
				pending += value_follow[*p++] - 1u;
				continue;
			}
			if (*p == TEXT_8 && p[1] <= left - 2) {
				p += 2 + p[1];
				continue;
			}
		}
		int r = value_head_read(p, left, &head);
		if (r < 0)
			return r;
		p += head.size;
		if (head.type == VALUE_MAP)
			pending += 2 * (uint64_t)head.count;
		else if (head.type == VALUE_ARRAY)
			pending += head.count;
		else
			p += head.count;
	}
	*at = p;
	return 0;
}

int value_size(struct bytes document, size_t *ret_size)
{
	const uint8_t *start = document.data, *end = start;
	int r = value_pass(&end, start + document.size, 1);

	if (r == 0)
		*ret_size = (size_t)(end - start);
	return r;
}

int value_document(const struct value *value, struct bytes *ret_document)
{
	size_t size;
	int r = value_size(BYTES(value->start, value->size + value->inner.size), &size);

	if (r == 0)
		*ret_document = BYTES(value->start, size);
	return r;
}

/* ---- verifying ---------------------------------------------------------- */

int value_verify(struct bytes document)
{
	struct {
		uint64_t left; /* items; a pair is two */
		bool is_map;
	} levels[VALUE_DEPTH_MAX + 1] = {{.left = 1}};
	size_t depth = 0;

	for (;;) {
		while (levels[depth].left == 0 && depth > 0)
			depth--;
		if (levels[depth].left == 0)
			return document.size ? value_corrupt("bytes after the end") : 0;
		struct value item;
		bool is_key = levels[depth].is_map && levels[depth].left % 2 == 0;
		int r = value_read(document, &item);
		if (r < 0)
			return r;
		if (is_key && item.type != VALUE_STRING)
			return value_corrupt("a key other than a string");
		if (item.type == VALUE_STRING && !utf8_is_valid(item.text))
			return value_corrupt("invalid UTF-8");
		if (item.type == VALUE_NUMBER && !number_is_valid(item.text))
			return value_corrupt("a malformed number");
		document = BYTES(
			(const uint8_t *)document.data + item.size, document.size - item.size);
		levels[depth].left--;
		if (item.type != VALUE_MAP && item.type != VALUE_ARRAY)
			continue;
		if (++depth > VALUE_DEPTH_MAX)
			return value_corrupt("nested too deep");
		levels[depth].is_map = item.type == VALUE_MAP;
		levels[depth].left = (uint64_t)item.count << levels[depth].is_map;
	}
}

/* ---- members ------------------------------------------------------------ */

static bool value_is_container(const struct value *value)
{
	return value->type == VALUE_MAP || value->type == VALUE_ARRAY;
}

void value_iter_init(struct value_iter *iter, const struct value *value)
{
	*iter = (struct value_iter){.is_map = value->type == VALUE_MAP};
	if (!value_is_container(value))
		return;
	iter->next = value->inner.data;
	iter->end = iter->next + value->inner.size;
	iter->left = value->count;
}

int value_read_key(const uint8_t **p, const uint8_t *end, struct bytes *ret_key)
{
	struct value_head head;
	int r = value_head_read(*p, (size_t)(end - *p), &head);

	if (r < 0)
		return r;
	if (head.type != VALUE_STRING)
		return value_corrupt("a key other than a string");
	*ret_key = BYTES(*p + head.size, head.count);
	*p += head.size + head.count;
	return 0;
}

int value_iter_next(struct value_iter *iter, struct bytes *ret_key, struct value *ret_item)
{
	const uint8_t *p = iter->next;
	struct bytes key = BYTES_NONE;
	struct value item;
	int r = 0;

	if (iter->in_item) /* passed only now: many walks end with an item */
		r = value_pass(&p, iter->end, 1);
	if (r == 0 && iter->left == 0) {
		iter->next = p;
		iter->in_item = false;
		return END; /* the last item is whole */
	}
	if (r == 0 && iter->is_map)
		r = value_read_key(&p, iter->end, &key);
	if (r == 0)
		r = value_read(BYTES(p, (size_t)(iter->end - p)), &item);
	if (r < 0)
		return r;
	iter->in_item = value_is_container(&item);
	iter->next = iter->in_item ? p : p + item.size;
	iter->left--;
	if (ret_key)
		*ret_key = key;
	*ret_item = item;
	return FOUND;
}

int value_find(const struct value *value, struct bytes key, struct value *ret_item)
{
	if (value->type != VALUE_MAP)
		return NOT_FOUND;
	const uint8_t *p = value->inner.data;
	const uint8_t *end = p + value->inner.size;
	for (uint32_t left = value->count; left; left--) {
		struct bytes found;
		int r = value_read_key(&p, end, &found);
		if (r == 0 && bytes_equal(found, key))
			return value_read(BYTES(p, (size_t)(end - p)), ret_item);
		if (r == 0)
			r = value_pass(&p, end, 1);
		if (r < 0)
			return r;
	}
	return NOT_FOUND;
}

int value_find_text(
	struct bytes document, const char *outer, const char *key, struct bytes *ret_text)
{
	struct value value, member, text;

	int r = value_read(document, &value);
	if (r == 0)
		r = value_find(&value, bytes_str(outer), &member);
	if (r == FOUND)
		r = value_find(&member, bytes_str(key), &text);
	if (r != FOUND)
		return r;
	if (text.type != VALUE_STRING)
		return NOT_FOUND;
	*ret_text = text.text;
	return FOUND;
}

/* ---- writing ---- msgpack-c chooses the form and the bytes. Its packer calls back for each piece;
 * the room is reserved before, and the callback is an inlined copy. */

static int value_pack_piece(void *cursor, const char *data, size_t size)
{
	uint8_t **p = cursor;

	memcpy(*p, data, size);
	*p += size;
	return 0;
}

#define PACKER(cursor) (&(msgpack_packer){.data = &(cursor), .callback = value_pack_piece})

/* Packs a scalar: CALL writes to a packer named `packer`. */
#define PUT_SCALAR(buf, call) \
	do { \
		uint8_t head_[HEAD_MAX], *cursor_ = head_; \
		msgpack_packer *packer = PACKER(cursor_); \
		(void)(call); /* value_pack_piece never fails */ \
		buf_put(buf, head_, (size_t)(cursor_ - head_)); \
	} while (0)

void value_put_nil(struct buf *buf)
{
	PUT_SCALAR(buf, msgpack_pack_nil(packer));
}

void value_put_bool(struct buf *buf, bool b)
{
	PUT_SCALAR(buf, b ? msgpack_pack_true(packer) : msgpack_pack_false(packer));
}

void value_put_int(struct buf *buf, int64_t i)
{
	PUT_SCALAR(buf, msgpack_pack_int64(packer, i));
}

void value_put_uint(struct buf *buf, uint64_t u)
{
	PUT_SCALAR(buf, msgpack_pack_uint64(packer, u));
}

void value_put_double(struct buf *buf, double d)
{
	REQUIRE(isfinite(d));
	PUT_SCALAR(buf, msgpack_pack_double(packer, d));
}

/* Appends a head followed by TEXT. */
static inline void value_put_text(
	struct buf *buf, const uint8_t *head, size_t size, struct bytes text)
{
	if (text.size > UINT32_MAX) { /* msgpack counts bytes in 32 bits */
		if (!buf->error)
			buf->error = ERR_TOO_LARGE;
		return;
	}
	uint8_t *p = buf_grow(buf, size + text.size);
	if (!p)
		return;
	memcpy(p, head, size);
	if (text.size)
		memcpy(p + size, text.data, text.size);
}

void value_put_number_text(struct buf *buf, struct bytes text)
{
	uint8_t head[HEAD_MAX], *cursor = head;

	(void)msgpack_pack_ext(PACKER(cursor), text.size, VALUE_NUMBER_TEXT);
	value_put_text(buf, head, (size_t)(cursor - head), text);
}

void value_put_string(struct buf *buf, struct bytes text)
{
	uint8_t head[HEAD_MAX], *cursor = head;

	(void)msgpack_pack_str(PACKER(cursor), text.size);
	value_put_text(buf, head, (size_t)(cursor - head), text);
}

bool value_put_number(struct buf *buf, struct bytes text)
{
	struct number number;

	if (!number_parse(text, &number))
		return false;
	switch (number.form) {
	case NUMBER_INT:
		value_put_int(buf, number.u.i);
		break;
	case NUMBER_UINT:
		value_put_uint(buf, number.u.u);
		break;
	case NUMBER_DOUBLE:
		value_put_double(buf, number.u.d);
		break;
	case NUMBER_TEXT:
		value_put_number_text(buf, text);
		break;
	}
	return true;
}

/* A container opens as an empty one in the short form, one byte. */
size_t value_open_map(struct buf *buf)
{
	uint8_t head, *cursor = &head;
	size_t opened = buf->size;

	(void)msgpack_pack_map(PACKER(cursor), 0);
	buf_byte(buf, head);
	return opened;
}

size_t value_open_array(struct buf *buf)
{
	uint8_t head, *cursor = &head;
	size_t opened = buf->size;

	(void)msgpack_pack_array(PACKER(cursor), 0);
	buf_byte(buf, head);
	return opened;
}

void value_close(struct buf *buf, size_t opened, uint32_t count)
{
	uint8_t head[HEAD_MAX], *cursor = head;

	if (buf->error)
		return;
	REQUIRE(opened < buf->size);
	struct value_head open;
	int r = value_head_read(buf->data + opened, 1, &open);
	REQUIRE(r == 0 && open.count == 0 && (open.type == VALUE_MAP || open.type == VALUE_ARRAY));
	if (open.type == VALUE_MAP)
		(void)msgpack_pack_map(PACKER(cursor), count);
	else
		(void)msgpack_pack_array(PACKER(cursor), count);
	size_t size = (size_t)(cursor - head);
	size_t after = buf->size - opened - 1;
	if (size > 1 && !buf_grow(buf, size - 1))
		return;
	if (size > 1)
		memmove(buf->data + opened + size, buf->data + opened + 1, after);
	memcpy(buf->data + opened, head, size);
}

/* ---- text --------------------------------------------------------------- */

int value_scalar_text(const struct value *value, char *scratch, struct bytes *ret_text)
{
	switch (value->type) {
	case VALUE_NIL:
		*ret_text = BYTES_LIT("");
		return FOUND;
	case VALUE_BOOL:
		*ret_text = value->u.b ? BYTES_LIT("true") : BYTES_LIT("false");
		return FOUND;
	case VALUE_INT:
		*ret_text = BYTES(scratch, number_format_int(value->u.i, scratch));
		return FOUND;
	case VALUE_UINT:
		*ret_text = BYTES(scratch, number_format_uint(value->u.u, scratch));
		return FOUND;
	case VALUE_DOUBLE:
		*ret_text = BYTES(scratch, number_format_double(value->u.d, scratch));
		return FOUND;
	case VALUE_NUMBER:
	case VALUE_STRING:
		*ret_text = value->text;
		return FOUND;
	case VALUE_ARRAY:
	case VALUE_MAP:
	case VALUE_TYPE_MAX:
		break;
	}
	return NOT_FOUND;
}

bool value_number(const struct value *value, struct number *ret_number)
{
	struct number number = {.form = NUMBER_DOUBLE, .u.d = value->u.d};

	switch (value->type) {
	case VALUE_INT:
		number = (struct number){.form = NUMBER_INT, .u.i = value->u.i};
		break;
	case VALUE_UINT:
		if (value->u.u <= INT64_MAX)
			number = (struct number){.form = NUMBER_INT, .u.i = (int64_t)value->u.u};
		else
			number.u.d = (double)value->u.u;
		break;
	case VALUE_NUMBER:
		if (!number_value(value->text, &number.u.d) || !isfinite(number.u.d))
			return false;
		if (bytes_equal(value->text, BYTES_LIT("-0")))
			number = (struct number){.form = NUMBER_INT, .u.i = 0};
		break;
	case VALUE_DOUBLE:
		if (number.u.d == 0) /* -0: its text is a whole number's */
			number = (struct number){.form = NUMBER_INT, .u.i = 0};
		break;
	default:
		return false;
	}
	*ret_number = number;
	return true;
}
