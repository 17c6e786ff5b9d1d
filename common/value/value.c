/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/value.h"

#include <math.h>
#include <msgpack.h>

#include "common/check.h"
#include "common/err.h"
#include "common/value/number.h"
#include "common/utf8.h"

/* ---- reading ----
 *
 * msgpack-c unpacks into a tree of objects of its own; we read bodies where they lie in a mapped
 * file, and mostly skip. So the reading side is written out here.
 */

#define HEAD_MAX 9 /* double, int64, uint64; strings and extensions have at most 6 */

/* How an item begins: for strings and numbers as text COUNT bytes follow the head, for containers
 * COUNT items or pairs. */
struct head {
	enum value_type type;
	uint32_t size;
	uint32_t count;
};

/* Types 0xc0 to 0xdf: size of the head and of the length within it. What is all 0 we never write.
 */
static const struct {
	uint8_t type;
	uint8_t size;
	uint8_t length; /* bytes of length; 0: COUNT says it */
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

static __attribute__((cold, noinline)) int corrupt(const char *what)
{
	return err_set(ERR_CORRUPT, "stored value: %s", what);
}

/* A big-endian number of SIZE bytes, 1, 2, 4 or 8. */
static uint64_t be_get(const uint8_t *p, size_t size)
{
	uint64_t u = 0;

	for (size_t i = 0; i < size; i++)
		u = u << 8 | p[i];
	return u;
}

static int head_read_long(const uint8_t *p, size_t left, struct head *head)
{
	unsigned int i = *p - 0xc0u;

	if (!heads[i].size)
		return corrupt("unknown type");
	if (heads[i].size > left)
		return corrupt("cut off");
	*head = (struct head){heads[i].type, heads[i].size, heads[i].count};
	if (heads[i].length)
		head->count = (uint32_t)be_get(p + 1, heads[i].length);
	if (head->type == VALUE_NUMBER && p[head->size - 1] != VALUE_NUMBER_TEXT)
		return corrupt("unknown extension");
	return 0;
}

/* Reads the head at P; what it says follows within LEFT bytes, at a byte per item at least. */
static inline int head_read(const uint8_t *p, size_t left, struct head *head)
{
	if (left == 0)
		return corrupt("cut off");
	if (*p >= 0xa0 && *p < 0xc0)
		*head = (struct head){VALUE_STRING, 1, *p & 0x1fu};
	else if (*p < 0x80)
		*head = (struct head){VALUE_UINT, 1, 0};
	else if (*p < 0x90)
		*head = (struct head){VALUE_MAP, 1, *p & 0x0fu};
	else if (*p < 0xa0)
		*head = (struct head){VALUE_ARRAY, 1, *p & 0x0fu};
	else if (*p >= 0xe0)
		*head = (struct head){VALUE_INT, 1, 0};
	else if (head_read_long(p, left, head) < 0)
		return ERR_CORRUPT;
	if (head->count > left - head->size)
		return corrupt("cut off");
	return 0;
}

static void read_integer(const uint8_t *p, const struct head *head, struct value *ret_value)
{
	uint64_t u = head->size == 1 ? *p : be_get(p + 1, head->size - 1);

	ret_value->u.u = u;
	if (head->type == VALUE_UINT)
		return;
	unsigned int unused = head->size == 1 ? 56 : 64 - 8 * (head->size - 1);
	ret_value->u.i = (int64_t)(u << unused) >> unused;
	if (ret_value->u.i >= 0)
		ret_value->type = VALUE_UINT;
}

static int read_double(const uint8_t *p, struct value *ret_value)
{
	uint64_t u = be64_get(p + 1);
	double d;

	memcpy(&d, &u, sizeof(u));
	if (!isfinite(d))
		return corrupt("a number that is not finite");
	*ret_value = (struct value){.type = VALUE_DOUBLE, .size = HEAD_MAX, .start = p, .u.d = d};
	return 0;
}

int value_read(struct bytes document, struct value *ret_value)
{
	const uint8_t *p = document.data;
	struct head head;

	if (head_read(p, document.size, &head) < 0)
		return ERR_CORRUPT;
	if (head.type == VALUE_DOUBLE)
		return read_double(p, ret_value);
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
		read_integer(p, &head, ret_value);
		break;
	default: /* nil has nothing more */
		break;
	}
	return 0;
}

