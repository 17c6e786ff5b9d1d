/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/path.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"

#define PATH_MAGIC 0x70617468u
/* Evaluation goes a level deeper per step; a document has no more levels than this. */
#define STEPS_MAX VALUE_DEPTH_MAX

enum step_type { STEP_KEY, STEP_INDEX, STEP_ALL };

struct step {
	enum step_type type;
	uint32_t index;
	size_t key_at; /* in keys: begin and size */
	size_t key_size;
};

struct path {
	uint32_t magic;
	size_t count;
	size_t n_keys; /* leading plain keys */
	bool is_plural;
	struct buf keys; /* all keys, one behind the other */
	struct buf text;
	struct step steps[STEPS_MAX];
};

/* ---- parsing ---- */

struct parser {
	const char *text;
	const char *p;
	const char *end;
	struct path *path;
};

static __attribute__((cold)) int syntax(const struct parser *parser, const char *what)
{
	return err_say(ERR_SYNTAX, "field path '%s', character %zu: %s", parser->text,
		(size_t)(parser->p - parser->text) + 1, what);
}

static char peek(const struct parser *parser)
{
	return parser->p < parser->end ? *parser->p : '\0';
}

static bool take(struct parser *parser, char c)
{
	if (parser->p == parser->end || *parser->p != c)
		return false;
	parser->p++;
	return true;
}

static int add_step(struct parser *parser, struct step step)
{
	struct path *path = parser->path;

	if (path->count == STEPS_MAX)
		return syntax(parser, "too many steps");
	if (step.type == STEP_KEY && path->n_keys == path->count)
		path->n_keys++;
	path->is_plural |= step.type == STEP_ALL;
	path->steps[path->count++] = step;
	return 0;
}

/* Adds the key whose characters were put behind KEY_AT. */
static int add_key(struct parser *parser, size_t key_at)
{
	struct buf *keys = &parser->path->keys;

	if (buf_error(keys) < 0)
		return keys->error;
	return add_step(parser,
		(struct step){.type = STEP_KEY, .key_at = key_at, .key_size = keys->size - key_at});
}

/* Characters of a key outside of brackets; others go into quotes or behind a backslash. */
static bool is_plain(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '/' || c == '$' ||
	       c == '@' || c == ':' || (unsigned char)c >= 0x80;
}

/* A key as in `a.b`, and as kubectl has it in `labels.app\.kubernetes\.io/name`. */
static int parse_plain_key(struct parser *parser)
{
	struct buf *keys = &parser->path->keys;
	size_t key_at = keys->size;
	const char *start = parser->p;

	for (; is_plain(peek(parser)) || peek(parser) == '\\'; parser->p++) {
		if (*parser->p == '\\' && ++parser->p == parser->end)
			return syntax(parser, "nothing behind the backslash");
		buf_byte(keys, (uint8_t)*parser->p);
	}
	if (parser->p == start)
		return syntax(parser, "expected a key");
	return add_key(parser, key_at);
}

/* ['key'], with \' and \\ in it. */
static int parse_quoted_key(struct parser *parser, char quote)
{
	struct buf *keys = &parser->path->keys;
	size_t key_at = keys->size;

	for (; parser->p < parser->end && *parser->p != quote; parser->p++) {
		if (*parser->p == '\\' && ++parser->p == parser->end)
			break;
		buf_byte(keys, (uint8_t)*parser->p);
	}
	if (!take(parser, quote))
		return syntax(parser, "the quote does not end");
	return add_key(parser, key_at);
}

static int parse_index(struct parser *parser)
{
	uint32_t index = 0;

	if (!isdigit((unsigned char)peek(parser)))
		return syntax(parser, "expected '*', a number or a quoted key");
	for (; isdigit((unsigned char)peek(parser)); parser->p++) {
		if (__builtin_mul_overflow(index, 10u, &index) ||
			__builtin_add_overflow(index, (uint32_t)(*parser->p - '0'), &index))
			return syntax(parser, "the number is too large");
	}
	return add_step(parser, (struct step){.type = STEP_INDEX, .index = index});
}

static int parse_bracket(struct parser *parser)
{
	int r;

	if (take(parser, '*'))
		r = add_step(parser, (struct step){.type = STEP_ALL});
	else if (take(parser, '\''))
		r = parse_quoted_key(parser, '\'');
	else if (take(parser, '"'))
		r = parse_quoted_key(parser, '"');
	else
		r = parse_index(parser);
	if (r < 0)
		return r;
	return take(parser, ']') ? 0 : syntax(parser, "expected ']'");
}

static int parse_steps(struct parser *parser)
{
	int r = 0;

	if (take(parser, '[')) {
		r = parse_bracket(parser);
	} else {
		(void)take(parser, '.'); /* may be left out */
		r = parse_plain_key(parser);
	}
	while (r == 0 && parser->p < parser->end) {
		if (take(parser, '['))
			r = parse_bracket(parser);
		else if (take(parser, '.'))
			r = parse_plain_key(parser);
		else
			return syntax(parser, "expected '.' or '['");
	}
	return r;
}

/* ---- canonical text ---- */

static struct bytes step_key(const struct path *path, const struct step *step)
{
	return BYTES(path->keys.data + step->key_at, step->key_size);
}

