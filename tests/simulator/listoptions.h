/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ListOptions, the query parameters of list and watch: decoding, defaults and validation with the
 * API server's texts (docs/protocol.md 3).
 */
#ifndef SIMULATOR_LISTOPTIONS_H
#define SIMULATOR_LISTOPTIONS_H

#include "tests/simulator/http.h"

enum rv_match { RV_MATCH_UNSET, RV_MATCH_EXACT, RV_MATCH_NOT_OLDER, RV_MATCH_OTHER };

struct list_options {
	const char *labels; /* these borrow from the request; "" when absent */
	const char *fields;
	const char *rv_text;
	const char *token;
	uint64_t rv; /* 0 for "" and "0" */
	enum rv_match match;
	int64_t limit;           /* 0: none */
	int64_t timeout_seconds; /* 0: unset */
	bool watch;
	bool bookmarks;
	bool initial_events;     /* sendInitialEvents=true, asked for or by default */
	bool initial_events_set; /* sendInitialEvents was given */
};

/* Only whether this is a watch, for telling the verb before anything is checked. */
bool list_options_watch(const struct http_request *request);

/* False when the request was refused: ANSWER says how. WATCH_LIST: the server offers it. */
bool list_options_read(const struct http_request *request, bool watch_list,
	struct list_options *ret_options, struct http_answer *answer);

#endif
