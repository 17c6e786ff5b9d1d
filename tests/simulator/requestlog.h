/* SPDX-License-Identifier: Apache-2.0 */
/* The log of requests, as JSON lines. Any thread may call these functions. */
#ifndef SIMULATOR_REQUESTLOG_H
#define SIMULATOR_REQUESTLOG_H

#include "tests/simulator/http.h"

struct requestlog;

struct requestlog *requestlog_new(void);
void requestlog_free(struct requestlog **log);

/* Adds a line. VERB: list, watch, get, discovery or none; RESOURCE: "" if there is none. */
void requestlog_add(struct requestlog *log, const struct http_request *request, const char *verb,
	const char *resource, unsigned status);

/* Appends all lines to OUT. */
void requestlog_copy(struct requestlog *log, struct buf *out);

void requestlog_clear(struct requestlog *log);

#endif
