/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes bodies as YAML, byte for byte as kubectl: styles, folding of lines over 80 characters,
 * indentation and escapes of go-yaml, a descendant of libyaml 0.1. Today's libyaml differs, and is
 * five times slower.
 */
#include "common/value/yaml.h"

#include <string.h>

#include "common/err.h"
#include "common/value/value.h"
#include "common/value/yaml_style.h"

#define WIDTH 80 /* a blank beyond this column may become a line break */
#define STEP  2
#define ROOM  64 /* bytes: a scalar's quotes, an indicator, a line break, one escape */

/* The position of the next character, and its surroundings. */
struct yaml_writing {
	struct buf *out;
	uint8_t *to, *end; /* the rest of the room; TO is NULL after an error of OUT */
	uint8_t *line;     /* the line's beginning, as if each of its characters were one byte */
	int indent;        /* of the current map or list; -1: outside of all */
	bool after_blank;  /* the last character separates tokens */
	bool is_indented;  /* the line has nothing but indentation and indicators */
	unsigned depth;
};

/* ---- characters --------------------------------------------------------- */

static __attribute__((noinline)) void yaml_make_room(struct yaml_writing *w, size_t size)
{
	size_t used = (size_t)(w->to - w->out->data);
	ptrdiff_t column = w->to - w->line;

	buf_truncate(w->out, used);
	if (!buf_grow(w->out, size)) {
		w->to = NULL;
		return;
	}
	(void)buf_grow(
		w->out, buf_spare(w->out)); /* all that is allocated; yaml_flush() gives it back */
	w->to = w->out->data + used;
	w->end = w->out->data + w->out->size;
	w->line = w->to - column;
}

/* Makes room for SIZE bytes and the few after any of them. Returns false without memory. */
static inline bool yaml_room(struct yaml_writing *w, size_t size)
{
	if (w->to && (size_t)(w->end - w->to) < size + ROOM)
		yaml_make_room(w, size + ROOM);
	return w->to;
}

static size_t yaml_column(const struct yaml_writing *w)
{
	return (size_t)(w->to - w->line);
}

/* Copies one character; its bytes after the first are no columns. */
static void yaml_copy(struct yaml_writing *w, struct bytes text, size_t *at)
{
	const uint8_t *p = text.data;
	size_t size = yaml_char_size(text, *at);

	memcpy(w->to, p + *at, size);
	w->to += size;
	w->line += size - 1;
	*at += size;
}

static void yaml_break(struct yaml_writing *w)
{
	*w->to++ = '\n';
	w->line = w->to;
}

/* Begins a line at the current indentation, unless just begun. */
static void yaml_indent(struct yaml_writing *w)
{
	size_t indent = w->indent < 0 ? 0 : (size_t)w->indent, column = yaml_column(w);

	if (!yaml_room(w, indent))
		return;
	if (!w->is_indented || column > indent || (column == indent && !w->after_blank)) {
		yaml_break(w);
		column = 0;
	}
	memset(w->to, ' ', indent - column);
	w->to += indent - column;
	w->after_blank = w->is_indented = true;
}

static void yaml_put(struct yaml_writing *w, char c, bool apart, bool is_blank, bool is_indentation)
{
	if (!yaml_room(w, 0))
		return;
	if (apart && !w->after_blank)
		*w->to++ = ' ';
	*w->to++ = (uint8_t)c;
	w->after_blank = is_blank;
	w->is_indented = w->is_indented && is_indentation;
}

/* ---- scalars ------------------------------------------------------------ */

/* Copies a line break of TEXT. Only \n is written as a break; the others are characters that end a
 * line too. */
static void yaml_copy_break(struct yaml_writing *w, struct bytes text, size_t *at)
{
	if (((const char *)text.data)[*at] == '\n') {
		yaml_break(w);
		++*at;
	} else {
		yaml_copy(w, text, at);
		w->line = w->to;
	}
	w->is_indented = true;
}

/* Writes TEXT plain, or within single quotes. FOLDS: lines may be broken. */
static void yaml_put_flow(struct yaml_writing *w, struct bytes text, bool quoted, bool folds)
{
	const char *p = text.data;
	bool blanks = false, breaks = false;

	for (size_t i = 0; i < text.size && yaml_room(w, (size_t)w->indent + STEP);) {
		if (p[i] == ' ') {
			bool next_is_blank = i + 1 < text.size && p[i + 1] == ' ';

			if (folds && !blanks && yaml_column(w) > WIDTH && !next_is_blank &&
				(!quoted || (i > 0 && i + 1 < text.size))) {
				yaml_indent(w);
				i++;
			} else {
				yaml_copy(w, text, &i);
			}
			blanks = true;
		} else if (yaml_is_break(text, i)) {
			if (!breaks && p[i] == '\n')
				yaml_break(w);
			yaml_copy_break(w, text, &i);
			breaks = true;
		} else {
			if (breaks)
				yaml_indent(w);
			if (!w->to)
				return;
			if (quoted && p[i] == '\'')
				*w->to++ = '\'';
			yaml_copy(w, text, &i);
			w->is_indented = blanks = breaks = false;
		}
	}
}

