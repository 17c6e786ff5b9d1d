/* SPDX-License-Identifier: Apache-2.0 */
/* Continue tokens in the format of kube-apiserver: unpadded base64url of {"v","rv","start"}. */
#ifndef SIMULATOR_TOKEN_H
#define SIMULATOR_TOKEN_H

#include "common/buf.h"

/* the rv of a replacement token, continuing in the current state */
#define TOKEN_LATEST -1

/* Appends a token. START: the last key of the page, relative to the list's scope. */
void token_put(struct buf *out, int64_t rv, const char *start);

/* Parses a token. Appends the key, relative to the scope, to START. Returns false if TEXT is not a
 * token; WRONG then gets the reason in the words of kube-apiserver. */
bool token_parse(const char *text, int64_t *ret_rv, struct buf *start, struct buf *wrong);

#endif
