/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Continue tokens in the API server's bytes (docs/protocol.md 6): base64url of
 * {"v":"meta.k8s.io/v1","rv":RV,"start":"KEY\u0000"}. A list may go on at another kinf-serve, or at
 * the API server. KEY is relative to the list: the name in a namespace, else namespace/name, with
 * or without a slash before it.
 */
#ifndef SERVE_API_API_TOKEN_H
#define SERVE_API_API_TOKEN_H

#include "common/buf.h"
#include "serve/api/api_status.h"

struct api_token {
	int64_t rv; /* -1: of the newest state */
	struct buf
		from; /* the first key wanted: the last one given and a NUL mostly, without a slash
			    before */
};

/* Reads TEXT. Returns: 0; 400 with STATUS; -ENOMEM. Free with api_token_release() in any case. */
int api_token_parse(const char *text, struct api_token *ret_token, struct api_status *status);
void api_token_release(struct api_token *token);

/* Appends the token of the page from START on, as `from`. */
int api_token_write(int64_t rv, struct bytes start, struct buf *out);

#endif
