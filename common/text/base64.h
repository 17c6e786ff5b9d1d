/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base64 in Kubernetes' two forms: the standard alphabet with padding (the *-data keys of a
 * kubeconfig, basic authentication), and the URL alphabet without padding (continue tokens).
 */
#ifndef COMMON_TEXT_BASE64_H
#define COMMON_TEXT_BASE64_H

#include "common/buf.h"
#include "common/bytes.h"

/* Decodes the standard form; ignores line breaks as kubectl's decoder does. The caller frees
 * RET_DATA; a NUL follows its RET_SIZE bytes. Returns: 0, -ENOMEM, ERR_SYNTAX with the offset
 * (without the text: it may be secret). */
int base64_decode(struct bytes text, char **ret_data, size_t *ret_size);
void base64_put(struct bytes data, struct buf *out);

/* The URL form. base64url_get() returns 0, ERR_SYNTAX, or the error of OUT. */
void base64url_put(struct bytes data, struct buf *out);
int base64url_get(const char *text, struct buf *out);

#endif
