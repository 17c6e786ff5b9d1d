/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ListOptions, the query parameters of list and watch: decoding, defaults, and the
 * refusals of kube-apiserver (docs/protocol.md 3).
 */
#ifndef SIMULATOR_LISTOPTIONS_H
#define SIMULATOR_LISTOPTIONS_H

#include "tests/simulator/http.h"

enum rv_match { RV_MATCH_UNSET, RV_MATCH_EXACT, RV_MATCH_NOT_OLDER };

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
	bool initial_events;     /* sendInitialEvents=true, explicit or by default */
	bool initial_events_set; /* sendInitialEvents was given */
};

/* Returns true if the request is a watch; checks nothing else. */
bool list_options_watch(const struct http_request *request);

/* Returns false if the request is refused; ANSWER then has the reason. WATCH_LIST: the server has
 * this feature. */
bool list_options_read(const struct http_request *request, bool watch_list,
	struct list_options *ret_options, struct http_answer *answer);

#endif
