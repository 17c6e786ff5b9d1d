/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON as text: finds, replaces and merges members without decoding anything else, so that what a
 * test stores comes out of the API byte for byte: 1.0, -0.0, 20 digits, key order, duplicate keys.
 *
 * The text is taken as well-formed. Malformed text finds nothing or ends early; it is never read
 * beyond its end. Keys are compared as they are spelled, so a key with escapes matches only itself.
 */
#ifndef SIMULATOR_JSONTEXT_H
#define SIMULATOR_JSONTEXT_H

#include "common/buf.h"
#include "common/bytes.h"

/* Walks an object (key set) or an array (key empty). */
struct jsontext_iter {
	struct bytes text;
	size_t pos;
	bool is_object;
};

struct jsontext_member {
	struct bytes key;   /* without quotes, escapes as they are */
	struct bytes value; /* without the blanks around it */
	size_t begin;       /* of the whole member, from its key on, in the text walked */
	size_t end;
};

/* Any other value has no members. */
void jsontext_iter_init(struct jsontext_iter *iter, struct bytes text);
bool jsontext_iter_next(struct jsontext_iter *iter, struct jsontext_member *ret_member);

/* First member of that name; its value is borrowed from OBJECT. */
bool jsontext_find(struct bytes object, const char *key, struct jsontext_member *ret_member);

/* Value of a member, and of a member of a member (KEY "a.b"), or BYTES_NONE. */
struct bytes jsontext_get(struct bytes object, const char *key);

/* The value at the start of TEXT (blanks before it allowed) and nothing but blanks behind it. */
bool jsontext_single(struct bytes text, struct bytes *ret_value);

/* Appends the characters of a JSON string to OUT; other values as they are spelled. */
void jsontext_unescape(struct bytes value, struct buf *out);

/* The same as text that the caller frees; NULL for BYTES_NONE. */
char *jsontext_dup(struct bytes value);

/* TEXT as a JSON string, escaped as Go's encoding/json does. */
void jsontext_put_string(struct buf *out, struct bytes text);

/* JSON merge patch (RFC 7386): members of TARGET that PATCH does not name keep their bytes. */
void jsontext_merge(struct bytes target, struct bytes patch, struct buf *out);

#endif
