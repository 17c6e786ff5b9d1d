/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base64 of the standard alphabet with padding, as the *-data keys of a kubeconfig hold it. Line
 * breaks may stand anywhere; nothing else may (kubectl's decoder takes exactly this).
 */
#ifndef REFLECTOR_BASE64_H
#define REFLECTOR_BASE64_H

#include "common/bytes.h"

/* The caller frees RET_DATA, which has a NUL behind its RET_SIZE bytes. ERR_SYNTAX with the offset
 * (never with the text: it may be a secret), -ENOMEM. */
int base64_decode(struct bytes text, char **ret_data, size_t *ret_size);

#endif
