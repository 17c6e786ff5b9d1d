/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads messages of protobuf, also the beginning of a cut one: a field of bytes then has those that
 * have come. The message is borrowed.
 */
#ifndef SERVE_API_PROTOBUF_H
#define SERVE_API_PROTOBUF_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"

/* Finds field WANTED, of bytes. */
bool protobuf_field(struct bytes message, uint64_t wanted, struct bytes *ret_value);
/* Returns whether field WANTED is a number other than 0. */
bool protobuf_is_set(struct bytes message, uint64_t wanted);
/* Takes an object of the API server apart: its metav1.TypeMeta, and its own message. */
bool protobuf_object(struct bytes text, struct bytes *ret_type, struct bytes *ret_raw);

#endif
