/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The query of a request: ListOptions and GetOptions, decoded, defaulted and validated as the API
 * server does (docs/protocol.md 3), with its texts. The first value of a key counts; unknown keys
 * are ignored.
 */
#ifndef SERVE_API_API_OPTIONS_H
#define SERVE_API_API_OPTIONS_H

#include "common/value/selector.h"
#include "serve/api/api_status.h"

enum api_include { API_INCLUDE_METADATA, API_INCLUDE_OBJECT, API_INCLUDE_NONE };

enum api_match { API_MATCH_ABSENT, API_MATCH_EXACT, API_MATCH_NOT_OLDER, API_MATCH_OTHER };

/* Texts are "" where the query has none; they are borrowed from `text`. */
struct api_options {
	struct selector *labels, *fields; /* NULL: empty, everything matches */
	const char *rv, *token;
	const char *match_text;
	enum api_match match;
	bool watch, bookmarks;
	bool send_initial_given, send_initial;
	bool sharded;            /* by shardSelector (1.36, alpha); it is not decoded */
	int64_t limit;           /* 0: none */
	int64_t timeout_seconds; /* 0: none */
	const char *include_text;
	enum api_include include; /* of the rows of a table */
	bool pretty_given, pretty;
	struct buf text;
};

/* Returns true if a watch with bookmarks marks the end of its initial objects. As at the API
 * server, not if it is one by its path alone. */
static inline bool api_options_marks_end(const struct api_options *options)
{
	return options->bookmarks && options->watch && options->match == API_MATCH_NOT_OLDER;
}

/* Returns whether the query asks for no certain resourceVersion: it has none, or 0. */
static inline bool api_options_any_rv(const struct api_options *options)
{
	return !*options->rv || strcmp(options->rv, "0") == 0;
}

/* Decodes QUERY, the text after the `?`. LISTS: of a list or watch; other requests ignore most
 * options. Returns: 0; 400 with STATUS; -ENOMEM. Free with api_options_release() in any case. */
int api_options_parse(
	struct bytes query, bool lists, struct api_options *ret_options, struct api_status *status);
void api_options_release(struct api_options *options);

/* Checks the options of a list or watch. A watch is one by its parameter, IS_WATCH also by its
 * path. A watch without options begins with the initial objects (3.2). Returns: 0, 422. */
int api_options_validate(struct api_options *options, bool is_watch, struct api_status *status);

/* Checks includeObject, for tables only. Returns: 0, 400. */
int api_options_include(struct api_options *options, struct api_status *status);

#endif
