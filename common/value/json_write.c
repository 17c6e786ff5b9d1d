/* SPDX-License-Identifier: Apache-2.0 */
/* Writes stored bodies as JSON: the half of json.h that needs no C++. */
#include "common/value/json.h"

#include "common/err.h"
#include "common/value/value.h"

#define JSON_BLOCK 32 /* bytes checked together: most strings are not longer */
#define JSON_HALF  16 /* bytes of one instruction */
/* bytes: a block after a string's end, an escape, quotes, separators, brackets */
#define JSON_FEW 48

typedef uint8_t json_half __attribute__((vector_size(JSON_HALF)));

/* How Go's encoding/json writes an ASCII character: as it is (0), \uXXXX ('u'), or a short escape.
 * 0xe2 begins U+2028 and U+2029, also escaped. */
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

/* ---- room --------------------------------------------------------------- */

struct json_level {
	uint64_t left; /* items to come; a pair is one */
	bool is_map;
};

/* Writing functions take the address to write at and return the one after it, a register in the
 * loop below; NULL after an error of OUT. */
struct json_writer {
	struct buf *out;      /* its size lags until json_flush() */
	uint8_t *end;         /* of that room */
	size_t depth, around; /* open maps and lists: of the document, and around it */
	struct json_level levels[VALUE_DEPTH_MAX]; /* around the current one */
};

/* Sets OUT's size. */
static void json_flush(struct json_writer *w, const uint8_t *to)
{
	if (to)
		buf_truncate(w->out, (size_t)(to - w->out->data));
}

/* Makes room for SIZE bytes after TO; NULL: after OUT's content. */
static __attribute__((noinline)) uint8_t *json_make_room(
	struct json_writer *w, const uint8_t *to, size_t size)
{
	json_flush(w, to);
	size_t used = w->out->size;
	if (!buf_grow(w->out, size))
		return NULL;
	(void)buf_grow(
		w->out, buf_spare(w->out)); /* all that is allocated; json_flush() gives it back */
	w->end = w->out->data + w->out->size;
	return w->out->data + used;
}

/* Makes room for SIZE bytes, and for the few after any item. */
static inline uint8_t *json_room(struct json_writer *w, uint8_t *to, size_t size)
{
	return (size_t)(w->end - to) >= size + JSON_FEW ? to
							: json_make_room(w, to, size + JSON_FEW);
}

/* ---- strings ------------------------------------------------------------ */

/* Writes the character at P, with LEFT bytes after it, as itself or escaped. Returns its size in
 * the text. */
static size_t json_put_escape(uint8_t **to, const uint8_t *p, size_t left)
{
	static const char hex[] = "0123456789abcdef";
	uint8_t *t = *to;
	char escape = json_escapes[*p];
	bool is_line_end = escape == 'e' && left >= 3 && p[1] == 0x80 && (p[2] & ~1) == 0xa8;

	if (escape == 'e' && !is_line_end) {
		*t = *p;
		*to += 1;
		return 1;
	}
	t[0] = '\\';
	if (escape != 'e' && escape != 'u') {
		t[1] = (uint8_t)escape;
		*to += 2;
		return 1;
	}
	t[1] = 'u';
	t[2] = is_line_end ? '2' : '0';
	t[3] = '0';
	t[4] = is_line_end ? '2' : (uint8_t)hex[*p >> 4];
	t[5] = is_line_end ? (uint8_t)hex[p[2] & 15] : (uint8_t)hex[*p & 15];
	*to += 6;
	return is_line_end ? 3 : 1;
}

/* Sets to 0xff each character of HALF that may need an escape, and the others to 0. */
static inline json_half json_mark(json_half half)
{
	/* '"' and '&' differ in one bit, '<' and '>' also. */
	return (json_half)(half < 0x20) | (json_half)((half | 4) == '&') |
	       (json_half)((half | 2) == '>') | (json_half)(half == '\\') |
	       (json_half)(half == 0xe2);
}

