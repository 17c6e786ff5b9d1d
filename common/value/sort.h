/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a document as kubectl prints it: the members of each map in order, numbers as in the Go
 * programs of Kubernetes (an int64, else a double). kubectl's JSON has the order of bytes; its YAML
 * has go-yaml's, with runs of digits as numbers and letters last.
 */
#ifndef COMMON_VALUE_SORT_H
#define COMMON_VALUE_SORT_H

#include "common/buf.h"

enum value_order { VALUE_ORDER_JSON, VALUE_ORDER_YAML };

/* Appends DOCUMENT, one msgpack document, to OUT in ORDER; members of the same key keep theirs.
 * Numbers have the form of ORDER's writer. Returns: 0, ERR_CORRUPT, -ENOMEM or the error of OUT.
 * After an error OUT is as long as before. */
int value_sort(struct bytes document, enum value_order order, struct buf *out);

#endif
