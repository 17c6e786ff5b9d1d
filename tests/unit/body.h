/* SPDX-License-Identifier: Apache-2.0 */
/* Stored bodies of JSON. A text that can't be parsed fails the test. */
#ifndef UNIT_BODY_H
#define UNIT_BODY_H

#include "common/buf.h"

/* Appends the body of JSON to OUT. */
void body_put(const char *json, struct buf *out);
/* Returns it in a new buffer. */
struct buf body_of(const char *json);

#endif
