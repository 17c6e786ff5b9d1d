/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/path.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"

#define PATH_MAGIC 0x70617468u
/* Evaluation goes one level deeper with each step; a document has at most as many levels. */
#define STEPS_MAX VALUE_DEPTH_MAX

enum path_step_type { STEP_KEY, STEP_INDEX, STEP_ALL };

struct path_step {
	enum path_step_type type;
	uint32_t index;
	size_t key_at; /* in keys: begin and size */
	size_t key_size;
};

struct path {
	uint32_t magic;
	size_t count;
	size_t n_keys; /* leading plain keys */
	bool is_plural;
	struct buf keys; /* all keys, one after the other */
	struct buf text;
	struct path_step steps[STEPS_MAX];
};

/* ---- parsing ---- */

struct path_parser {
	const char *text;
	const char *p;
	const char *end;
	struct path *path;
};

static __attribute__((cold)) int path_syntax(const struct path_parser *parser, const char *what)
{
	return err_say(ERR_SYNTAX, "field path '%s', character %zu: %s", parser->text,
		(size_t)(parser->p - parser->text) + 1, what);
}

static char path_peek(const struct path_parser *parser)
{
	return parser->p < parser->end ? *parser->p : '\0';
}

static bool path_take(struct path_parser *parser, char c)
{
	if (parser->p == parser->end || *parser->p != c)
		return false;
	parser->p++;
	return true;
}

static int path_add_step(struct path_parser *parser, struct path_step step)
{
	struct path *path = parser->path;

	if (path->count == STEPS_MAX)
		return path_syntax(parser, "too many steps");
	if (step.type == STEP_KEY && path->n_keys == path->count)
		path->n_keys++;
	path->is_plural |= step.type == STEP_ALL;
	path->steps[path->count++] = step;
	return 0;
}

/* Adds the key whose characters were put from KEY_AT on. */
static int path_add_key(struct path_parser *parser, size_t key_at)
{
	struct buf *keys = &parser->path->keys;
	int r = buf_error(keys);

	return r < 0 ? r : path_add_step(parser,
		(struct path_step){.type = STEP_KEY, .key_at = key_at, .key_size = keys->size - key_at});
}

/* Returns whether C needs neither brackets nor a backslash in a key. */
static bool path_is_plain_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '/' || c == '$' ||
	       c == '@' || c == ':' || (unsigned char)c >= 0x80;
}

/* Parses a key as in `a.b`, and as kubectl writes it in `labels.app\.kubernetes\.io/name`. */
static int path_parse_plain_key(struct path_parser *parser)
{
	struct buf *keys = &parser->path->keys;
	size_t key_at = keys->size;
	const char *start = parser->p;

	for (; path_is_plain_char(path_peek(parser)) || path_peek(parser) == '\\'; parser->p++) {
		if (*parser->p == '\\' && ++parser->p == parser->end)
			return path_syntax(parser, "nothing follows the backslash");
		buf_byte(keys, (uint8_t)*parser->p);
	}
	if (parser->p == start)
		return path_syntax(parser, "expected a key");
	return path_add_key(parser, key_at);
}

/* Parses the rest of ['key'], with \' and \\ in it. */
static int path_parse_quoted_key(struct path_parser *parser, char quote)
{
	struct buf *keys = &parser->path->keys;
	size_t key_at = keys->size;

	for (; parser->p < parser->end && *parser->p != quote; parser->p++) {
		if (*parser->p == '\\' && ++parser->p == parser->end)
			break;
		buf_byte(keys, (uint8_t)*parser->p);
	}
	if (!path_take(parser, quote))
		return path_syntax(parser, "the quote does not end");
	return path_add_key(parser, key_at);
}

static int path_parse_index(struct path_parser *parser)
{
	uint32_t index = 0;

	if (!isdigit((unsigned char)path_peek(parser)))
		return path_syntax(parser, "expected '*', a number or a quoted key");
	for (; isdigit((unsigned char)path_peek(parser)); parser->p++) {
		if (__builtin_mul_overflow(index, 10u, &index) ||
			__builtin_add_overflow(index, (uint32_t)(*parser->p - '0'), &index))
			return path_syntax(parser, "the number is too large");
	}
	return path_add_step(parser, (struct path_step){.type = STEP_INDEX, .index = index});
}

