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

	return r < 0 ? r
		     : path_add_step(parser, (struct path_step){.type = STEP_KEY,
						     .key_at = key_at,
						     .key_size = keys->size - key_at});
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

static int path_parse_bracket(struct path_parser *parser)
{
	uint32_t index = 0;
	int r;

	if (path_take(parser, '*')) {
		r = path_add_step(parser, (struct path_step){.type = STEP_ALL});
	} else if (path_take(parser, '\'')) {
		r = path_parse_quoted_key(parser, '\'');
	} else if (path_take(parser, '"')) {
		r = path_parse_quoted_key(parser, '"');
	} else {
		if (!isdigit((unsigned char)path_peek(parser)))
			return path_syntax(parser, "expected '*', a number or a quoted key");
		for (; isdigit((unsigned char)path_peek(parser)); parser->p++)
			if (__builtin_mul_overflow(index, 10u, &index) ||
				__builtin_add_overflow(index, (uint32_t)(*parser->p - '0'), &index))
				return path_syntax(parser, "the number is too large");
		r = path_add_step(parser, (struct path_step){.type = STEP_INDEX, .index = index});
	}
	if (r < 0)
		return r;
	return path_take(parser, ']') ? 0 : path_syntax(parser, "expected ']'");
}

/* ---- canonical text ---- */

static struct bytes path_step_key(const struct path *path, const struct path_step *step)
{
	return BYTES(path->keys.data + step->key_at, step->key_size);
}

static int path_put_text(struct path *path)
{
	struct buf *text = &path->text;

	for (size_t i = 0; i < path->count; i++) {
		const struct path_step *step = &path->steps[i];

		if (step->type == STEP_INDEX)
			buf_printf(text, "[%u]", step->index);
		if (step->type == STEP_ALL)
			buf_str(text, "[*]");
		if (step->type != STEP_KEY)
			continue;

		struct bytes key = path_step_key(path, step);
		const char *p = key.data;
		bool plain = key.size > 0;

		for (size_t k = 0; k < key.size; k++)
			plain &= path_is_plain_char(p[k]);
		if (plain) {
			buf_str(text, i == 0 ? "" : ".");
			buf_bytes_put(text, key);
			continue;
		}
		buf_str(text, "['");
		for (size_t k = 0; k < key.size; k++) {
			if (p[k] == '\'' || p[k] == '\\')
				buf_byte(text, '\\');
			buf_byte(text, (uint8_t)p[k]);
		}
		buf_str(text, "']");
	}
	(void)buf_cstr(text); /* allocates, so that path_text() need not */
	return buf_error(text);
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

	int r = 0;

	for (bool is_first = true; r == 0 && (is_first || parser.p < parser.end);
		is_first = false) {
		if (path_take(&parser, '['))
			r = path_parse_bracket(&parser);
		else if (path_take(&parser, '.') || is_first) /* the first '.' may be left out */
			r = path_parse_plain_key(&parser);
		else
			return path_syntax(&parser, "expected '.' or '['");
	}
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

/* Follows the path from step I on; the steps before it led to VALUE. */
static int path_evaluate(
	const struct path_evaluation *evaluation, size_t i, const struct value *value)
{
	const struct path *path = evaluation->path;
	struct value here = *value;

	for (; i < path->count; i++) {
		const struct path_step *step = &path->steps[i];
		struct value_iter iter;
		struct value next;
		int r = NOT_FOUND;

		if (step->type == STEP_ALL) {
			value_iter_init(&iter, &here);
			while ((r = value_iter_next(&iter, NULL, &next)) == FOUND) {
				r = path_evaluate(evaluation, i + 1, &next);
				if (r != 0)
					return r;
			}
			return r < 0 ? r : 0;
		}
		if (step->type == STEP_KEY) {
			r = value_find(&here, path_step_key(path, step), &next);
		} else if (here.type == VALUE_ARRAY && step->index < here.count) {
			value_iter_init(&iter, &here);
			r = FOUND;
			for (uint32_t k = 0; r == FOUND && k <= step->index; k++)
				r = value_iter_next(&iter, NULL, &next);
		}
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
