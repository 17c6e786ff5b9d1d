/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the API server for decisions. The reflector's file `upstream` says where it is; it is read
 * again when it has changed. One thread uses a client. The upstream group: upstream_internal.h
 * lists its files.
 */
#ifndef SERVE_HTTP_UPSTREAM_CLIENT_H
#define SERVE_HTTP_UPSTREAM_CLIENT_H

#include "common/bytes.h"

struct upstream_client;

/* The answer to a request. STATUS 0: there was none, and TEXT says why. Else TEXT is the body. */
typedef void upstream_answer_fn(void *context, int status, struct bytes text);

int upstream_client_new(int runtime_fd, struct upstream_client **ret_client);
/* Drops running requests without a call. */
void upstream_client_free(struct upstream_client **client);

/* Posts BODY, JSON, to TARGET, a path with its query; without a body gets it. HEADERS: lines with a
 * NUL each and an empty one at the end; NULL: those of our own account. FN is called from
 * upstream_client_run(), once; of a large answer to a get it has the beginning. */
int upstream_client_ask(struct upstream_client *client, const char *target, const char *headers,
	struct bytes body, upstream_answer_fn *fn, void *context);

/* Allows requests of our own account: with a token file, read for each request, and a certificate
 * with its key. NULL: none. */
int upstream_client_set_own(struct upstream_client *client, const char *token_file,
	const char *certificate, const char *key);

/* Works on the requests. Returns after TIMEOUT_MS, the end of a request, or upstream_client_wake()
 * from any thread. */
void upstream_client_run(struct upstream_client *client, int timeout_ms);
void upstream_client_wake(struct upstream_client *client);

#endif
