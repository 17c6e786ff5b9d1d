/* SPDX-License-Identifier: Apache-2.0 */
/* Plain words of YAML, as kubectl reads them: go-yaml with the words of YAML 1.1 (yes, 0644). */
#ifndef COMMON_VALUE_YAML_PLAIN_H
#define COMMON_VALUE_YAML_PLAIN_H

#include "common/buf.h"

/* Appends the value of TEXT as msgpack. */
void yaml_put_plain(struct buf *out, struct bytes text);
/* Returns true if that is a string. */
bool yaml_plain_is_string(struct bytes text);

#endif