static void put_key(struct buf *text, struct bytes key, bool is_first)
{
	const char *p = key.data;
	bool plain = key.size > 0;

	for (size_t i = 0; i < key.size; i++)
		plain &= is_plain(p[i]);
	if (plain) {
		buf_str(text, is_first ? "" : ".");
		buf_bytes_put(text, key);
		return;
	}
	buf_str(text, "['");
	for (size_t i = 0; i < key.size; i++) {
		if (p[i] == '\'' || p[i] == '\\')
			buf_byte(text, '\\');
		buf_byte(text, (uint8_t)p[i]);
	}
	buf_str(text, "']");
}

static int put_text(struct path *path)
{
	for (size_t i = 0; i < path->count; i++) {
		const struct step *step = &path->steps[i];
		if (step->type == STEP_KEY)
			put_key(&path->text, step_key(path, step), i == 0);
		else if (step->type == STEP_INDEX)
			buf_printf(&path->text, "[%u]", step->index);
		else
			buf_str(&path->text, "[*]");
	}
	(void)buf_cstr(&path->text); /* allocates, so that path_text() need not */
	return buf_error(&path->text);
}

/* ---- public ---- */

int path_parse(const char *text, struct path **ret_path)
{
	CLEANUP(path_free) struct path *path = calloc(1, sizeof(*path));

	if (!path)
		return err_set(-ENOMEM, "field path '%s'", text);
	path->magic = PATH_MAGIC;
	struct parser parser = {text, text, text + strlen(text), path};
	if (take(&parser, '{')) {
		if (parser.p == parser.end || parser.end[-1] != '}')
			return syntax(&parser, "expected '}' at the end");
		parser.end--;
	}
	int r = parse_steps(&parser);
	if (r == 0)
		r = put_text(path);
	if (r < 0)
		return r;
	*ret_path = TAKE(path);
	return 0;
}

void path_free(struct path **path)
{
	if (!*path)
		return;
	CHECK_OBJ(*path, PATH_MAGIC);
	buf_release(&(*path)->keys);
	buf_release(&(*path)->text);
	(*path)->magic = 0;
	free(*path);
	*path = NULL;
}

const char *path_text(const struct path *path)
{
	CHECK_OBJ(path, PATH_MAGIC);
	return (const char *)path->text.data;
}

bool path_is_plural(const struct path *path)
{
	CHECK_OBJ(path, PATH_MAGIC);
	return path->is_plural;
}

bool path_is_plain(const struct path *path)
{
	CHECK_OBJ(path, PATH_MAGIC);
	return path->n_keys == path->count;
}

size_t path_keys(const struct path *path, size_t i, struct bytes *ret_key)
{
	CHECK_OBJ(path, PATH_MAGIC);
	if (i < path->n_keys && ret_key)
		*ret_key = step_key(path, &path->steps[i]);
	return path->n_keys;
}

/* ---- evaluation ---- */

struct evaluation {
	const struct path *path;
	path_found_fn *found_fn;
	void *arg;
};

static int evaluate(const struct evaluation *evaluation, size_t i, const struct value *value);

static int evaluate_all(const struct evaluation *evaluation, size_t i, const struct value *value)
{
	struct value_iter iter;
	struct value item;
	int r;

	value_iter_init(&iter, value);
	while ((r = value_iter_next(&iter, NULL, &item)) == FOUND) {
		r = evaluate(evaluation, i + 1, &item);
		if (r != 0)
			return r;
	}
	return r < 0 ? r : 0;
}

/* The item of an array at INDEX. */
static int item_at(const struct value *value, uint32_t index, struct value *ret_item)
{
	struct value_iter iter;
	int r = NOT_FOUND;

	if (value->type != VALUE_ARRAY || index >= value->count)
		return NOT_FOUND;
	value_iter_init(&iter, value);
	for (uint32_t i = 0; i <= index; i++) {
		r = value_iter_next(&iter, NULL, ret_item);
		if (r != FOUND)
			return r;
	}
	return r;
}

/* Follows the path from its step I on, VALUE being where the steps before it led. */
static int evaluate(const struct evaluation *evaluation, size_t i, const struct value *value)
{
	const struct path *path = evaluation->path;
	struct value here = *value;

	for (; i < path->count; i++) {
		const struct step *step = &path->steps[i];
		int r;
		if (step->type == STEP_ALL)
			return evaluate_all(evaluation, i, &here);
		struct value next;
		if (step->type == STEP_KEY)
			r = value_find(&here, step_key(path, step), &next);
		else
			r = item_at(&here, step->index, &next);
		if (r != FOUND)
			return r < 0 ? r : 0;
		here = next;
	}
	return evaluation->found_fn(evaluation->arg, &here);
}

int path_eval(const struct path *path, struct bytes document, path_found_fn *found_fn, void *arg)
{
	struct evaluation evaluation = {path, found_fn, arg};
	struct value root;

	CHECK_OBJ(path, PATH_MAGIC);
	int r = value_read(document, &root);
	return r < 0 ? r : evaluate(&evaluation, 0, &root);
}

static int keep_first(void *arg, const struct value *value)
{
	*(struct value *)arg = *value;
	return END;
}

int path_first(const struct path *path, struct bytes document, struct value *ret_value)
{
	int r = path_eval(path, document, keep_first, ret_value);

	return r == END ? FOUND : r == 0 ? NOT_FOUND : r;
}
