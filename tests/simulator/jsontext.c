/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/jsontext.h"

#include "common/cleanup.h"
#include "common/value/json.h"
#include "tests/simulator/memory.h"

static char jsontext_at(struct bytes text, size_t pos)
{
	return pos < text.size ? ((const char *)text.data)[pos] : '\0';
}

static size_t jsontext_skip_blanks(struct bytes text, size_t pos)
{
	while (pos < text.size && strchr(" \t\r\n", jsontext_at(text, pos)) &&
		jsontext_at(text, pos))
		pos++;
	return pos;
}

/* POS is at the opening quote. Returns the position after the closing one. */
static size_t jsontext_skip_string(struct bytes text, size_t pos)
{
	for (pos++; pos < text.size && jsontext_at(text, pos) != '"'; pos++)
		if (jsontext_at(text, pos) == '\\')
			pos++;
	return pos < text.size ? pos + 1 : text.size;
}

static size_t jsontext_skip_container(struct bytes text, size_t pos)
{
	size_t depth = 0;

	while (pos < text.size) {
		char c = jsontext_at(text, pos);

		if (c == '"') {
			pos = jsontext_skip_string(text, pos);
			continue;
		}
		pos++;
		if (c == '{' || c == '[')
			depth++;
		else if ((c == '}' || c == ']') && --depth == 0)
			break;
	}
	return pos;
}

static size_t jsontext_skip_value(struct bytes text, size_t pos)
{
	char c = jsontext_at(text, pos);

	if (c == '"')
		return jsontext_skip_string(text, pos);
	if (c == '{' || c == '[')
		return jsontext_skip_container(text, pos);
	while (pos < text.size && !strchr(" \t\r\n,:]}", jsontext_at(text, pos)))
		pos++;
	return pos;
}

static struct bytes jsontext_slice(struct bytes text, size_t begin, size_t end)
{
	return BYTES((const char *)text.data + begin, end - begin);
}

void jsontext_iter_init(struct jsontext_iter *iter, struct bytes text)
{
	size_t pos = jsontext_skip_blanks(text, 0);
	char c = jsontext_at(text, pos);

	*iter = (struct jsontext_iter){.text = text,
		.pos = c == '{' || c == '[' ? pos + 1 : text.size,
		.is_object = c == '{'};
}

bool jsontext_iter_next(struct jsontext_iter *iter, struct jsontext_member *ret_member)
{
	struct bytes text = iter->text, key = BYTES_NONE;
	size_t pos = jsontext_skip_blanks(text, iter->pos);

	if (jsontext_at(text, pos) == ',')
		pos = jsontext_skip_blanks(text, pos + 1);
	if (pos >= text.size || jsontext_at(text, pos) == '}' || jsontext_at(text, pos) == ']')
		return false;

	size_t begin = pos;

	if (iter->is_object) {
		size_t end = jsontext_skip_value(text, pos);

		if (jsontext_at(text, pos) != '"' || end < pos + 2)
			return false;
		key = jsontext_slice(text, pos + 1, end - 1);
		pos = jsontext_skip_blanks(text, end);
		if (jsontext_at(text, pos) != ':')
			return false;
		pos = jsontext_skip_blanks(text, pos + 1);
	}
	iter->pos = jsontext_skip_value(text, pos);
	*ret_member = (struct jsontext_member){.key = key,
		.value = jsontext_slice(text, pos, iter->pos),
		.begin = begin,
		.end = iter->pos};
	return iter->pos > pos;
}

static bool jsontext_find(struct bytes object, struct bytes key, struct jsontext_member *ret_member)
{
	struct jsontext_iter iter;

	jsontext_iter_init(&iter, object);
	while (iter.is_object && jsontext_iter_next(&iter, ret_member))
		if (bytes_equal(ret_member->key, key))
			return true;
	return false;
}

struct bytes jsontext_get(struct bytes object, const char *key)
{
	struct jsontext_member member;

	for (;;) {
		size_t length = strcspn(key, ".");

		if (!jsontext_find(object, BYTES(key, length), &member))
			return BYTES_NONE;
		if (!key[length])
			return member.value;
		object = member.value;
		key += length + 1;
	}
}

bool jsontext_single(struct bytes text, struct bytes *ret_value)
{
	size_t begin = jsontext_skip_blanks(text, 0), end = jsontext_skip_value(text, begin);

	*ret_value = jsontext_slice(text, begin, end);
	return end > begin && jsontext_skip_blanks(text, end) == text.size;
}

void jsontext_unescape(struct bytes value, struct buf *out)
{
	size_t size;

	if (value.size < 2 || jsontext_at(value, 0) != '"') {
		buf_bytes_put(out, value);
		return;
	}
	struct bytes raw = jsontext_slice(value, 1, value.size - 1);
	uint8_t *room = memory_take(raw.size + 1);

	if (json_unescape(raw, room, raw.size, &size)) /* else malformed: it matches nothing */
		buf_put(out, room, size);
	free(room);
}

char *jsontext_dup(struct bytes value)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;

	if (!value.data)
		return NULL;
	jsontext_unescape(value, &text);
	return memory_text(buf_bytes(&text));
}

void jsontext_put_string(struct buf *out, struct bytes text)
{
	static const char plain[] = "\"\\\n\r\t\b\f", spelled[] = "\"\\nrtbf";

	buf_byte(out, '"');
	for (size_t i = 0; i < text.size; i++) {
		char c = jsontext_at(text, i);
		const char *short_form = c ? strchr(plain, c) : NULL;

		if (short_form)
			buf_printf(out, "\\%c", spelled[short_form - plain]);
		else if ((unsigned char)c < 0x20 || (c && strchr("<>&", c)))
			buf_printf(out, "\\u%04x", (unsigned char)c);
		else
			buf_byte(out, (uint8_t)c);
	}
	buf_byte(out, '"');
}

static bool jsontext_is_null(struct bytes value)
{
	return bytes_equal(value, BYTES_LIT("null"));
}

static void jsontext_put_key(struct buf *out, struct bytes key, bool *first)
{
	if (!*first)
		buf_byte(out, ',');
	*first = false;
	buf_byte(out, '"');
	buf_bytes_put(out, key);
	buf_str(out, "\":");
}

void jsontext_merge(struct bytes target, struct bytes patch, struct buf *out)
{
	struct jsontext_iter iter;
	struct jsontext_member member, other;
	bool first = true;

	jsontext_iter_init(&iter, patch);
	if (!iter.is_object) {
		buf_bytes_put(out, patch);
		return;
	}
	buf_byte(out, '{');
	jsontext_iter_init(&iter, target);
	while (iter.is_object && jsontext_iter_next(&iter, &member)) {
		bool patched = jsontext_find(patch, member.key, &other);

		if (patched && jsontext_is_null(other.value))
			continue;
		jsontext_put_key(out, member.key, &first);
		if (patched)
			jsontext_merge(member.value, other.value, out);
		else
			buf_bytes_put(out, member.value);
	}
	jsontext_iter_init(&iter, patch);
	while (jsontext_iter_next(&iter, &member)) {
		if (jsontext_find(target, member.key, &other) || jsontext_is_null(member.value))
			continue;
		jsontext_put_key(out, member.key, &first);
		jsontext_merge(BYTES_NONE, member.value, out);
	}
	buf_byte(out, '}');
}
