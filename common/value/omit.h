/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of a document without one of its members. */
#ifndef COMMON_VALUE_OMIT_H
#define COMMON_VALUE_OMIT_H

#include "common/value/value.h"

/* Appends DOCUMENT without the member OUTER.KEY. Returns: FOUND; NOT_FOUND: no such member, nothing
 * appended; ERR_CORRUPT, -ENOMEM. */
int omit_member(struct bytes document, const char *outer, const char *key, struct buf *out);

#endif
