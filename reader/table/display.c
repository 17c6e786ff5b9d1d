/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/table/display.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/json.h"

int display_text(const struct value *value, struct buf *out)
{
	char scratch[VALUE_SCRATCH];
	struct bytes text;
	int r = value_scalar_text(value, scratch, &text);

	if (r == NOT_FOUND) {
		r = value_document(value, &text);
		return r < 0 ? r : json_write(text, 0, out);
	}
	if (r < 0)
		return r;
	buf_bytes_put(out, text);
	return buf_error(out);
}

/* ---- values with sorted keys ---- */

struct display_member {
	struct bytes key;
	struct value value;
};

/* How a notation writes maps, lists and what is in them. */
struct display_notation {
	const char *map, *map_end, *list, *list_end, *between, *null;
	bool quotes;
};

static int display_compare_members(const void *a, const void *b)
{
	const struct display_member *x = a, *y = b;

	return bytes_compare(x->key, y->key);
}

static int display_nested(
	const struct display_notation *notation, const struct value *value, struct buf *out);

static int display_one(
	const struct display_notation *notation, const struct value *value, struct buf *out)
{
	char scratch[VALUE_SCRATCH];
	struct bytes text;

	if (value->type == VALUE_ARRAY || value->type == VALUE_MAP)
		return display_nested(notation, value, out);
	if (value->type == VALUE_NIL) {
		buf_str(out, notation->null);
	} else if (value_scalar_text(value, scratch, &text) == FOUND) {
		if (notation->quotes && value->type == VALUE_STRING)
			json_write_string(text, out);
		else
			buf_bytes_put(out, text);
	}
	return buf_error(out);
}

static int display_members(const struct display_notation *notation, struct display_member *members,
	size_t n, struct buf *out)
{
	qsort(members, n, sizeof(*members), display_compare_members);
	for (size_t i = 0; i < n; i++) {
		buf_str(out, i ? notation->between : "");
		if (notation->quotes)
			json_write_string(members[i].key, out);
		else
			buf_bytes_put(out, members[i].key);
		buf_byte(out, ':');
		int r = display_one(notation, &members[i].value, out);
		if (r < 0)
			return r;
	}
	return buf_error(out);
}

static int display_nested(
	const struct display_notation *notation, const struct value *value, struct buf *out)
{
	AUTO_FREE struct display_member *members = NULL;
	struct display_member member;
	size_t n = 0, room = 0;
	struct value_iter iter;
	bool is_map = value->type == VALUE_MAP;
	int r;

	value_iter_init(&iter, value);
	buf_str(out, is_map ? notation->map : notation->list);
	for (bool more = false; (r = value_iter_next(&iter, &member.key, &member.value)) == FOUND;
		more = true) {
		if (is_map) {
			r = ARRAY_ADD(members, n, room, member, "the members of a map");
		} else {
			buf_str(out, more ? notation->between : "");
			r = display_one(notation, &member.value, out);
		}
		if (r < 0)
			return r;
	}
	if (r >= 0 && n)
		r = display_members(notation, members, n, out);
	buf_str(out, is_map ? notation->map_end : notation->list_end);
	return r < 0 ? r : buf_error(out);
}

int display_sorted(const struct value *value, struct buf *out)
{
	static const struct display_notation json = {"{", "}", "[", "]", ",", "null", true};

	if (value->type == VALUE_STRING) {
		buf_bytes_put(out, value->text);
		return buf_error(out);
	}
	return display_one(&json, value, out);
}

int display_go(const struct value *value, struct buf *out)
{
	static const struct display_notation go = {"map[", "]", "[", "]", " ", "<nil>", false};
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	int r = display_one(&go, value, &text);

	if (r < 0)
		return r;
	display_bytes(buf_bytes(&text), out);
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