/* The end of the item at P, NULL when it is damaged. Nothing is decoded and nothing recurses:
 * PENDING counts the items still to pass, each of which takes at least a byte. */
static const uint8_t *skip(const uint8_t *p, const uint8_t *end)
{
	struct head head;

	for (uint64_t pending = 1; pending; pending--) {
		if (head_read(p, (size_t)(end - p), &head) < 0)
			return NULL;
		p += head.size;
		if (head.type == VALUE_MAP)
			pending += 2 * (uint64_t)head.count;
		else if (head.type == VALUE_ARRAY)
			pending += head.count;
		else
			p += head.count;
	}
	return p;
}

int value_size(struct bytes document, size_t *ret_size)
{
	const uint8_t *start = document.data;
	const uint8_t *end = skip(start, start + document.size);

	if (!end)
		return ERR_CORRUPT;
	*ret_size = (size_t)(end - start);
	return 0;
}

/* ---- verifying ---- */

static int verify_item(const struct value *item, bool is_key)
{
	if (is_key && item->type != VALUE_STRING)
		return corrupt("a key that is no string");
	if (item->type == VALUE_STRING && !utf8_is_valid(item->text))
		return corrupt("text that is not UTF-8");
	if (item->type == VALUE_NUMBER && !number_is_valid(item->text))
		return corrupt("a number that is none");
	return 0;
}

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
			return document.size ? corrupt("bytes behind the end") : 0;
		struct value item;
		bool is_key = levels[depth].is_map && levels[depth].left % 2 == 0;
		if (value_read(document, &item) < 0 || verify_item(&item, is_key) < 0)
			return ERR_CORRUPT;
		document = BYTES(
			(const uint8_t *)document.data + item.size, document.size - item.size);
		levels[depth].left--;
		if (item.type != VALUE_MAP && item.type != VALUE_ARRAY)
			continue;
		if (++depth > VALUE_DEPTH_MAX)
			return corrupt("nested too deep");
		levels[depth].is_map = item.type == VALUE_MAP;
		levels[depth].left = (uint64_t)item.count << levels[depth].is_map;
	}
}

/* ---- members ---- */

static bool is_container(const struct value *value)
{
	return value->type == VALUE_MAP || value->type == VALUE_ARRAY;
}

void value_iter_init(struct value_iter *iter, const struct value *value)
{
	*iter = (struct value_iter){.is_map = value->type == VALUE_MAP};
	if (!is_container(value))
		return;
	iter->next = value->inner.data;
	iter->end = iter->next + value->inner.size;
	iter->left = value->count;
}

static int read_key(const uint8_t **p, const uint8_t *end, struct bytes *ret_key)
{
	struct head head;

	if (head_read(*p, (size_t)(end - *p), &head) < 0)
		return ERR_CORRUPT;
	if (head.type != VALUE_STRING)
		return corrupt("a key that is no string");
	*ret_key = BYTES(*p + head.size, head.count);
	*p += head.size + head.count;
	return 0;
}