static void yaml_put_escape(struct yaml_writing *w, struct bytes text, size_t *at)
{
	static const char named[] = "\0\a\b\t\n\v\f\r\x1b\"\\\x85\xa0", names[] = "0abtnvfre\"\\N_";
	static const char hex[] = "0123456789ABCDEF";
	const uint8_t *p = (const uint8_t *)text.data + *at;
	size_t size = yaml_char_size(text, *at);
	uint32_t c = size == 1 ? *p : *p & (0x7fu >> size);

	for (size_t i = 1; i < size; i++)
		c = c << 6 | (p[i] & 0x3f);
	*at += size;
	*w->to++ = '\\';
	const char *name = c <= 0xff ? memchr(named, (int)c, sizeof(named) - 1) : NULL;
	if (name) {
		*w->to++ = (uint8_t)names[name - named];
		return;
	}
	if (c == 0x2028 || c == 0x2029) {
		*w->to++ = c == 0x2028 ? 'L' : 'P';
		return;
	}
	size_t digits = c <= 0xff ? 2 : c <= 0xffff ? 4 : 8;
	*w->to++ = c <= 0xff ? 'x' : c <= 0xffff ? 'u' : 'U';
	while (digits--)
		*w->to++ = (uint8_t)hex[c >> 4 * digits & 15];
}

static void yaml_put_double_quoted(struct yaml_writing *w, struct bytes text, bool folds)
{
	const char *p = text.data;
	bool blanks = false;

	for (size_t i = 0; i < text.size && yaml_room(w, (size_t)w->indent + STEP);) {
		bool is_escaped = yaml_needs_escape(text, i);

		if (is_escaped || p[i] != ' ') {
			if (is_escaped)
				yaml_put_escape(w, text, &i);
			else
				yaml_copy(w, text, &i);
			blanks = false;
			continue;
		}
		if (folds && !blanks && yaml_column(w) > WIDTH && i > 0 && i + 1 < text.size) {
			yaml_indent(w);
			if (p[i + 1] == ' ')
				*w->to++ = '\\';
			i++;
		} else {
			yaml_copy(w, text, &i);
		}
		blanks = true;
	}
}

static void yaml_put_literal(struct yaml_writing *w, struct bytes text)
{
	const char *p = text.data;
	size_t end = text.size, last = yaml_last_break(text, end);

	if (p[0] == ' ' || yaml_is_break(text, 0))
		yaml_put(w, '0' + STEP, false, false, false);
	if (last == end) /* no line break at the end, or more than one */
		yaml_put(w, '-', false, false, false);
	else if (last == 0 || yaml_last_break(text, last) < last)
		yaml_put(w, '+', false, false, false);
	if (!yaml_room(w, 0))
		return;
	yaml_break(w);
	w->is_indented = w->after_blank = true;
	for (size_t i = 0; i < text.size;) {
		size_t from = i;

		if (yaml_is_break(text, i)) {
			if (!yaml_room(w, 0))
				return;
			yaml_copy_break(w, text, &i);
			continue;
		}
		while (i < text.size && !yaml_is_break(text, i))
			i++;
		yaml_indent(w);
		if (!yaml_room(w, i - from))
			return;
		memcpy(w->to, p + from, i - from);
		w->to += i - from;
		w->is_indented = false;
	}
}

static void yaml_put_scalar(
	struct yaml_writing *w, struct bytes text, enum yaml_style style, bool is_key)
{
	static const char marks[YAML_STYLE_MAX] = {[YAML_STYLE_SINGLE_QUOTED] = '\'',
		[YAML_STYLE_DOUBLE_QUOTED] = '"',
		[YAML_STYLE_LITERAL] = '|'};
	int indent = w->indent;

	if (!yaml_room(w, text.size))
		return;
	if (style == YAML_STYLE_WORD) { /* no blanks, no line breaks: no folding */
		if (!w->after_blank)
			*w->to++ = ' ';
		memcpy(w->to, text.data, text.size);
		w->to += text.size;
		w->after_blank = w->is_indented = false;
		return;
	}
	w->indent = indent < 0 ? STEP : indent + STEP;
	if (marks[style])
		yaml_put(w, marks[style], true, false, false);
	else if (!w->after_blank)
		*w->to++ = ' ';
	if (style == YAML_STYLE_LITERAL) {
		yaml_put_literal(w, text);
		w->indent = indent;
		return;
	}
	if (style == YAML_STYLE_DOUBLE_QUOTED)
		yaml_put_double_quoted(w, text, !is_key);
	else
		yaml_put_flow(w, text, style == YAML_STYLE_SINGLE_QUOTED, !is_key);
	if (marks[style])
		yaml_put(w, marks[style], false, false, false);
	w->after_blank = w->is_indented = false;
	w->indent = indent;
}

