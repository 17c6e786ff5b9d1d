/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the end of the body of the API server's answer. */
#include "serve/http/forward_internal.h"

size_t forward_body_take(struct forward_body *body, const uint8_t *bytes, size_t size,
	size_t *ret_data, size_t *ret_size)
{
	*ret_data = *ret_size = 0;
	switch (body->framing) {
	case FORWARD_BODILESS:
		return size ? SIZE_MAX : 0;
	case FORWARD_CHUNKED:
		return chunks_take(&body->chunks, bytes, size, ret_data, ret_size);
	case FORWARD_LENGTH:
		*ret_size = size < body->left ? size : (size_t)body->left;
		body->left -= *ret_size;
		return *ret_size;
	case FORWARD_UNTIL_END:
		*ret_size = size;
		return size;
	}
	return SIZE_MAX;
}

bool forward_body_ended(const struct forward_body *body)
{
	return body->framing == FORWARD_BODILESS ||
	       (body->framing == FORWARD_LENGTH && body->left == 0) ||
	       (body->framing == FORWARD_CHUNKED && chunks_ended(&body->chunks));
}
