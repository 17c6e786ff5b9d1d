/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON to msgpack and back, without a change: keys keep their order and numbers their spelling
 * (common/value/value.h). json_parse.cpp, the only C++ file, parses with simdjson; json_write.c
 * writes without it: programs that only read a store link no C++.
 *
 * A parser keeps its memory between documents: use one per thread. It never reads beyond the text,
 * which may be part of a larger buffer.
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

#define JSON_DROP_MAX 64 /* most paths to leave out */

/* Strings of an API object between their quotes, borrowed from the text. Absent ones are empty. */
struct json_identity {
	struct bytes kind, name_space, name, uid, rv;
	bool is_odd; /* one is missing here: no string, or with escapes */
};

struct json_options {
	/* Subtrees to leave out (path_is_plain). They cost almost nothing: the parser only counts
	 * their brackets. */
	const struct path *const *drop;
	size_t n_drop;
	/* Put first into an object without kind and apiVersion, such as items of typed lists
	 * (docs/protocol.md 5). NULL: none. */
	const char *kind;
	const char *api_version;
	struct json_identity *identity; /* filled in on the way; NULL: not wanted */
};

/*
 * Appends TEXT, one JSON document, to OUT as msgpack. OPTIONS may be NULL. Invalid UTF-8 is an
 * error; an unpaired surrogate becomes U+FFFD; duplicate keys are all kept. Returns: 0, ERR_SYNTAX
 * (with the byte offset), ERR_TOO_LARGE (deeper than VALUE_DEPTH_MAX, or the limit of OUT),
 * -ENOMEM. After an error OUT is as before, and without an error of its own.
 */
int json_parse(struct json_parser *parser, struct bytes text, const struct json_options *options,
	struct buf *out);

/*
 * Writes RAW, a JSON string without its quotes, to ROOM without escapes. RAW.size bytes suffice,
 * and ROOM may be RAW's own. An unpaired surrogate becomes U+FFFD. Returns false if the text does
 * not fit or has a bad escape.
 */
bool json_unescape(struct bytes raw, void *room, size_t room_size, size_t *ret_size);

/*
 * Appends DOCUMENT, one msgpack document, to OUT as JSON: INDENT spaces per level, or no spaces at
 * all if INDENT is 0. Strings have the escapes of Go's encoding/json (\u003c for <, also > and &),
 * as in the API server's text. Returns: 0, ERR_CORRUPT, or the error of OUT, perhaps 64 bytes
 * before its limit. After an error OUT is as long as before.
 */
int json_write(struct bytes document, int indent, struct buf *out);

/* The same for a document within LEVEL maps and lists; does not indent its first line. */
int json_write_nested(struct bytes document, int indent, unsigned level, struct buf *out);

/* The same for one item of a document, at *AT, up to END. Moves *AT after it. */
int json_write_item(
	const uint8_t **at, const uint8_t *end, int indent, unsigned level, struct buf *out);

/* Appends TEXT as a JSON string with its quotes. */
void json_write_string(struct bytes text, struct buf *out);

#ifdef __cplusplus
}
#endif

#endif