/* ---- documents ---------------------------------------------------------- */

static int yaml_put_item(
	struct yaml_writing *w, const uint8_t **at, const uint8_t *end, bool in_map);

static int yaml_put_key(struct yaml_writing *w, const uint8_t **at, const uint8_t *end)
{
	struct bytes key;

	if (value_read_short_text(BYTES(*at, (size_t)(end - *at)), &key)) {
		*at = (const uint8_t *)key.data + key.size;
	} else {
		int r = value_read_key(at, end, &key);
		if (r < 0)
			return r;
	}
	yaml_indent(w);
	enum yaml_style style = yaml_string_style(key, true);
	if (yaml_is_simple_key(key, style)) {
		yaml_put_scalar(w, key, style, true);
		yaml_put(w, ':', false, false, false);
		return 0;
	}
	yaml_put(w, '?', true, false, true);
	yaml_put_scalar(w, key, yaml_string_style(key, false), false);
	yaml_indent(w);
	yaml_put(w, ':', true, false, true);
	return 0;
}

/* Writes the content of a map or list; its first item is at *AT. */
static int yaml_put_content(struct yaml_writing *w, const uint8_t **at, const uint8_t *end,
	uint32_t count, bool is_map, bool in_map)
{
	int indent = w->indent, r = 0;

	if (w->depth == VALUE_DEPTH_MAX)
		return err_set(ERR_CORRUPT, "stored value: nested too deep");
	w->depth++;
	if (indent < 0)
		w->indent = 0;
	else if (is_map || !in_map || w->is_indented) /* a list in a map is not indented further */
		w->indent += STEP;
	for (; r == 0 && w->to && count; count--) {
		if (is_map) {
			r = yaml_put_key(w, at, end);
		} else {
			yaml_indent(w);
			yaml_put(w, '-', true, false, true);
		}
		if (r == 0)
			r = yaml_put_item(w, at, end, is_map);
	}
	w->indent = indent;
	w->depth--;
	return r;
}

/* Writes the item at *AT, in a map if IN_MAP, else in a list or alone. */
static int yaml_put_item(
	struct yaml_writing *w, const uint8_t **at, const uint8_t *end, bool in_map)
{
	struct bytes rest = BYTES(*at, (size_t)(end - *at)), text;
	char scratch[VALUE_SCRATCH];
	struct value item;
	bool is_map;

	if (value_read_short_text(rest, &text)) {
		*at = (const uint8_t *)text.data + text.size;
		yaml_put_scalar(w, text, yaml_string_style(text, false), false);
		return 0;
	}
	uint32_t count = value_read_short_container(rest, &is_map);
	if (count) {
		++*at;
		return yaml_put_content(w, at, end, count, is_map, in_map);
	}
	int r = value_read(rest, &item);
	if (r < 0)
		return r;
	*at += item.size;
	switch (item.type) {
	case VALUE_MAP:
	case VALUE_ARRAY:
		is_map = item.type == VALUE_MAP;
		if (item.count)
			return yaml_put_content(w, at, end, item.count, is_map, in_map);
		yaml_put(w, is_map ? '{' : '[', true, true, false);
		yaml_put(w, is_map ? '}' : ']', false, false, false);
		return 0;
	case VALUE_STRING:
		yaml_put_scalar(w, item.text, yaml_string_style(item.text, false), false);
		return 0;
	case VALUE_NIL:
		yaml_put_scalar(w, BYTES_LIT("null"), YAML_STYLE_WORD, false);
		return 0;
	case VALUE_NUMBER:
		if (!number_is_valid(item.text))
			return err_set(ERR_CORRUPT, "stored value: a malformed number");
		break;
	default:
		break;
	}
	(void)value_scalar_text(&item, scratch, &text); /* a scalar always has one */
	yaml_put_scalar(w, text, YAML_STYLE_WORD, false);
	return 0;
}

int yaml_write(struct bytes document, bool is_item, struct buf *out)
{
	const uint8_t *at = document.data, *end = at + document.size;
	size_t before = out->size;
	struct yaml_writing w = {
		.out = out, .indent = -1, .after_blank = true, .is_indented = true};

	w.to = w.line = w.end = out->data ? out->data + before : NULL;
	yaml_make_room(&w, ROOM);
	if (is_item && w.to) { /* of a list without indentation of its own */
		w.indent = 0;
		yaml_put(&w, '-', true, false, true);
	}
	int r = w.to ? yaml_put_item(&w, &at, end, false) : 0;
	if (yaml_room(&w, 0)) {
		w.indent = -1;
		yaml_indent(&w);
	}
	if (w.to)
		buf_truncate(out, (size_t)(w.to - out->data));
	if (r == 0)
		r = buf_error(out);
	if (r == 0 && at < end)
		r = err_set(ERR_CORRUPT, "stored value: bytes after the end");
	if (r < 0 && out->size > before)
		buf_truncate(out, before);
	return r;
}
