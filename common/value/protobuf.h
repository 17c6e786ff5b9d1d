/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads messages of protobuf, also the beginning of a cut one: a field of bytes then has those that
 * have come. The message is borrowed.
 */
#ifndef COMMON_VALUE_PROTOBUF_H
#define COMMON_VALUE_PROTOBUF_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"

/* Finds field WANTED, of bytes. */
bool protobuf_field(struct bytes message, uint64_t wanted, struct bytes *ret_value);
/* Returns field WANTED, a number; 0: there is none. */
uint64_t protobuf_number(struct bytes message, uint64_t wanted);
/* Takes an object of the API server apart: its metav1.TypeMeta, and its own message. */
bool protobuf_object(struct bytes text, struct bytes *ret_type, struct bytes *ret_raw);

#endif