/* Copies the block at P with N characters. Returns the number before the first possible escape. */
static inline size_t json_copy_block(uint8_t *to, const uint8_t *p, size_t n)
{
	static const uint8_t masks[2 * JSON_BLOCK] = {[0 ... JSON_BLOCK - 1] = 0xff};
	uint64_t words[JSON_BLOCK / 8];
	json_half half[2], mask[2];

	memcpy(half, p, sizeof(half));
	memcpy(to, half, sizeof(half));
	memcpy(mask, masks + JSON_BLOCK - n, sizeof(mask));
	mask[0] &= json_mark(half[0]);
	mask[1] &= json_mark(half[1]);
	json_half any = mask[0] | mask[1];
	memcpy(words, &any, sizeof(any));
	if (__builtin_expect(!(words[0] | words[1]), 1))
		return n;
	size_t i = 0;
	memcpy(words, mask, sizeof(words));
	while (!words[i])
		i++;
	return 8 * i + (size_t)__builtin_ctzll(words[i]) / 8; /* little-endian (common/bytes.h) */
}

/* Writes TEXT as a string. READABLE bytes from its beginning may be read. */
static inline uint8_t *json_put_text(
	struct json_writer *w, uint8_t *to, struct bytes text, size_t readable)
{
	const uint8_t *p = text.data, *readable_end = p + readable;
	size_t left = text.size;
	uint8_t last[JSON_BLOCK] = {0};

	to = json_room(w, to, left);
	if (!to)
		return NULL;
	*to++ = '"';
	while (left) {
		size_t n = left < JSON_BLOCK ? left : JSON_BLOCK;

		const uint8_t *from = p;

		if (__builtin_expect((size_t)(readable_end - p) < JSON_BLOCK, 0))
			from = memcpy(last, p, n);
		size_t plain = json_copy_block(to, from, n);
		to += plain;
		p += plain;
		left -= plain;
		if (plain == n)
			continue;
		size_t taken = json_put_escape(&to, p, left);
		p += taken;
		left -= taken;
		to = json_room(w, to, left);
		if (!to)
			return NULL;
	}
	*to++ = '"';
	return to;
}

void json_write_string(struct bytes text, struct buf *out)
{
	struct json_writer w;

	w.out = out;
	uint8_t *to = json_make_room(&w, NULL, JSON_FEW);
	if (to)
		json_flush(&w, json_put_text(&w, to, text, text.size));
}

/* ---- documents ---------------------------------------------------------- */

static int json_corrupt(const char *what)
{
	return err_set(ERR_CORRUPT, "stored value: %s", what);
}

static uint8_t *json_put(struct json_writer *w, uint8_t *to, struct bytes text)
{
	to = json_room(w, to, text.size);
	if (to && text.size)
		memcpy(to, text.data, text.size);
	return to ? to + text.size : NULL;
}

static uint8_t *json_new_line(struct json_writer *w, uint8_t *to, size_t spaces)
{
	to = json_room(w, to, spaces + 1);
	if (!to)
		return NULL;
	*to++ = '\n';
	memset(to, ' ', spaces);
	return to + spaces;
}

/* Writes any item but a short string or a container with items. READABLE: see json_put_text(). */
static int json_put_other(
	struct json_writer *w, uint8_t **to, const struct value *item, size_t readable)
{
	char scratch[VALUE_SCRATCH];
	struct bytes text;

	switch (item->type) {
	case VALUE_STRING:
		*to = json_put_text(w, *to, item->text, readable);
		return 0;
	case VALUE_ARRAY:
		*to = json_put(w, *to, BYTES_LIT("[]"));
		return 0;
	case VALUE_MAP:
		*to = json_put(w, *to, BYTES_LIT("{}"));
		return 0;
	case VALUE_NIL:
		*to = json_put(w, *to, BYTES_LIT("null"));
		return 0;
	case VALUE_NUMBER:
		if (!number_is_valid(item->text))
			return json_corrupt("a malformed number");
		*to = json_put(w, *to, item->text);
		return 0;
	default:
		(void)value_scalar_text(item, scratch, &text); /* a scalar always has one */
		*to = json_put(w, *to, text);
		return 0;
	}
}

/* Writes the key at *AT and the colon after it. */
static inline int json_put_key(
	struct json_writer *w, uint8_t **to, const uint8_t **at, const uint8_t *end, bool spaced)
{
	struct bytes text;

	if (value_read_short_text(BYTES(*at, (size_t)(end - *at)), &text)) {
		*at = (const uint8_t *)text.data + text.size;
	} else {
		struct value item;
		int r = value_read(BYTES(*at, (size_t)(end - *at)), &item);
		if (r < 0)
			return r;
		if (item.type != VALUE_STRING)
			return json_corrupt("a key other than a string");
		text = item.text;
		*at += item.size;
	}
	uint8_t *t = json_put_text(w, *to, text, (size_t)(end - (const uint8_t *)text.data));
	if (t) {
		*t++ = ':';
		if (spaced)
			*t++ = ' ';
	}
	*to = t;
	return 0;
}

