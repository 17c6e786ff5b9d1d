/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path of a request, taken apart as the API server does (docs/protocol.md 1):
 *
 *	/api/v1/...                    the core group, named ""
 *	/apis/GROUP/VERSION/...        the others
 *	.../PLURAL  .../PLURAL/NAME  .../namespaces/NS/PLURAL[/NAME[/SUBRESOURCE]]  .../watch/...
 */
#ifndef SERVE_API_API_PATH_H
#define SERVE_API_API_PATH_H

#include "common/buf.h"

enum api_path_kind {
	API_PATH_OTHER,     /* none of ours: not found */
	API_PATH_MALFORMED, /* it is not well encoded */
	API_PATH_ROOT,      /* / */
	API_PATH_VERSION,   /* /version */
	API_PATH_API,       /* /api: the first document made of the feeds */
	API_PATH_GROUPS,    /* /apis */
	API_PATH_GROUP,     /* /apis/GROUP */
	API_PATH_RESOURCES, /* /api/v1, /apis/GROUP/VERSION: the last one */
	API_PATH_RESOURCE,  /* objects */
};

/* Texts are "" where the path has none, and borrowed from `text`. */
struct api_path {
	enum api_path_kind kind;
	bool is_watch; /* the path has the prefix /watch/ */
	bool is_named; /* the path has a name */
	bool is_long;  /* it goes on after the subresource */
	const char *group, *version, *namespace_, *resource, *name, *subresource;
	struct buf text;
};

/* Its apiVersion ("apps/v1", "v1"), for a format of %s%s%s. */
#define API_PATH_GROUP_VERSION(path) (path)->group, *(path)->group ? "/" : "", (path)->version

/* Takes apart PATH, percent-encoded and without the query. A path with an empty segment, `.`, `..`,
 * or an encoded slash, percent sign or NUL is API_PATH_OTHER. Returns: 0, -ENOMEM. Free with
 * api_path_release(), also after an error. */
int api_path_parse(struct bytes path, struct api_path *ret_path);
void api_path_release(struct api_path *path);

/* Appends the key of the path's object, or the prefix of the keys in its namespace. Returns the
 * error of OUT. */
int api_path_put_key(const struct api_path *path, struct buf *out);

/* Decodes %XX, and + as a blank if PLUS. Appends to OUT. Returns whether the encoding is valid. */
bool api_path_unescape(struct bytes text, bool plus, struct buf *out);

#endif
