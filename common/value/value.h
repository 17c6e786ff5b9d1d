/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stored body: one msgpack document, read in place (in a mapped file) without decoding or
 * copying. Map keys are strings in the server's order. Numbers are int64, uint64 or double; a JSON
 * number that none of those writes back stays a text, in an extension of type VALUE_NUMBER_TEXT
 * (number.h; store/FORMAT.md, Bodies).
 *
 * The bytes may come from a damaged file: every step checks its bounds and returns ERR_CORRUPT, and
 * depth is limited to VALUE_DEPTH_MAX. A `struct value` borrows from these bytes.
 *
 * Reading:
 *	struct value doc, meta, name;
 *	value_read(body, &doc);                          (reads the first item only)
 *	value_find(&doc, BYTES_LIT("metadata"), &meta);  (FOUND, NOT_FOUND or an error)
 *	struct value_iter it; value_iter_init(&it, &meta);
 *	while ((r = value_iter_next(&it, &key, &item)) == FOUND) ...   (END after the last)
 *
 * Writing: value_put_* append to a buf. A container of unknown size is opened with
 * value_open_map/array and closed with the count; this moves bytes only for more than 15 items.
 *
 * Only value.c includes msgpack.h.
 */
#ifndef COMMON_VALUE_VALUE_H
#define COMMON_VALUE_VALUE_H

#include "common/buf.h"
#include "common/bytes.h"
#include "common/value/number.h"

#define VALUE_DEPTH_MAX   128
#define VALUE_NUMBER_TEXT 1

enum value_type {
	VALUE_NIL,
	VALUE_BOOL,
	VALUE_INT,    /* u.i, below 0; other integers are VALUE_UINT */
	VALUE_UINT,   /* u.u */
	VALUE_DOUBLE, /* u.d */
	VALUE_NUMBER, /* a number kept as text: text */
	VALUE_STRING, /* text */
	VALUE_ARRAY,  /* count items, body from the first item on */
	VALUE_MAP,    /* count pairs, body from the first key on */
	VALUE_TYPE_MAX
};

struct value {
	enum value_type type;
	uint32_t count;
	union {
		bool b;
		int64_t i;
		uint64_t u;
		double d;
	} u;
	size_t size; /* of the item in bytes; array, map: of the head before the first item */
	const uint8_t *start; /* of the item */
	struct bytes text;    /* strings and numbers kept as text */
	struct bytes inner;   /* array, map: from the first item to the end of the document */
};

/* Reads the first item of DOCUMENT. Moving on by `size` each time visits every item in order,
 * containers before their content. Returns: 0 or ERR_CORRUPT. */
int value_read(struct bytes document, struct value *ret_value);

/* Sets the text if DOCUMENT begins with a string of at most 255 bytes, by far the most frequent
 * item; else returns false. */
static inline bool value_read_short_text(struct bytes document, struct bytes *ret_text)
{
	const uint8_t *p = (const uint8_t *)document.data; /* also for C++ */
	size_t head, size;

	if (document.size < 2)
		return false;
	if (p[0] >= 0xa0 && p[0] < 0xc0) { /* the length is in the type */
		head = 1;
		size = p[0] & 0x1f;
	} else if (p[0] == 0xd9) { /* a byte of length */
		head = 2;
		size = p[1];
	} else {
		return false;
	}
	*ret_text = BYTES(p + head, size);
	return size <= document.size - head;
}

/* Returns the number of items (pairs of a map) if DOCUMENT begins with a container of 1 to 15, its
 * head a single byte; else 0. */
static inline uint32_t value_read_short_container(struct bytes document, bool *ret_is_map)
{
	uint8_t head = document.size ? *(const uint8_t *)document.data : 0;

	*ret_is_map = head < 0x90;
	return head >= 0x80 && head < 0xa0 ? head & 0x0f : 0;
}

/* Checks the whole document: known types, string keys, valid UTF-8, not too deep, and nothing
 * after its end. Returns: 0 or ERR_CORRUPT. */
int value_verify(struct bytes document);

/* Reads a map's key at *AT, or passes ITEMS items with their content, up to END. Moves *AT.
 * Returns: 0 or ERR_CORRUPT. */
int value_read_key(const uint8_t **at, const uint8_t *end, struct bytes *ret_key);
int value_pass(const uint8_t **at, const uint8_t *end, uint64_t items);

/* Measures the first item of DOCUMENT with its content. Returns: 0 or ERR_CORRUPT. */
int value_size(struct bytes document, size_t *ret_size);

/* Sets *RET_DOCUMENT to the bytes of VALUE, a document borrowed from the same body. Returns: 0 or
 * ERR_CORRUPT. */
int value_document(const struct value *value, struct bytes *ret_document);

/* Finds a member of a map. Returns: FOUND, NOT_FOUND (also if VALUE is no map) or ERR_CORRUPT. */
int value_find(const struct value *value, struct bytes key, struct value *ret_item);

/* Finds the string OUTER.KEY of the document. Returns: FOUND, NOT_FOUND (also if it is no
 * string) or ERR_CORRUPT. */
int value_find_text(
	struct bytes document, const char *outer, const char *key, struct bytes *ret_text);

struct value_iter {
	const uint8_t *next;
	const uint8_t *end;
	uint32_t left;
	bool is_map;
	bool in_item; /* NEXT is the last returned container, not passed yet */
};

/* Walk over an array (the key is BYTES_NONE) or a map; anything else has no items.
 * value_iter_next() returns FOUND, END (`next` is then the end of the container) or ERR_CORRUPT. */
void value_iter_init(struct value_iter *iter, const struct value *value);
int value_iter_next(struct value_iter *iter, struct bytes *ret_key, struct value *ret_item);

/* Passes the last returned item; the caller has measured its SIZE with content. */
static inline void value_iter_pass(struct value_iter *iter, size_t size)
{
	if (iter->in_item)
		iter->next += size;
	iter->in_item = false;
}

void value_put_nil(struct buf *buf);
void value_put_bool(struct buf *buf, bool b);
void value_put_int(struct buf *buf, int64_t i);
void value_put_uint(struct buf *buf, uint64_t u);
void value_put_double(struct buf *buf, double d);
void value_put_number_text(struct buf *buf, struct bytes text);
/* Puts the JSON number TEXT in its form (common/value/number.h). Puts nothing and returns false if
 * TEXT is no number. */
bool value_put_number(struct buf *buf, struct bytes text);
void value_put_string(struct buf *buf, struct bytes text);

/* Open a container. The result goes to value_close() with the number of items (pairs of a map). */
size_t value_open_map(struct buf *buf);
size_t value_open_array(struct buf *buf);
void value_close(struct buf *buf, size_t opened, uint32_t count);

/*
 * Sets RET_TEXT to a scalar's text for indexes and selectors: a string as it is, true or false, a
 * number in its shortest form (or its kept text), "" for null. It is borrowed from the value or
 * from SCRATCH, of VALUE_SCRATCH bytes. Returns: FOUND; NOT_FOUND for maps and arrays.
 */
#define VALUE_SCRATCH NUMBER_TEXT_MAX
int value_scalar_text(const struct value *value, char *scratch, struct bytes *ret_text);

/* Reads a number as the Go programs of Kubernetes do: an int64 (NUMBER_INT, of any sign) if it is
 * written as a whole number and fits, else the nearest double. Returns false if VALUE is no number
 * or too large. */
bool value_number(const struct value *value, struct number *ret_number);

#endif
