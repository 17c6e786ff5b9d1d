/* SPDX-License-Identifier: Apache-2.0 */
/* Writes stored bodies as JSON: the half of json.h that needs no C++. */
#include "common/value/json.h"

#include "common/err.h"
#include "common/value/value.h"

#define JSON_BLOCK 16 /* bytes that are looked at together */

typedef uint8_t json_block __attribute__((vector_size(JSON_BLOCK)));

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

/* Returns whether one of the first N characters of BLOCK, at least 1, needs an escape. */
static inline bool json_block_escapes(json_block block, size_t n)
{
	static const uint8_t masks[2 * JSON_BLOCK] = {[0 ... JSON_BLOCK - 1] = 0xff};
	json_block mask;
	uint64_t halves[2];

	memcpy(&mask, masks + JSON_BLOCK - n, sizeof(mask));
	/* '"' and '&' differ in one bit, '<' and '>' also. */
	mask &= (json_block)(block < 0x20) | (json_block)((block | 4) == '&') |
		(json_block)((block | 2) == '>') | (json_block)(block == '\\') |
		(json_block)(block == 0xe2);
	memcpy(halves, &mask, sizeof(halves));
	return halves[0] | halves[1];
}

/* Copies TEXT to TO as far as it needs no escape. Returns how many bytes that are. READABLE bytes can be
 * read from its beginning on. WIDE: a block more than its size can be written. */
static inline size_t json_copy(uint8_t *to, struct bytes text, size_t readable, bool wide)
{
	const uint8_t *p = text.data;
	json_block block;
	size_t n = 0;

	for (; text.size - n >= JSON_BLOCK; n += JSON_BLOCK) {
		memcpy(&block, p + n, sizeof(block));
		if (json_block_escapes(block, JSON_BLOCK))
			break;
		memcpy(to + n, &block, sizeof(block));
	}
	if (n < text.size && text.size - n < JSON_BLOCK && wide && readable - n >= JSON_BLOCK) {
		memcpy(&block, p + n, sizeof(block));
		memcpy(to + n, &block, sizeof(block));
		if (!json_block_escapes(block, text.size - n))
			return text.size;
	}
	for (; n < text.size && !json_escapes[p[n]]; n++)
		to[n] = p[n];
	return n;
}

/* Appends the rest of a string, which begins with an escape, and the quote after it. */
static void json_put_rest(struct bytes text, struct buf *out)
{
	const uint8_t *p = text.data, *end = p + text.size;

	while (p < end) {
		p += json_put_escape(out, p, end);
		const uint8_t *from = p;
		while (p < end && !json_escapes[*p])
			p++;
		buf_put(out, from, (size_t)(p - from));
	}
	buf_byte(out, '"');
}

void json_write_string(struct bytes text, struct buf *out)
{
	size_t before = out->size;
	uint8_t *to = buf_grow(out, text.size + 2);

	if (!to)
		return;
	*to++ = '"';
	size_t n = json_copy(to, text, text.size, false);
	if (n == text.size) { /* most have no escape */
		to[n] = '"';
		return;
	}
	buf_truncate(out, before + 1 + n);
	json_put_rest(BYTES((const uint8_t *)text.data + n, text.size - n), out);
}

/* ---- documents ---- */

struct json_level {
	uint64_t left; /* items to come; a pair is two */
	bool is_map;
	bool is_first;
};

struct json_writer {
	struct buf *out;
	uint8_t *to, *end; /* allocated room of OUT, which does not know yet how much of it is used */
	int indent;
	size_t depth;
	struct json_level levels[VALUE_DEPTH_MAX + 1]; /* level 0 holds the document itself */
};

static int json_corrupt(const char *what)
{
	return err_set(ERR_CORRUPT, "stored value: %s", what);
}

/* Tells OUT what was written. */
static void json_flush(struct json_writer *w)
{
	if (w->to)
		buf_truncate(w->out, (size_t)(w->to - w->out->data));
}

/* Goes on behind what OUT has. */
static void json_resume(struct json_writer *w)
{
	size_t used = w->out->size, spare = buf_spare(w->out);

	(void)buf_grow(w->out, spare);
	w->to = w->out->data ? w->out->data + used : NULL;
	w->end = w->to + spare;
}

static __attribute__((noinline)) bool json_make_room(struct json_writer *w, size_t size)
{
	json_flush(w);
	size_t used = w->out->size;
	bool ok = buf_grow(w->out, size) != NULL;

	if (ok)
		buf_truncate(w->out, used);
	json_resume(w);
	return ok;
}

/* Makes room for SIZE bytes. Returns false after an error of OUT. */
static inline bool json_room(struct json_writer *w, size_t size)
{
	return (size_t)(w->end - w->to) >= size || json_make_room(w, size);
}

static inline void json_put_byte(struct json_writer *w, uint8_t byte)
{
	if (json_room(w, 1))
		*w->to++ = byte;
}

static void json_put(struct json_writer *w, struct bytes text)
{
	if (!json_room(w, text.size))
		return;
	if (text.size)
		memcpy(w->to, text.data, text.size);
	w->to += text.size;
}

