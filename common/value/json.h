/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON to msgpack and back. Value for value the same text: keys keep their order, numbers their
 * spelling (common/value/value.h). Reading is simdjson's, in json_parse.cpp, the only C++ file; writing is
 * ours, in json_write.c, so that programs that only read the store carry no C++.
 *
 * A parser keeps its arenas between documents: one per thread, reused. Nothing is read beyond the
 * end of the text, so it can lie anywhere, e.g. within a larger buffer that is cut into documents.
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
/* What it reads is secret: no text of it stays in its arenas. */
void json_parser_keep_secret(struct json_parser *parser);
void json_parser_free(struct json_parser **parser);

/* At most so many paths can be left out. */
#define JSON_DROP_MAX 64

struct json_options {
	/* Subtrees left out (path_is_plain). They cost next to nothing: within them only the nesting
	 * is looked at, by which they end. */
	const struct path *const *drop;
	size_t n_drop;
	/* For objects of typed lists, which carry no kind and apiVersion (docs/protocol.md 5): put
	 * first when the document, an object, has neither. NULL: nothing is added. */
	const char *kind;
	const char *api_version;
};

/*
 * Appends TEXT, one JSON document, to OUT as msgpack. OPTIONS may be NULL.
 * 0, or ERR_SYNTAX (what and the byte offset), ERR_TOO_LARGE (deeper than VALUE_DEPTH_MAX, limit of
 * OUT), -ENOMEM. After an error OUT is as before, and without an error of its own.
 * Invalid UTF-8 is an error; unpaired surrogates come out as U+FFFD; duplicate keys are all kept.
 */
int json_parse(struct json_parser *parser, struct bytes text, const struct json_options *options,
	struct buf *out);

/*
 * Appends DOCUMENT, one msgpack document, to OUT as JSON: INDENT spaces per level, or compact with no
 * spaces at all when 0. Strings are escaped as Go's encoding/json does (\u003c for <, also > and &),
 * so that the text is the API server's. 0, ERR_CORRUPT, or the error of OUT; after an error OUT is
 * as long as before.
 */
int json_write(struct bytes document, int indent, struct buf *out);

/* TEXT as a JSON string with its quotes. */
void json_write_string(struct bytes text, struct buf *out);

#ifdef __cplusplus
}
#endif

#endif
