/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/table/display.h"

#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/json.h"

int display_document(const struct value *value, struct bytes *ret_document)
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

int display_text(const struct value *value, struct buf *out)
{
	char scratch[VALUE_SCRATCH];
	struct bytes text;
	int r = value_scalar_text(value, scratch, &text);

	if (r == NOT_FOUND) {
		r = display_document(value, &text);
		return r < 0 ? r : json_write(text, 0, out);
	}
	if (r < 0)
		return r;
	buf_bytes_put(out, text);
	return buf_error(out);
}

void display_bytes(struct bytes text, struct buf *out)
{
	const uint8_t *p = text.data;

	for (size_t i = 0; i < text.size; i++) {
		bool control = p[i] < ' ' || p[i] == 0x7f;

		if (control)
			buf_byte(out, '^');
		buf_byte(out, control ? p[i] ^ 0x40 : p[i]);
	}
}

int display_line(const struct value *value, struct buf *out)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	int r = display_text(value, &text);

	if (r < 0)
		return r;
	display_bytes(buf_bytes(&text), out);
	return buf_error(out);
}