int value_iter_next(struct value_iter *iter, struct bytes *ret_key, struct value *ret_item)
{
	const uint8_t *p = iter->next;
	struct bytes key = BYTES_NONE;
	struct value item;

	if (iter->left == 0)
		return END;
	if (iter->is_map && read_key(&p, iter->end, &key) < 0)
		return ERR_CORRUPT;
	if (value_read(BYTES(p, (size_t)(iter->end - p)), &item) < 0)
		return ERR_CORRUPT;
	const uint8_t *next = is_container(&item) ? skip(p, iter->end) : p + item.size;
	if (!next)
		return ERR_CORRUPT;
	iter->next = next;
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
		if (read_key(&p, end, &found) < 0)
			return ERR_CORRUPT;
		if (bytes_equal(found, key))
			return value_read(BYTES(p, (size_t)(end - p)), ret_item);
		p = skip(p, end);
		if (!p)
			return ERR_CORRUPT;
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

/* ---- writing ----
 *
 * msgpack-c chooses the form and the bytes. Its packer calls back for each piece; here the room is
 * reserved before, so the callback is a copy that the compiler inlines.
 */

static int put_piece(void *cursor, const char *data, size_t size)
{
	uint8_t **p = cursor;

	memcpy(*p, data, size);
	*p += size;
	return 0;
}

#define PACKER(cursor) (&(msgpack_packer){.data = &(cursor), .callback = put_piece})

/* Packs a scalar: CALL writes to a packer named `packer`. */
#define PUT_SCALAR(buf, call) \
	do { \
		uint8_t head_[HEAD_MAX], *cursor_ = head_; \
		msgpack_packer *packer = PACKER(cursor_); \
		(void)(call); /* put_piece never fails */ \
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

/* Appends a head that is followed by TEXT. */
static inline void put_text(struct buf *buf, const uint8_t *head, size_t size, struct bytes text)
{
	uint8_t *p = buf_grow(buf, size + text.size);

	if (!p)
		return;
	memcpy(p, head, size);
	if (text.size)
		memcpy(p + size, text.data, text.size);
}

/* msgpack counts bytes in 32 bits. */
static bool fits(struct buf *buf, size_t size)
{
	if (size > UINT32_MAX && !buf->error)
		buf->error = ERR_TOO_LARGE;
	return size <= UINT32_MAX;
}

void value_put_number_text(struct buf *buf, struct bytes text)
{
	uint8_t head[HEAD_MAX], *cursor = head;

	if (!fits(buf, text.size))
		return;
	(void)msgpack_pack_ext(PACKER(cursor), text.size, VALUE_NUMBER_TEXT);
	put_text(buf, head, (size_t)(cursor - head), text);
}

void value_put_string(struct buf *buf, struct bytes text)
{
	uint8_t head[HEAD_MAX], *cursor = head;

	if (!fits(buf, text.size))
		return;
	(void)msgpack_pack_str(PACKER(cursor), text.size);
	put_text(buf, head, (size_t)(cursor - head), text);
}

int value_put_number(struct buf *buf, struct bytes text)
{
	struct number number;

	if (number_parse(text, &number) < 0)
		return ERR_SYNTAX;
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
	return 0;
}

/* A container is opened as an empty one of the short form, one byte. */
static size_t open_container(struct buf *buf, uint8_t head)
{
	size_t opened = buf->size;

	buf_byte(buf, head);
	return opened;
}

size_t value_open_map(struct buf *buf)
{
	uint8_t head, *cursor = &head;

	(void)msgpack_pack_map(PACKER(cursor), 0);
	return open_container(buf, head);
}

size_t value_open_array(struct buf *buf)
{
	uint8_t head, *cursor = &head;

	(void)msgpack_pack_array(PACKER(cursor), 0);
	return open_container(buf, head);
}

void value_close(struct buf *buf, size_t opened, uint32_t count)
{
	uint8_t head[HEAD_MAX], *cursor = head;

	if (buf->error)
		return;
	REQUIRE(opened < buf->size);
	struct head open;
	int r = head_read(buf->data + opened, 1, &open);
	REQUIRE(r == 0 && open.count == 0 && (open.type == VALUE_MAP || open.type == VALUE_ARRAY));
	if (open.type == VALUE_MAP)
		(void)msgpack_pack_map(PACKER(cursor), count);
	else
		(void)msgpack_pack_array(PACKER(cursor), count);
	size_t size = (size_t)(cursor - head);
	size_t behind = buf->size - opened - 1;
	if (size > 1 && !buf_grow(buf, size - 1))
		return;
	if (size > 1)
		memmove(buf->data + opened + size, buf->data + opened + 1, behind);
	memcpy(buf->data + opened, head, size);
}

/* ---- text ---- */

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