/* Writes a string of the document, of which READABLE bytes follow its beginning. */
static inline void json_put_text(struct json_writer *w, struct bytes text, size_t readable)
{
	if (!json_room(w, text.size + 2))
		return;
	bool wide = (size_t)(w->end - w->to) >= text.size + 2 + JSON_BLOCK;

	*w->to++ = '"';
	size_t n = json_copy(w->to, text, readable, wide);
	w->to += n;
	if (n == text.size) {
		*w->to++ = '"';
		return;
	}
	json_flush(w);
	json_put_rest(BYTES((const uint8_t *)text.data + n, text.size - n), w->out);
	json_resume(w);
}

static void json_new_line(struct json_writer *writer)
{
	size_t size = writer->depth * (size_t)writer->indent;

	if (!writer->indent || !json_room(writer, size + 1))
		return;
	*writer->to = '\n';
	memset(writer->to + 1, ' ', size);
	writer->to += size + 1;
}

static int json_put_item(struct json_writer *writer, const struct value *item)
{
	char scratch[VALUE_SCRATCH];
	bool is_map = item->type == VALUE_MAP;
	struct bytes text;

	switch (item->type) {
	case VALUE_STRING:
		json_put_text(writer, item->text, item->text.size);
		return 0;
	case VALUE_ARRAY:
	case VALUE_MAP:
		if (item->count == 0) {
			json_put(writer, is_map ? BYTES_LIT("{}") : BYTES_LIT("[]"));
			return 0;
		}
		if (writer->depth == VALUE_DEPTH_MAX)
			return json_corrupt("nested too deep");
		json_put_byte(writer, is_map ? '{' : '[');
		writer->levels[++writer->depth] =
			(struct json_level){.left = (uint64_t)item->count << is_map,
				.is_map = is_map,
				.is_first = true};
		return 0;
	case VALUE_NIL:
		json_put(writer, BYTES_LIT("null"));
		return 0;
	case VALUE_NUMBER:
		if (!number_is_valid(item->text))
			return json_corrupt("a number that is not one");
		json_put(writer, item->text);
		return 0;
	default:
		(void)value_scalar_text(item, scratch, &text); /* a scalar always has one */
		json_put(writer, text);
		return 0;
	}
}

/* Writes what comes before an item: the separator, and a new line. */
static inline void json_separate(struct json_writer *writer, struct json_level *level, bool is_key)
{
	if (level->is_map && !is_key) {
		json_put_byte(writer, ':');
		if (writer->indent)
			json_put_byte(writer, ' ');
		return;
	}
	if (!level->is_first)
		json_put_byte(writer, ',');
	if (writer->depth > 0 && writer->indent)
		json_new_line(writer);
	level->is_first = false;
}

/* Writes the item at *AT, the separator before it, and the ends of the containers that end with it. */
static inline int json_put_next(struct json_writer *writer, const uint8_t **at, const uint8_t *end)
{
	struct json_level *level = &writer->levels[writer->depth];
	bool is_key = level->is_map && level->left % 2 == 0;
	struct bytes document = BYTES(*at, (size_t)(end - *at)), text;
	struct value item;
	int r = 0;

	if (value_read_short_text(document, &text)) { /* most items */
		const uint8_t *p = text.data;

		json_separate(writer, level, is_key);
		json_put_text(writer, text, (size_t)(end - p));
		*at = p + text.size;
	} else {
		r = value_read(document, &item);
		if (r < 0)
			return r;
		if (is_key && item.type != VALUE_STRING)
			return json_corrupt("a key that is no string");
		json_separate(writer, level, is_key);
		r = json_put_item(writer, &item);
		*at += item.size;
	}
	level->left--;
	while (r == 0 && writer->depth > 0 && writer->levels[writer->depth].left == 0) {
		bool is_map = writer->levels[writer->depth].is_map;
		writer->depth--;
		json_new_line(writer);
		json_put_byte(writer, is_map ? '}' : ']');
	}
	return r;
}

int json_write_item(const uint8_t **at, const uint8_t *end, int indent, struct buf *out)
{
	struct json_writer writer;
	size_t before = out->size;
	int r = 0;

	/* The other levels are set when they are entered. */
	writer.out = out;
	writer.indent = indent;
	writer.depth = 0;
	writer.levels[0] = (struct json_level){.left = 1, .is_first = true};
	json_resume(&writer);
	while (r == 0 && writer.levels[0].left + writer.depth > 0)
		r = json_put_next(&writer, at, end);
	json_flush(&writer);
	if (r == 0)
		r = buf_error(out);
	if (r < 0 && out->size > before)
		buf_truncate(out, before);
	return r;
}

int json_write(struct bytes document, int indent, struct buf *out)
{
	const uint8_t *at = document.data, *end = at + document.size;
	size_t before = out->size;
	int r = json_write_item(&at, end, indent, out);

	if (r == 0 && at < end) {
		buf_truncate(out, before);
		r = json_corrupt("bytes after the end");
	}
	return r;
}
