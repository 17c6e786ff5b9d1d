/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/command/part.h"

#include "common/err.h"
#include "common/json.h"

int part_bytes(const struct value *value, struct bytes *ret_document)
{
	bool nested = value->type == VALUE_ARRAY || value->type == VALUE_MAP;
	const uint8_t *end = value->start + value->size;
	size_t size;

	if (nested && value->inner.data)
		end = (const uint8_t *)value->inner.data + value->inner.size;
	int r = value_size(BYTES(value->start, (size_t)(end - value->start)), &size);
	if (r == 0)
		*ret_document = BYTES(value->start, size);
	return r;
}

int part_text(const struct value *value, struct buf *out)
{
	char scratch[VALUE_SCRATCH];
	struct bytes text;
	int r = value_scalar_text(value, scratch, &text);

	if (r == NOT_FOUND) {
		r = part_bytes(value, &text);
		return r < 0 ? r : json_write(text, 0, out);
	}
	if (r < 0)
		return r;
	buf_bytes_put(out, text);
	return buf_error(out);
}
