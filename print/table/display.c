/* SPDX-License-Identifier: Apache-2.0 */
#include "print/table/display.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/text.h"
#include "common/value/json.h"

int display_scalar(const struct value *value, char *scratch, struct bytes *ret_text)
{
	struct number number;

	if (!value_number(value, &number))
		return value_scalar_text(value, scratch, ret_text);
	*ret_text =
		BYTES(scratch, number.form == NUMBER_INT ? number_format_int(number.u.i, scratch)
							 : number_format_go(number.u.d, scratch));
	return FOUND;
}

/* The text of a number within JSON, as Go's encoding/json writes it. */
static int display_json_scalar(const struct value *value, char *scratch, struct bytes *ret_text)
{
	struct number number;

	if (!value_number(value, &number))
		return value_scalar_text(value, scratch, ret_text);
	*ret_text = BYTES(scratch, number.form == NUMBER_INT
					   ? number_format_int(number.u.i, scratch)
					   : number_format_double(number.u.d, scratch));
	return FOUND;
}

/* ---- values with sorted keys -------------------------------------------- */

struct display_member {
	struct bytes key;
	struct value value;
};

/* A notation of maps, lists and scalars. */
struct display_notation {
	const char *map, *map_end, *list, *list_end, *between, *null;
	int (*scalar)(const struct value *value, char *scratch, struct bytes *ret_text);
	bool quotes;
	unsigned indent; /* of each level; 0: all is one line */
};

static int display_compare_members(const void *a, const void *b)
{
	const struct display_member *x = a, *y = b;

	return bytes_compare(x->key, y->key);
}

/* A notation, the output, and how many maps and lists are open in it. */
struct display_writer {
	const struct display_notation *notation;
	unsigned level;
	struct buf *out;
};

static int display_nested(struct display_writer *writer, const struct value *value);

static int display_one(struct display_writer *writer, const struct value *value)
{
	const struct display_notation *notation = writer->notation;
	char scratch[VALUE_SCRATCH];
	struct bytes text;

	if (value->type == VALUE_ARRAY || value->type == VALUE_MAP)
		return display_nested(writer, value);
	if (value->type == VALUE_NIL) {
		buf_str(writer->out, notation->null);
	} else if (notation->scalar(value, scratch, &text) == FOUND) {
		if (notation->quotes && value->type == VALUE_STRING)
			json_write_string(text, writer->out);
		else
			buf_bytes_put(writer->out, text);
	}
	return buf_error(writer->out);
}

/* Begins a line, if the notation has lines. */
static void display_break(const struct display_writer *writer)
{
	unsigned indent = writer->notation->indent;

	if (indent)
		buf_printf(writer->out, "\n%*s", (int)(writer->level * indent), "");
}

static int display_members(struct display_writer *writer, struct display_member *members, size_t n)
{
	const struct display_notation *notation = writer->notation;

	qsort(members, n, sizeof(*members), display_compare_members);
	for (size_t i = 0; i < n; i++) {
		buf_str(writer->out, i ? notation->between : "");
		display_break(writer);
		if (notation->quotes)
			json_write_string(members[i].key, writer->out);
		else
			buf_bytes_put(writer->out, members[i].key);
		buf_str(writer->out, notation->indent ? ": " : ":");
		int r = display_one(writer, &members[i].value);
		if (r < 0)
			return r;
	}
	return buf_error(writer->out);
}

static int display_nested(struct display_writer *writer, const struct value *value)
{
	const struct display_notation *notation = writer->notation;
	AUTO_FREE struct display_member *members = NULL;
	struct display_member member;
	size_t n = 0, room = 0;
	struct value_iter iter;
	bool is_map = value->type == VALUE_MAP, more = false;
	int r;

	value_iter_init(&iter, value);
	buf_str(writer->out, is_map ? notation->map : notation->list);
	writer->level++;
	for (; (r = value_iter_next(&iter, &member.key, &member.value)) == FOUND; more = true) {
		if (is_map) {
			r = ARRAY_ADD(members, n, room, member, "the members of a map");
		} else {
			buf_str(writer->out, more ? notation->between : "");
			display_break(writer);
			r = display_one(writer, &member.value);
		}
		if (r < 0)
			return r;
	}
	if (r >= 0 && n)
		r = display_members(writer, members, n);
	writer->level--;
	if (more)
		display_break(writer);
	buf_str(writer->out, is_map ? notation->map_end : notation->list_end);
	return r < 0 ? r : buf_error(writer->out);
}

int display_json(const struct value *value, unsigned indent, unsigned level, struct buf *out)
{
	const struct display_notation json = {
		"{", "}", "[", "]", ",", "null", display_json_scalar, true, indent};
	struct display_writer writer = {&json, level, out};

	return display_one(&writer, value);
}

int display_sorted(const struct value *value, struct buf *out)
{
	char scratch[VALUE_SCRATCH];
	struct bytes text;

	if (value->type == VALUE_NIL || display_scalar(value, scratch, &text) != FOUND)
		return display_json(value, 0, 0, out);
	buf_bytes_put(out, text);
	return buf_error(out);
}

int display_go(const struct value *value, struct buf *out)
{
	static const struct display_notation go = {
		"map[", "]", "[", "]", " ", "<nil>", display_scalar, false, 0};
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	struct display_writer writer = {&go, 0, &text};
	int r = display_one(&writer, value);

	if (r < 0)
		return r;
	display_bytes(buf_bytes(&text), out);
	return buf_error(out);
}

void display_bytes(struct bytes text, struct buf *out)
{
	const uint8_t *p = text.data;

	for (size_t at = 0; at < text.size;) {
		size_t plain = text_plain(BYTES(p + at, text.size - at));

		buf_put(out, p + at, plain);
		at += plain;
		if (at < text.size)
			at += text_put_visible(BYTES(p + at, text.size - at), out);
	}
}

int display_line(const struct value *value, struct buf *out)
{
	CLEANUP(buf_release) struct buf json = BUF_INIT;
	char scratch[VALUE_SCRATCH];
	struct bytes text;
	int r = value_scalar_text(value, scratch, &text);

	if (r == NOT_FOUND) { /* a map or a list */
		r = value_document(value, &text);
		if (r == 0)
			r = json_write(text, 0, &json);
		text = buf_bytes(&json);
	}
	if (r < 0)
		return r;
	display_bytes(text, out);
	return buf_error(out);
}
