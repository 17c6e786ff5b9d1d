/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/protobuf.h"

/* runtime.Unknown, after the magic. */
#define OBJECT_MAGIC BYTES("k8s\0", 4)
#define UNKNOWN_TYPE 1
#define UNKNOWN_RAW  2

static bool protobuf_varint(struct bytes *rest, uint64_t *ret_number)
{
	const uint8_t *p = rest->data;

	*ret_number = 0;
	for (size_t i = 0; i < rest->size && i < 10; i++) {
		*ret_number |= (uint64_t)(p[i] & 0x7f) << (7 * i);
		if (!(p[i] & 0x80)) {
			*rest = BYTES(p + i + 1, rest->size - i - 1);
			return true;
		}
	}
	return false;
}

/* Takes a field of MESSAGE: its bytes, those of a cut message as far as they have come, or its
 * number. Returns whether there is one. */
static bool protobuf_next(
	struct bytes *message, uint64_t *ret_tag, struct bytes *ret_value, uint64_t *ret_number)
{
	size_t size = 0;

	if (!protobuf_varint(message, ret_tag))
		return false;
	switch (*ret_tag & 7) {
	case 0:
		*ret_value = BYTES_NONE;
		return protobuf_varint(message, ret_number);
	case 1:
		size = 8;
		break;
	case 2:
		if (!protobuf_varint(message, ret_number))
			return false;
		size = *ret_number < message->size ? (size_t)*ret_number : message->size;
		break;
	case 5:
		size = 4;
		break;
	default:
		return false;
	}
	if (size > message->size)
		return false;
	*ret_value = BYTES(message->data, size);
	*message = BYTES((const uint8_t *)message->data + size, message->size - size);
	return true;
}

bool protobuf_field(struct bytes message, uint64_t wanted, struct bytes *ret_value)
{
	uint64_t tag, number;

	while (protobuf_next(&message, &tag, ret_value, &number))
		if (tag == (wanted << 3 | 2))
			return true;
	return false;
}

uint64_t protobuf_number(struct bytes message, uint64_t wanted)
{
	uint64_t tag, number;
	struct bytes value;

	while (protobuf_next(&message, &tag, &value, &number))
		if (tag == wanted << 3)
			return number;
	return 0;
}

bool protobuf_object(struct bytes text, struct bytes *ret_type, struct bytes *ret_raw)
{
	if (!bytes_starts(text, OBJECT_MAGIC))
		return false;
	text = BYTES((const uint8_t *)text.data + 4, text.size - 4);
	return protobuf_field(text, UNKNOWN_TYPE, ret_type) &&
	       protobuf_field(text, UNKNOWN_RAW, ret_raw);
}
