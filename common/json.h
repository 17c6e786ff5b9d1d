/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON to msgpack and back. Value for value the same text: keys keep their order, numbers their
 * spelling (common/value.h). Reading is simdjson's, in json_parse.cpp, the only C++ file; writing is
 * ours, in json_write.c, so that programs that only read the store carry no C++.
 *
 * A parser keeps its arenas between documents: one per thread, reused. Input needs
 * json_padding() readable bytes behind it; json_parse copies where the caller says there are none.
 */
#ifndef COMMON_JSON_H
#define COMMON_JSON_H

#include "common/buf.h"
#include "common/bytes.h"
#include "common/path.h"

#ifdef __cplusplus
extern "C" {
#endif

struct json_parser;

int json_parser_new(struct json_parser **ret_parser);
void json_parser_free(struct json_parser **parser);

size_t json_padding(void);

struct json_options {
	size_t readable_behind;         /* bytes that may be read behind the text; less than
	                                   json_padding(): the text is copied first */
	const struct path *const *drop; /* subtrees left out; each a path of plain keys */
	size_t n_drop;
	/* For objects of typed lists, which carry no kind and apiVersion (spec/api.md 5): put first
	 * when the document, an object, has neither. NULL: nothing is added. */
	const char *kind;
	const char *api_version;
};

/*
 * Appends TEXT, one JSON document, to OUT as msgpack. OPTIONS may be NULL.
 * 0, or ERR_SYNTAX (what and the byte offset), ERR_TOO_LARGE (deeper than VALUE_DEPTH_MAX, limit of
 * OUT), -ENOMEM. After an error OUT is as long as before.
 * Invalid UTF-8 is an error; unpaired surrogates come out as U+FFFD; duplicate keys are all kept.
 */
int json_parse(struct json_parser *parser, struct bytes text, const struct json_options *options,
	struct buf *out);

/* Spaces per level for json_write; 0: compact, no spaces at all. */
int json_write(struct bytes document, int indent, struct buf *out);

/* TEXT as a JSON string with its quotes. */
void json_write_string(struct bytes text, struct buf *out);

#ifdef __cplusplus
}
#endif

#endif