/* Writes the item at *AT with its content. INDENT is a constant for 0, the most frequent form. */
static inline __attribute__((always_inline)) int json_put_document(struct json_writer *w,
	uint8_t **ret_to, const uint8_t **at, const uint8_t *end, size_t indent)
{
	struct json_level level = {.left = 1};
	uint8_t *to = *ret_to;
	struct bytes text;
	struct value item;
	int r = 0;

	w->depth = 0;
	for (;;) {
		if (level.is_map)
			r = json_put_key(w, &to, at, end, indent > 0);
		if (r < 0 || !to)
			break;
		struct bytes rest = BYTES(*at, (size_t)(end - *at));
		bool is_map;
		uint32_t count = value_read_short_container(rest, &is_map);
		if (count) {
			*at += 1;
		} else if (rest.size && (**at == 0x80 || **at == 0x90)) {
			to = json_put(w, to, **at == 0x80 ? BYTES_LIT("{}") : BYTES_LIT("[]"));
			*at += 1;
		} else if (value_read_short_text(rest, &text)) {
			const uint8_t *p = text.data;
			to = json_put_text(w, to, text, (size_t)(end - p));
			*at = p + text.size;
		} else {
			r = value_read(rest, &item);
			if (r < 0)
				break;
			*at += item.size;
			is_map = item.type == VALUE_MAP;
			count = item.count;
			if (!count)
				r = json_put_other(w, &to, &item,
					item.text.data
						? (size_t)(end - (const uint8_t *)item.text.data)
						: 0);
		}
		if (count) {
			if (w->depth == VALUE_DEPTH_MAX) {
				r = json_corrupt("nested too deep");
				break;
			}
			w->levels[w->depth++] = level;
			level = (struct json_level){.left = count, .is_map = is_map};
			to = json_room(w, to, 1);
			if (!to)
				break;
			*to++ = is_map ? '{' : '[';
			if (indent)
				to = json_new_line(w, to, (w->around + w->depth) * indent);
			continue;
		}
		while (r == 0 && to && --level.left == 0 && w->depth) {
			uint8_t bracket = level.is_map ? '}' : ']';
			level = w->levels[--w->depth];
			to = indent ? json_new_line(w, to, (w->around + w->depth) * indent)
				    : json_room(w, to, 1);
			if (to)
				*to++ = bracket;
		}
		if (r < 0 || !to || !level.left)
			break;
		*to++ = ',';
		if (indent)
			to = json_new_line(w, to, (w->around + w->depth) * indent);
	}
	*ret_to = to;
	return r;
}

static __attribute__((noinline)) int json_put_compact(
	struct json_writer *w, uint8_t **to, const uint8_t **at, const uint8_t *end)
{
	return json_put_document(w, to, at, end, 0);
}

static __attribute__((noinline)) int json_put_indented(
	struct json_writer *w, uint8_t **to, const uint8_t **at, const uint8_t *end, size_t indent)
{
	return json_put_document(w, to, at, end, indent);
}

int json_write_item(
	const uint8_t **at, const uint8_t *end, int indent, unsigned level, struct buf *out)
{
	struct json_writer w;
	size_t before = out->size;

	w.out = out; /* levels are set when they are entered */
	w.around = level;
	uint8_t *to = json_make_room(&w, NULL, JSON_FEW);
	int r = indent ? json_put_indented(&w, &to, at, end, (size_t)indent)
		       : json_put_compact(&w, &to, at, end);
	json_flush(&w, to);
	if (r == 0)
		r = buf_error(out);
	if (r < 0 && out->size > before)
		buf_truncate(out, before);
	return r;
}

int json_write_nested(struct bytes document, int indent, unsigned level, struct buf *out)
{
	const uint8_t *at = document.data, *end = at + document.size;
	size_t before = out->size;
	int r = json_write_item(&at, end, indent, level, out);

	if (r == 0 && at < end) {
		buf_truncate(out, before);
		r = json_corrupt("bytes after the end");
	}
	return r;
}

int json_write(struct bytes document, int indent, struct buf *out)
{
	return json_write_nested(document, indent, 0, out);
}
