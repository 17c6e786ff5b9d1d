/* SPDX-License-Identifier: Apache-2.0 */
/* Writes stored bodies as JSON: the half of json.h that needs no C++. */
#include "common/value/json.h"

#include "common/err.h"
#include "common/value/value.h"

/* ---- strings ---- */

/* Says how Go's encoding/json writes an ASCII character: as it is (0), \uXXXX ('u'), or a short
 * escape. 0xe2 begins U+2028 and U+2029, which are escaped also. */
static const char json_escapes[256] = {
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

/* Writes the escape for the character at P. Returns how many bytes of the text it stands for. */
static size_t json_put_escape(struct buf *out, const uint8_t *p, const uint8_t *end)
{
	static const char hex[] = "0123456789abcdef";

	switch (json_escapes[*p]) {
	case 'u':
		buf_put(out, (char[]){'\\', 'u', '0', '0', hex[*p >> 4], hex[*p & 15]}, 6);
		return 1;
	case 'e':
		if (end - p >= 3 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9)) {
			buf_str(out, p[2] == 0xa8 ? "\\u2028" : "\\u2029");
			return 3;
		}
		buf_byte(out, *p);
		return 1;
	default:
		buf_put(out, (char[]){'\\', json_escapes[*p]}, 2);
		return 1;
	}
}

static const uint8_t *json_next_escape(const uint8_t *p, const uint8_t *end)
{
	while (p < end && !json_escapes[*p])
		p++;
	return p;
}

void json_write_string(struct bytes text, struct buf *out)
{
	const uint8_t *p = text.data, *end = p + text.size;
	const uint8_t *escape = json_next_escape(p, end);

	/* Most strings have no escape and are put in one piece. */
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
		p = escape + json_put_escape(out, escape, end);
		escape = json_next_escape(p, end);
		buf_put(out, p, (size_t)(escape - p));
	}
	buf_byte(out, '"');
}

/* ---- documents ---- */

struct json_level {
	uint64_t left; /* items to come; a pair is two */
	bool is_map;
	bool is_first;
};

struct json_writer {
	struct buf *out;
	int indent;
	size_t depth;
	struct json_level levels[VALUE_DEPTH_MAX + 1]; /* level 0 holds the document itself */
};

static int json_corrupt(const char *what)
{
	return err_set(ERR_CORRUPT, "stored value: %s", what);
}

static void json_new_line(struct json_writer *writer)
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

static int json_put_item(struct json_writer *writer, const struct value *item)
{
	char scratch[VALUE_SCRATCH];
	bool is_map = item->type == VALUE_MAP;
	struct bytes text;

	switch (item->type) {
	case VALUE_STRING:
		json_write_string(item->text, writer->out);
		return 0;
	case VALUE_ARRAY:
	case VALUE_MAP:
		if (item->count == 0) {
			buf_str(writer->out, is_map ? "{}" : "[]");
			return 0;
		}
		if (writer->depth == VALUE_DEPTH_MAX)
			return json_corrupt("nested too deep");
		buf_byte(writer->out, is_map ? '{' : '[');
		writer->levels[++writer->depth] =
			(struct json_level){.left = (uint64_t)item->count << is_map,
				.is_map = is_map,
				.is_first = true};
		return 0;
	case VALUE_NIL:
		buf_str(writer->out, "null");
		return 0;
	case VALUE_NUMBER:
		if (!number_is_valid(item->text))
			return json_corrupt("a number that is not one");
		buf_bytes_put(writer->out, item->text);
		return 0;
	default:
		(void)value_scalar_text(item, scratch, &text); /* a scalar always has one */
		buf_bytes_put(writer->out, text);
		return 0;
	}
}

/* Writes the next item of the document, the separator before it, and the ends of the containers
 * that end with it. */
static int json_put_next(struct json_writer *writer, struct bytes *document)
{
	struct json_level *level = &writer->levels[writer->depth];
	bool is_key = level->is_map && level->left % 2 == 0;
	struct value item;
	int r = value_read(*document, &item);

	if (r < 0)
		return r;
	if (is_key && item.type != VALUE_STRING)
		return json_corrupt("a key that is no string");
	*document = BYTES((const uint8_t *)document->data + item.size, document->size - item.size);
	if (level->is_map && !is_key) {
		buf_put(writer->out, ": ", writer->indent ? 2 : 1);
	} else {
		if (!level->is_first)
			buf_byte(writer->out, ',');
		if (writer->depth > 0)
			json_new_line(writer);
		level->is_first = false;
	}
	level->left--;
	r = json_put_item(writer, &item);
	while (r == 0 && writer->depth > 0 && writer->levels[writer->depth].left == 0) {
		bool is_map = writer->levels[writer->depth].is_map;
		writer->depth--;
		json_new_line(writer);
		buf_byte(writer->out, is_map ? '}' : ']');
	}
	return r;
}

int json_write(struct bytes document, int indent, struct buf *out)
{
	struct json_writer writer = {
		.out = out, .indent = indent, .levels[0] = {.left = 1, .is_first = true}};
	size_t before = out->size;
	int r = 0;

	while (r == 0 && writer.levels[0].left + writer.depth > 0)
		r = json_put_next(&writer, &document);
	if (r == 0 && document.size)
		r = json_corrupt("bytes after the end");
	if (r == 0)
		r = buf_error(out);
	if (r < 0 && out->size > before)
		buf_truncate(out, before);
	return r;
}
