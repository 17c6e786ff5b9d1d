/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON to msgpack and back, without a change: keys keep their order and numbers their spelling
 * (common/value/value.h). json_parse.cpp, the only C++ file, parses with simdjson; json_write.c
 * writes without it, so programs that only read a store link no C++.
 *
 * A parser keeps its memory between documents: make one per thread and use it again. It reads
 * nothing after the end of the text, so the text may be a part of a larger buffer.
 */
#ifndef COMMON_VALUE_JSON_H
#define COMMON_VALUE_JSON_H

#include "common/buf.h"
#include "common/bytes.h"
#include "common/value/path.h"

#ifdef __cplusplus
extern "C" {
#endif

struct json_parser;

int json_parser_new(struct json_parser **ret_parser);
/* Makes the parser wipe all text of documents from its memory. */
void json_parser_keep_secret(struct json_parser *parser);
void json_parser_free(struct json_parser **parser);

#define JSON_DROP_MAX 64 /* paths to leave out */

/* Strings of an API object as they stand between their quotes, borrowed from the text. Absent ones
 * are empty. */
struct json_identity {
	struct bytes kind, name_space, name, uid, rv;
	bool is_odd; /* one is no string or has escapes, and is not given */
};

struct json_options {
	/* Subtrees to leave out (path_is_plain). They cost almost nothing: the parser only counts
	 * brackets in them. */
	const struct path *const *drop;
	size_t n_drop;
	/* Put first in an object that has neither kind nor apiVersion, as items of typed lists
	 * (docs/protocol.md 5). NULL: nothing is added. */
	const char *kind;
	const char *api_version;
	struct json_identity *identity; /* filled in on the way; NULL: not wanted */
};

/*
 * Appends TEXT, one JSON document, to OUT as msgpack. OPTIONS may be NULL. Invalid UTF-8 is an
 * error; an unpaired surrogate becomes U+FFFD; duplicate keys are all kept.
 * Returns: 0, ERR_SYNTAX (what, and the byte offset), ERR_TOO_LARGE (deeper than
 * VALUE_DEPTH_MAX, or the limit of OUT), -ENOMEM. After an error OUT is as before, and without
 * an error of its own.
 */
int json_parse(struct json_parser *parser, struct bytes text, const struct json_options *options,
	struct buf *out);

/*
 * Writes RAW, the text between the quotes of a JSON string, to ROOM without its escapes.
 * RAW.size bytes are room enough, and ROOM may be RAW's own. An unpaired surrogate becomes
 * U+FFFD. Returns false if it ended early: the text does not fit, or an escape is none.
 */
bool json_unescape(struct bytes raw, void *room, size_t room_size, size_t *ret_size);

/*
 * Appends DOCUMENT, one msgpack document, to OUT as JSON: INDENT spaces per level, or no spaces at
 * all if INDENT is 0. Strings are escaped as by Go's encoding/json (\u003c for <, also > and &), as
 * the API server does. Returns: 0, ERR_CORRUPT, or the error of OUT, whose limit it may report up
 * to 64 bytes early. After an error OUT is as long as before.
 */
int json_write(struct bytes document, int indent, struct buf *out);

/* The same for a document within LEVEL maps and lists: its first line is not indented. */
int json_write_nested(struct bytes document, int indent, unsigned level, struct buf *out);

/* The same for one item of a document, with its content: the one at *AT, up to END at most.
 * Moves *AT. */
int json_write_item(const uint8_t **at, const uint8_t *end, int indent, struct buf *out);

/* Appends TEXT as a JSON string with its quotes. */
void json_write_string(struct bytes text, struct buf *out);

#ifdef __cplusplus
}
#endif

#endif