static int path_parse_bracket(struct path_parser *parser)
{
	int r;

	if (path_take(parser, '*'))
		r = path_add_step(parser, (struct path_step){.type = STEP_ALL});
	else if (path_take(parser, '\''))
		r = path_parse_quoted_key(parser, '\'');
	else if (path_take(parser, '"'))
		r = path_parse_quoted_key(parser, '"');
	else
		r = path_parse_index(parser);
	if (r < 0)
		return r;
	return path_take(parser, ']') ? 0 : path_syntax(parser, "expected ']'");
}

static int path_parse_steps(struct path_parser *parser)
{
	int r = 0;

	if (path_take(parser, '[')) {
		r = path_parse_bracket(parser);
	} else {
		(void)path_take(parser, '.'); /* may be left out */
		r = path_parse_plain_key(parser);
	}
	while (r == 0 && parser->p < parser->end) {
		if (path_take(parser, '['))
			r = path_parse_bracket(parser);
		else if (path_take(parser, '.'))
			r = path_parse_plain_key(parser);
		else
			return path_syntax(parser, "expected '.' or '['");
	}
	return r;
}

/* ---- canonical text ---- */

static struct bytes path_step_key(const struct path *path, const struct path_step *step)
{
	return BYTES(path->keys.data + step->key_at, step->key_size);
}

static void path_put_key(struct buf *text, struct bytes key, bool is_first)
{
	const char *p = key.data;
	bool plain = key.size > 0;

	for (size_t i = 0; i < key.size; i++)
		plain &= path_is_plain_char(p[i]);
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

static int path_put_text(struct path *path)
{
	for (size_t i = 0; i < path->count; i++) {
		const struct path_step *step = &path->steps[i];
		if (step->type == STEP_KEY)
			path_put_key(&path->text, path_step_key(path, step), i == 0);
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
	struct path_parser parser = {text, text, text + strlen(text), path};
	if (path_take(&parser, '{')) {
		if (parser.p == parser.end || parser.end[-1] != '}')
			return path_syntax(&parser, "expected '}' at the end");
		parser.end--;
	}
	int r = path_parse_steps(&parser);
	if (r == 0)
		r = path_put_text(path);
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
		*ret_key = path_step_key(path, &path->steps[i]);
	return path->n_keys;
}

/* ---- evaluation ---- */

struct path_evaluation {
	const struct path *path;
	path_found_fn *found_fn;
	void *arg;
};

static int path_evaluate(const struct path_evaluation *evaluation, size_t i, const struct value *value);

static int path_evaluate_all(const struct path_evaluation *evaluation, size_t i,
	const struct value *value)
{
	struct value_iter iter;
	struct value item;
	int r;

	value_iter_init(&iter, value);
	while ((r = value_iter_next(&iter, NULL, &item)) == FOUND) {
		r = path_evaluate(evaluation, i + 1, &item);
		if (r != 0)
			return r;
	}
	return r < 0 ? r : 0;
}

/* Finds the item of an array at INDEX. */
static int path_item_at(const struct value *value, uint32_t index, struct value *ret_item)
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

/* Follows the path from step I on; the steps before it led to VALUE. */
static int path_evaluate(const struct path_evaluation *evaluation, size_t i, const struct value *value)
{
	const struct path *path = evaluation->path;
	struct value here = *value;

	for (; i < path->count; i++) {
		const struct path_step *step = &path->steps[i];
		int r;
		if (step->type == STEP_ALL)
			return path_evaluate_all(evaluation, i, &here);
		struct value next;
		if (step->type == STEP_KEY)
			r = value_find(&here, path_step_key(path, step), &next);
		else
			r = path_item_at(&here, step->index, &next);
		if (r != FOUND)
			return r < 0 ? r : 0;
		here = next;
	}
	return evaluation->found_fn(evaluation->arg, &here);
}

int path_eval(const struct path *path, struct bytes document, path_found_fn *found_fn, void *arg)
{
	struct path_evaluation evaluation = {path, found_fn, arg};
	struct value root;

	CHECK_OBJ(path, PATH_MAGIC);
	int r = value_read(document, &root);
	return r < 0 ? r : path_evaluate(&evaluation, 0, &root);
}

static int path_keep_first(void *arg, const struct value *value)
{
	*(struct value *)arg = *value;
	return END;
}

int path_first(const struct path *path, struct bytes document, struct value *ret_value)
{
	int r = path_eval(path, document, path_keep_first, ret_value);

	return r == END ? FOUND : r == 0 ? NOT_FOUND : r;
}
