/* SPDX-License-Identifier: Apache-2.0 */
/* Continue tokens, as kube-apiserver's: unpadded base64url of {"v","rv","start"}. */
#ifndef SIMULATOR_TOKEN_H
#define SIMULATOR_TOKEN_H

#include "common/buf.h"

#define TOKEN_LATEST -1 /* rv of a replacement token: go on in the current state */

/* START: the last key of the page, relative to the list's scope. */
void token_put(struct buf *out, int64_t rv, const char *start);

/* False when it is no token: WRONG gets the reason in the API server's words. START gets the key,
 * relative to the scope. */
bool token_parse(const char *text, int64_t *ret_rv, struct buf *start, struct buf *wrong);

#endif
