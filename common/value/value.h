/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stored body: one msgpack document, read where it lies (in a mapped file) without decoding or
 * copying. Map keys are strings in the order the server sent them. Numbers are int64, uint64 or
 * double; a JSON number whose text would not come back the same from those is kept as its text in
 * an extension of type VALUE_NUMBER_TEXT (store/FORMAT.md, Bodies).
 *
 * Bytes may come from a damaged file: every step is bounds-checked and answers ERR_CORRUPT, depth is
 * limited to VALUE_DEPTH_MAX. A `struct value` borrows from the bytes it was read from.
 *
 * Reading:
 *	struct value doc, meta, name;
 *	value_read(body, &doc);                          (looks at the first item only)
 *	value_find(&doc, BYTES_LIT("metadata"), &meta);  (FOUND, NOT_FOUND or an error)
 *	struct value_iter it; value_iter_init(&it, &meta);
 *	while ((r = value_iter_next(&it, &key, &item)) == FOUND) ...   (END after the last)
 *
 * Writing: value_put_* append to a buf. Containers whose size is not known before are opened with
 * value_open_map/array and closed with the count, which moves bytes only when more than 15 items
 * came.
 *
 * The only file with msgpack.h is value.c.
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
	VALUE_INT,    /* u.i, negative only when below 0: larger ones are VALUE_UINT */
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
	size_t size;        /* of the item in bytes; array, map: of the head before the first item */
	const uint8_t *start; /* of the item */
	struct bytes text;  /* strings and numbers kept as text */
	struct bytes inner; /* array, map: from the first item to the end of the document */
};

/* Looks at the item that DOCUMENT begins with. 0 or ERR_CORRUPT. Stepping on by `size` each time
 * visits every item of the document in order, containers before their content. */
int value_read(struct bytes document, struct value *ret_value);

/* The whole document is well-formed, of known types, string keys, valid UTF-8, not too deep, and
 * ends where DOCUMENT ends. 0 or ERR_CORRUPT. */
int value_verify(struct bytes document);

/* Size in bytes of the first item of DOCUMENT, or ERR_CORRUPT. */
int value_size(struct bytes document, size_t *ret_size);

/* A member of a map: FOUND, NOT_FOUND (also when VALUE is no map), or ERR_CORRUPT. */
int value_find(const struct value *value, struct bytes key, struct value *ret_item);

/* Convenience: member of a member of the document, a string; NOT_FOUND when absent or no string. */
int value_find_text(struct bytes document, const char *outer, const char *key,
	struct bytes *ret_text);

struct value_iter {
	const uint8_t *next;
	const uint8_t *end;
	uint32_t left;
	bool is_map;
};

/* Walks an array (KEY is BYTES_NONE) or a map; anything else has no items. */
void value_iter_init(struct value_iter *iter, const struct value *value);
int value_iter_next(struct value_iter *iter, struct bytes *ret_key, struct value *ret_item);

void value_put_nil(struct buf *buf);
void value_put_bool(struct buf *buf, bool b);
void value_put_int(struct buf *buf, int64_t i);
void value_put_uint(struct buf *buf, uint64_t u);
void value_put_double(struct buf *buf, double d);
void value_put_number_text(struct buf *buf, struct bytes text);
/* TEXT, a JSON number, in the form that gives the same text back (common/value/number.h). ERR_SYNTAX,
 * without a sentence and with nothing written, when it is none. */
int value_put_number(struct buf *buf, struct bytes text);
void value_put_string(struct buf *buf, struct bytes text);

/* Opens a container; the result goes to value_close with the number of items (pairs for a map). */
size_t value_open_map(struct buf *buf);
size_t value_open_array(struct buf *buf);
void value_close(struct buf *buf, size_t opened, uint32_t count);

/*
 * Text of a scalar as an index value or a selector sees it: strings as they are, true/false,
 * numbers in the shortest form (those kept as text: their text), null: "". NOT_FOUND for maps and
 * arrays. Borrowed from the value or from SCRATCH (at least VALUE_SCRATCH bytes).
 */
#define VALUE_SCRATCH NUMBER_TEXT_MAX
int value_scalar_text(const struct value *value, char *scratch, struct bytes *ret_text);

#endif
