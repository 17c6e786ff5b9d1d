/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses JSON into msgpack. The first stage of simdjson finds the offsets of all tokens, 64 bytes
 * at a time, and checks UTF-8, control characters and the ends of strings. This file walks over the
 * offsets, public members of simdjson's parser, and packs each value at once: no tree, no tape, and
 * numbers as text. (simdjson's on-demand walker knows neither a key's end nor the rest after the
 * document.)
 *
 * It is C for a C++ compiler, and allocates without exceptions, as simdjson does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <memory>
#include <new>

extern "C" {
#include "common/value/json.h"
#include "common/check.h"
#include "common/err.h"
#include "common/value/value.h"
}

#include <simdjson.h>

#define PARSER_MAGIC 0x6a736e70u
#define FIRST_SIZE   ((size_t)64 << 10)
/* The offsets take about four times the text. Their memory is freed after a larger document. */
#define KEEP_SIZE ((size_t)4 << 20)

static_assert(JSON_DROP_MAX <= 64, "one bit each in `drops`");

using stage = simdjson::internal::dom_parser_implementation;

struct json_parser {
	uint32_t magic;
	std::unique_ptr<stage> tokens;
	struct buf unescaped;
};

/* A position in a document. A token reaches from AT[0] to AT[1], with the blanks after it. */
struct json_walk {
	const uint8_t *text;
	size_t size;
	const uint32_t *at;
	const uint32_t *end;
	struct buf *out;
	struct buf *unescaped;
	const struct json_options *options;
	size_t depth;
	bool has_kind; /* the root object has a kind or apiVersion of its own */
	bool in_metadata;
};

/* ---- tokens ------------------------------------------------------------- */

static size_t json_place(const struct json_walk *walk)
{
	return walk->at < walk->end ? *walk->at : walk->size;
}

static __attribute__((cold, noinline)) int json_syntax(
	const struct json_walk *walk, const char *what)
{
	return err_say(ERR_SYNTAX, "JSON, byte %zu: %s", json_place(walk), what);
}

/* Returns the first character of the current token; NUL after the last one. */
static inline uint8_t json_peek(const struct json_walk *walk)
{
	return walk->at < walk->end ? walk->text[*walk->at] : '\0';
}

static inline bool json_take(struct json_walk *walk, uint8_t c)
{
	if (json_peek(walk) != c)
		return false;
	walk->at++;
	return true;
}

