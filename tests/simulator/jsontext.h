/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON as text: finds, replaces and merges members without decoding the rest, so the API shows a
 * test's objects byte for byte: 1.0, -0.0, 20 digits, key order, duplicate keys.
 *
 * The functions assume well-formed text. In malformed text they find nothing or end early, but
 * never read beyond its end. They compare keys as spelled: a key with escapes matches only the same
 * spelling.
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
	struct bytes value; /* without surrounding blanks */
	size_t begin;       /* offset of the member, with its key, in the text */
	size_t end;
};

/* Begins a walk over the members of an object or array; other values have none. */
void jsontext_iter_init(struct jsontext_iter *iter, struct bytes text);
bool jsontext_iter_next(struct jsontext_iter *iter, struct jsontext_member *ret_member);

/* Returns the value of a member, also of a nested one (KEY "a.b"); BYTES_NONE if there is none. */
struct bytes jsontext_get(struct bytes object, const char *key);

/* Returns true if TEXT is one value with only blanks around it. */
bool jsontext_single(struct bytes text, struct bytes *ret_value);

/* Appends the characters of a JSON string to OUT; other values as they are spelled. */
void jsontext_unescape(struct bytes value, struct buf *out);

/* Returns the characters of a string as text, to be freed by the caller; NULL for BYTES_NONE. */
char *jsontext_dup(struct bytes value);

/* Appends TEXT as a JSON string, escaped as by Go's encoding/json. */
void jsontext_put_string(struct buf *out, struct bytes text);

/* Applies a JSON merge patch (RFC 7386). Members of TARGET missing in PATCH keep their bytes. */
void jsontext_merge(struct bytes target, struct bytes patch, struct buf *out);

#endif
