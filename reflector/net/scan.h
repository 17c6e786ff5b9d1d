/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the end of a JSON value in bytes that arrive in pieces. It looks for quotes, backslashes
 * and brackets only, 64 bytes at a time (with SSE2, else byte by byte with the same result). The
 * list cutter and the watch framer both stand on this.
 *
 * `{` and `[` count alike, so "{]" passes here and is refused by the parser later. A raw line feed
 * inside a string is refused at once: it is not JSON. Servers write one event a line, so a lost
 * quote is found at the end of its line, before the scanner takes the next events for a part of the
 * string.
 */
#ifndef REFLECTOR_NET_SCAN_H
#define REFLECTOR_NET_SCAN_H

#include "common/buf.h"
#include "common/bytes.h"

struct scan {
	uint64_t depth;
	bool in_string;
	bool escaped; /* the next byte follows an odd number of backslashes */
};

#define SCAN_INIT ((struct scan){0})

/*
 * Goes on through an object or array that begins with the first byte ever given. FOUND: it is whole
 * and ended after *RET_USED bytes of DATA. AGAIN: all was used and more is needed. ERR_PROTOCOL: a
 * line feed inside a string; *RET_USED says where.
 */
int scan_container(struct scan *scan, const uint8_t *data, size_t size, size_t *ret_used);

/*
 * A cutter does the same and also gives the value's text. A value is copied, into `partial`, only
 * if it comes in pieces. If a value is larger than `max`, only its beginning is kept, but its end
 * is still found. The owner sets `max`, the rest being zero, and releases `partial`.
 */
struct cutter {
	struct scan scan;
	struct buf partial;
	size_t size; /* of the value so far */
	size_t max;  /* a larger value is cut */
	bool cut;    /* the value is larger: only its beginning is given */
};

#define CUTTER_BEGINNING ((size_t)256 << 10) /* of a cut value, at most */
/* times max: a larger value is ERR_TOO_LARGE */
#define CUTTER_SKIP_MAX 16

/* The next byte begins a new value. Gives memory back after an unusually large one. */
void cutter_reset(struct cutter *cutter);

/* FOUND: *RET_TEXT is the value (`cut`: its beginning), until the next call. AGAIN. ERR_PROTOCOL,
 * ERR_TOO_LARGE, -ENOMEM; *RET_USED is set in any case. */
int cutter_take(struct cutter *cutter, const uint8_t *data, size_t size, size_t *ret_used,
	struct bytes *ret_text);

/*
 * Reading the members of an object without parsing it. TEXT begins with '{'; *AT is 0 at first.
 * FOUND with the key's text between its quotes (escapes as they stand) and the value's text; END
 * after the last; ERR_PROTOCOL with the offset in the sentence. If the object is CUT, TEXT is only
 * its beginning: a value without an end there reaches to the end of TEXT, and is the last.
 */
int scan_member(
	struct bytes text, bool cut, size_t *at, struct bytes *ret_key, struct bytes *ret_value);
/* The two halves of scan_member(): moves *AT to a member's value, and to its end. */
int scan_key(struct bytes text, bool cut, size_t *at, struct bytes *ret_key);
int scan_value(struct bytes text, bool cut, size_t *at, struct bytes *ret_value);

/* Reads the JSON string VALUE. RET_TEXT is borrowed from VALUE; with escapes it is in ROOM.
 * Returns: FOUND; NOT_FOUND: it is no string, has an escape that is none, or more text than ROOM
 * holds. */
int scan_string(struct bytes value, void *room, size_t room_size, struct bytes *ret_text);

/* Returns true if TEXT, the beginning of an object without its blanks, ends with the member KEY
 * ("\"items\":"). */
bool scan_ends_with(struct bytes text, const char *key);

/* The value of KEY in the object TEXT: FOUND, NOT_FOUND, ERR_PROTOCOL. */
int scan_find(struct bytes text, const char *key, struct bytes *ret_value);

static inline bool scan_is_space(uint8_t c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

#endif