static inline bool json_is_blank(uint8_t c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* Returns the current token, which must exist, without the blanks after it. */
static inline struct bytes json_token(const struct json_walk *walk)
{
	size_t begin = *walk->at;
	size_t end = walk->at + 1 < walk->end ? walk->at[1] : walk->size;

	while (end > begin + 1 && json_is_blank(walk->text[end - 1]))
		end--;
	return BYTES(walk->text + begin, end - begin);
}

/* ---- strings ------------------------------------------------------------ */

/* Copies RAW into the parser's buffer without escapes. */
static int json_copy_unescaped(struct json_walk *walk, struct bytes raw, struct bytes *ret_text)
{
	size_t size;

	buf_reset(walk->unescaped);
	void *room = buf_grow(walk->unescaped, raw.size);
	if (!room)
		return buf_error(walk->unescaped);
	if (!json_unescape(raw, room, raw.size, &size))
		return json_syntax(walk, "unknown escape in a string");
	*ret_text = BYTES(room, size);
	return 0;
}

/* Takes a string, borrowed from the document; one with escapes only until the next string. */
static inline int json_take_string(struct json_walk *walk, struct bytes *ret_text)
{
	struct bytes quoted = json_token(walk);
	const uint8_t *p = static_cast<const uint8_t *>(quoted.data);

	if (quoted.size < 2 || p[quoted.size - 1] != '"')
		return json_syntax(walk, "an unterminated string");
	struct bytes raw = BYTES(p + 1, quoted.size - 2);
	*ret_text = raw;
	if (memchr(raw.data, '\\', raw.size)) {
		int r = json_copy_unescaped(walk, raw, ret_text);
		if (r < 0)
			return r;
	}
	walk->at++;
	return 0;
}

/* ---- values ------------------------------------------------------------- */

/* Bit I is set while the keys so far begin options->drop[I]. */
typedef uint64_t json_drops;

static int json_put_value(struct json_walk *walk, json_drops alive);

static int json_put_scalar(struct json_walk *walk)
{
	struct bytes text = json_token(walk);

	if (bytes_equal(text, BYTES_LIT("true")))
		value_put_bool(walk->out, true);
	else if (bytes_equal(text, BYTES_LIT("false")))
		value_put_bool(walk->out, false);
	else if (bytes_equal(text, BYTES_LIT("null")))
		value_put_nil(walk->out);
	else if (!value_put_number(walk->out, text))
		return json_syntax(walk, "expected a value");
	walk->at++;
	return 0;
}

static int json_put_array(struct json_walk *walk)
{
	size_t opened = value_open_array(walk->out);
	uint32_t count = 0;

	walk->at++;
	if (!json_take(walk, ']')) {
		do {
			int r = json_put_value(walk, 0);
			if (r < 0)
				return r;
			count++;
		} while (json_take(walk, ','));
		if (!json_take(walk, ']'))
			return json_syntax(walk, "expected ',' or ']'");
	}
	value_close(walk->out, opened, count);
	return 0;
}

/* Returns in RET_ALIVE the paths continued by KEY at this depth; true if one ends here. */
static bool json_is_dropped(
	const struct json_walk *walk, json_drops alive, struct bytes key, json_drops *ret_alive)
{
	json_drops below = 0;

	for (; alive; alive &= alive - 1) {
		int i = __builtin_ctzll(alive);
		struct bytes wanted;
		size_t n = path_keys(walk->options->drop[i], walk->depth - 1, &wanted);
		if (!bytes_equal(wanted, key))
			continue;
		if (n == walk->depth)
			return true;
		below |= (json_drops)1 << i;
	}
	*ret_alive = below;
	return false;
}

/* Passes over a value by counting its brackets. */
static int json_skip_value(struct json_walk *walk)
{
	size_t open = 0;

	do {
		uint8_t c = json_peek(walk);
		if (c == '\0' || (open == 0 && (c == ',' || c == ':' || c == '}' || c == ']')))
			return json_syntax(walk, "expected a value");
		open += c == '{' || c == '[';
		open -= c == '}' || c == ']';
		walk->at++;
	} while (open);
	return 0;
}

/* Keeps the current token, the value of KEY, if the identity has it. */
static void json_note_identity(struct json_walk *walk, struct bytes key)
{
	struct json_identity *identity = walk->options->identity;
	struct bytes *text = NULL;

	if (walk->depth == 1) {
		walk->in_metadata = bytes_equal(key, BYTES_LIT("metadata"));
		text = bytes_equal(key, BYTES_LIT("kind")) ? &identity->kind : NULL;
	} else if (bytes_equal(key, BYTES_LIT("name"))) {
		text = &identity->name;
	} else if (bytes_equal(key, BYTES_LIT("namespace"))) {
		text = &identity->name_space;
	} else if (bytes_equal(key, BYTES_LIT("uid"))) {
		text = &identity->uid;
	} else if (bytes_equal(key, BYTES_LIT("resourceVersion"))) {
		text = &identity->rv;
	}
	if (!text)
		return;
	struct bytes quoted = json_peek(walk) == '"' ? json_token(walk) : BYTES_NONE;
	if (quoted.size < 2 || memchr(quoted.data, '\\', quoted.size))
		identity->is_odd = true;
	else
		*text = BYTES(static_cast<const uint8_t *>(quoted.data) + 1, quoted.size - 2);
}

/* Puts one pair; COUNT grows unless it is dropped. */
static inline int json_put_pair(struct json_walk *walk, json_drops alive, uint32_t *count)
{
	struct bytes key;

	if (json_peek(walk) != '"')
		return json_syntax(walk, "expected a key");
	int r = json_take_string(walk, &key);
	if (r < 0)
		return r;
	if (!json_take(walk, ':'))
		return json_syntax(walk, "expected ':'");
	if (walk->depth == 1 &&
		(bytes_equal(key, BYTES_LIT("kind")) || bytes_equal(key, BYTES_LIT("apiVersion"))))
		walk->has_kind = true;
	if (walk->options->identity &&
		(walk->depth == 1 || (walk->depth == 2 && walk->in_metadata)))
		json_note_identity(walk, key);
	if (alive && json_is_dropped(walk, alive, key, &alive))
		return json_skip_value(walk);
	value_put_string(walk->out, key);
	++*count;
	return json_put_value(walk, alive);
}

/* Puts an object. The options' kind and apiVersion come first in the root object, and are removed
 * again if it turns out to have its own: rarely. */
static int json_put_map(struct json_walk *walk, json_drops alive)
{
	const struct json_options *options = walk->options;
	struct buf *out = walk->out;
	size_t opened = value_open_map(out), kind_size = 0;
	uint32_t count = 0;

	if (walk->depth == 1 && options->kind && options->api_version) {
		size_t before = out->size;

		value_put_string(out, BYTES_LIT("kind"));
		value_put_string(out, bytes_str(options->kind));
		value_put_string(out, BYTES_LIT("apiVersion"));
		value_put_string(out, bytes_str(options->api_version));
		kind_size = out->size - before;
		count = 2;
	}
	walk->at++;
	if (!json_take(walk, '}')) {
		do {
			int r = json_put_pair(walk, alive, &count);
			if (r < 0)
				return r;
		} while (json_take(walk, ','));
		if (!json_take(walk, '}'))
			return json_syntax(walk, "expected ',' or '}'");
	}
	if (walk->depth == 1 && walk->has_kind && kind_size && !out->error) {
		size_t start = opened + 1, after = start + kind_size;

		memmove(out->data + start, out->data + after, out->size - after);
		buf_truncate(out, out->size - kind_size);
		count -= 2;
	}
	value_close(out, opened, count);
	return 0;
}

static int json_put_value(struct json_walk *walk, json_drops alive)
{
	uint8_t c = json_peek(walk);
	struct bytes text;
	int r;

	if (c == '"') {
		r = json_take_string(walk, &text);
		if (r == 0)
			value_put_string(walk->out, text);
		return r;
	}
	if (c != '{' && c != '[')
		return c ? json_put_scalar(walk)
			 : json_syntax(walk, "expected a value, found the end");
	if (walk->depth == VALUE_DEPTH_MAX)
		return err_say(ERR_TOO_LARGE, "JSON, byte %zu: nested deeper than %d",
			json_place(walk), VALUE_DEPTH_MAX);
	walk->depth++;
	r = c == '{' ? json_put_map(walk, alive) : json_put_array(walk);
	walk->depth--;
	return r;
}

/* ---- documents ---------------------------------------------------------- */

/* Finds the tokens of TEXT, after memory for them was found. */
static int json_find_tokens(struct json_parser *parser, struct bytes text)
{
	size_t capacity = parser->tokens ? parser->tokens->capacity() : FIRST_SIZE;
	simdjson::error_code error;

	if (!text.size)
		return err_say(ERR_SYNTAX, "JSON: the text is empty");
	if (!parser->tokens || text.size > capacity) {
		while (capacity < text.size)
			capacity *= 2;
		parser->tokens.reset();
		error = simdjson::get_active_implementation()->create_dom_parser_implementation(
			capacity, 1 /* only the second stage uses depth */, parser->tokens);
		if (error != simdjson::SUCCESS) {
			parser->tokens.reset();
			return err_set(error == simdjson::CAPACITY ? ERR_TOO_LARGE : -ENOMEM,
				"JSON document of %zu bytes", text.size);
		}
	}
	error = parser->tokens->stage1(
		static_cast<const uint8_t *>(text.data), text.size, simdjson::stage1_mode::regular);
	switch (error) {
	case simdjson::SUCCESS:
		return 0;
	case simdjson::EMPTY:
		return err_say(ERR_SYNTAX, "JSON: nothing but blanks");
	case simdjson::UTF8_ERROR:
		return err_say(ERR_SYNTAX, "JSON: not UTF-8");
	case simdjson::UNCLOSED_STRING:
		return err_say(ERR_SYNTAX, "JSON: an unterminated string");
	case simdjson::UNESCAPED_CHARS:
		return err_say(ERR_SYNTAX, "JSON: a control character in a string");
	default:
		return err_say(ERR_SYNTAX, "JSON: %s", simdjson::error_message(error));
	}
}

static int json_put_document(struct json_parser *parser, struct bytes text,
	const struct json_options *options, struct buf *out)
{
	int r = json_find_tokens(parser, text);

	if (r < 0)
		return r;
	const uint32_t *first = parser->tokens->structural_indexes.get();
	struct json_walk walk = {};
	walk.text = static_cast<const uint8_t *>(text.data);
	walk.size = text.size;
	walk.at = first;
	walk.end = first + parser->tokens->n_structural_indexes;
	walk.out = out;
	walk.unescaped = &parser->unescaped;
	walk.options = options;
	r = json_put_value(
		&walk, options->n_drop ? ~(json_drops)0 >> (JSON_DROP_MAX - options->n_drop) : 0);
	if (r == 0 && walk.at != walk.end)
		r = json_syntax(&walk, "something after the document");
	return r < 0 ? r : buf_error(out);
}

int json_parse(struct json_parser *parser, struct bytes text, const struct json_options *options,
	struct buf *out)
{
	static const struct json_options none = {};
	size_t before = out->size;

	CHECK_OBJ(parser, PARSER_MAGIC);
	if (!options)
		options = &none;
	REQUIRE(options->n_drop <= JSON_DROP_MAX);
	for (size_t i = 0; i < options->n_drop; i++)
		REQUIRE(path_is_plain(options->drop[i]));
	int r = buf_error(out);
	if (r < 0)
		return r;
	r = json_put_document(parser, text, options, out);
	if (r < 0) {
		out->error = 0;
		buf_truncate(out, before);
	}
	if (text.size > KEEP_SIZE)
		parser->tokens.reset();
	buf_trim(&parser->unescaped, KEEP_SIZE);
	return r;
}

int json_parser_new(struct json_parser **ret_parser)
{
	struct json_parser *parser = new (std::nothrow) json_parser();

	if (!parser)
		return err_set(-ENOMEM, "JSON parser");
	parser->magic = PARSER_MAGIC;
	buf_init(&parser->unescaped, 0);
	*ret_parser = parser;
	return 0;
}

/* Only UNESCAPED holds text: simdjson keeps offsets. */
void json_parser_keep_secret(struct json_parser *parser)
{
	CHECK_OBJ(parser, PARSER_MAGIC);
	parser->unescaped.secret = true;
}

void json_parser_free(struct json_parser **parser)
{
	if (!*parser)
		return;
	CHECK_OBJ(*parser, PARSER_MAGIC);
	buf_release(&(*parser)->unescaped);
	(*parser)->magic = 0;
	delete *parser;
	*parser = NULL;
}
