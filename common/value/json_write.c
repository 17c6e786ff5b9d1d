/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/json.h"

#include "common/err.h"
#include "common/value/value.h"

/* ---- strings ---- */

/* How Go's encoding/json writes an ASCII character: as it is (0), \uXXXX ('u'), or a short escape.
 * 0xe2 begins U+2028 and U+2029, which are escaped too. */
static const char escapes[256] = {
	[0x00 ... 0x07] = 'u',
	['\b'] = 'b',
	['\t'] = 't',
	['\n'] = 'n',
	[0x0b] = 'u',
	['\f'] = 'f',
	['\r'] = 'r',
	[0x0e ... 0x1f] = 'u',
	['"'] = '"',
	['\\'] = '\\',
	['<'] = 'u',
	['>'] = 'u',
	['&'] = 'u',
	[0xe2] = 'e',
};

static bool is_line_separator(const uint8_t *p, const uint8_t *end)
{
	return end - p >= 3 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9);
}

/* Writes the escape for what is at P; returns how much of the text that was. */
static size_t put_escape(struct buf *out, const uint8_t *p, const uint8_t *end)
{
	static const char hex[] = "0123456789abcdef";

	switch (escapes[*p]) {
	case 'u':
		buf_put(out, (char[]){'\\', 'u', '0', '0', hex[*p >> 4], hex[*p & 15]}, 6);
		return 1;
	case 'e':
		if (is_line_separator(p, end)) {
			buf_str(out, p[2] == 0xa8 ? "\\u2028" : "\\u2029");
			return 3;
		}
		buf_byte(out, *p);
		return 1;
	default:
		buf_put(out, (char[]){'\\', escapes[*p]}, 2);
		return 1;
	}
}

static const uint8_t *next_escape(const uint8_t *p, const uint8_t *end)
{
	while (p < end && !escapes[*p])
		p++;
	return p;
}

void json_write_string(struct bytes text, struct buf *out)
{
	const uint8_t *p = text.data, *end = p + text.size;
	const uint8_t *escape = next_escape(p, end);

	/* Most have none: one piece. */
	uint8_t *to = buf_grow(out, (size_t)(escape - p) + (escape == end ? 2 : 1));
	if (!to)
		return;
	*to++ = '"';
	if (escape > p)
		memcpy(to, p, (size_t)(escape - p));
	if (escape == end) {
		to[escape - p] = '"';
		return;
	}
	while (escape < end) {
		p = escape + put_escape(out, escape, end);
		escape = next_escape(p, end);
		buf_put(out, p, (size_t)(escape - p));
	}
	buf_byte(out, '"');
}

/* ---- documents ---- */

struct level {
	uint64_t left; /* items to come; a pair is two */
	bool is_map;
	bool is_first;
};

struct writer {
	struct buf *out;
	int indent;
	size_t depth;
	struct level levels[VALUE_DEPTH_MAX + 1]; /* the lowest holds the document itself */
};

static int corrupt(const char *what)
{
	return err_set(ERR_CORRUPT, "stored value: %s", what);
}

static void new_line(struct writer *writer)
{
	if (!writer->indent)
		return;
	size_t size = writer->depth * (size_t)writer->indent;
	char *p = buf_grow(writer->out, size + 1);
	if (!p)
		return;
	*p = '\n';
	memset(p + 1, ' ', size);
}

static bool next_is_key(const struct writer *writer)
{
	const struct level *level = &writer->levels[writer->depth];

	return level->is_map && level->left % 2 == 0;
}

/* What stands between the item before and this one. */
static void put_separator(struct writer *writer)
{
	struct level *level = &writer->levels[writer->depth];

	if (level->is_map && level->left % 2 != 0) {
		buf_put(writer->out, ": ", writer->indent ? 2 : 1);
		return;
	}
	if (!level->is_first)
		buf_byte(writer->out, ',');
	if (writer->depth > 0)
		new_line(writer);
	level->is_first = false;
}

static int open_level(struct writer *writer, const struct value *item)
{
	bool is_map = item->type == VALUE_MAP;

	if (item->count == 0) {
		buf_str(writer->out, is_map ? "{}" : "[]");
		return 0;
	}
	if (writer->depth == VALUE_DEPTH_MAX)
		return corrupt("nested too deep");
	buf_byte(writer->out, is_map ? '{' : '[');
	writer->depth++;
	writer->levels[writer->depth] = (struct level){
		.left = (uint64_t)item->count << is_map, .is_map = is_map, .is_first = true};
	return 0;
}

static void close_levels(struct writer *writer)
{
	while (writer->depth > 0 && writer->levels[writer->depth].left == 0) {
		bool is_map = writer->levels[writer->depth].is_map;
		writer->depth--;
		new_line(writer);
		buf_byte(writer->out, is_map ? '}' : ']');
	}
}

static int put_item(struct writer *writer, const struct value *item)
{
	char scratch[VALUE_SCRATCH];
	struct bytes text;

	switch (item->type) {
	case VALUE_STRING:
		json_write_string(item->text, writer->out);
		return 0;
	case VALUE_ARRAY:
	case VALUE_MAP:
		return open_level(writer, item);
	case VALUE_NIL:
		buf_str(writer->out, "null");
		return 0;
	case VALUE_NUMBER:
		if (!number_is_valid(item->text))
			return corrupt("a number that is none");
		buf_bytes_put(writer->out, item->text);
		return 0;
	default:
		(void)value_scalar_text(item, scratch, &text); /* a scalar always has one */
		buf_bytes_put(writer->out, text);
		return 0;
	}
}

/* Writes the next item of the document and closes the containers that end with it. */
static int put_next(struct writer *writer, struct bytes *document)
{
	struct value item;
	bool is_key = next_is_key(writer);

	if (value_read(*document, &item) < 0)
		return ERR_CORRUPT;
	if (is_key && item.type != VALUE_STRING)
		return corrupt("a key that is no string");
	*document = BYTES((const uint8_t *)document->data + item.size, document->size - item.size);
	put_separator(writer);
	writer->levels[writer->depth].left--;
	int r = put_item(writer, &item);
	if (r == 0)
		close_levels(writer);
	return r;
}

int json_write(struct bytes document, int indent, struct buf *out)
{
	struct writer writer = {
		.out = out, .indent = indent, .levels[0] = {.left = 1, .is_first = true}};
	size_t before = out->size;
	int r = 0;

	while (r == 0 && writer.levels[0].left + writer.depth > 0)
		r = put_next(&writer, &document);
	if (r == 0 && document.size)
		r = corrupt("bytes behind the end");
	if (r == 0)
		r = buf_error(out);
	if (r < 0 && out->size > before)
		buf_truncate(out, before);
	return r;
}
