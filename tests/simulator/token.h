/* SPDX-License-Identifier: Apache-2.0 */
/* Continue tokens, as kube-apiserver's: unpadded base64url of {"v","rv","start"}. */
#ifndef SIMULATOR_TOKEN_H
#define SIMULATOR_TOKEN_H

#include "common/buf.h"

#define TOKEN_LATEST -1 /* rv of a replacement token: go on in the current state */

/* START: the last key of the page, relative to the list's scope. */
void token_put(struct buf *out, int64_t rv, const char *start);

/* NULL, or what is wrong with it, in the API server's words (static text). RET_START gets the key,
 * relative to the scope. */
const char *token_parse(const char *text, int64_t *ret_rv, struct buf *ret_start);

#endif
