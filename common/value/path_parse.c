/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/decimal.h"
#include "common/text/utf8.h"
#include "common/value/path_internal.h"

#define PATH_NESTED_MAX 8 /* filters within filters */
/* A path may come from a custom resource's columns. Each union multiplies the values by its
 * members, and each ".." visits a value once for each level above: without a limit twenty unions of
 * ten members would never end. */
#define PATH_WAYS_MAX     256
#define PATH_DESCENTS_MAX 3

/* ---- parsing ------------------------------------------------------------ */

struct path_cost {
	size_t ways;       /* combinations of the members of all unions */
	unsigned descents; /* steps ".." */
};

struct path_parser {
	const char *text;
	const char *p;
	const char *end;
	struct path *path;
	struct path_cost *cost; /* of all parts of the path */
	unsigned depth;         /* of filters and unions around this path */
	bool blanks;            /* may stand between steps: in braces and filters */
};

static int path_parse_steps(struct path_parser *parser);

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

static bool path_take_text(struct path_parser *parser, const char *text)
{
	size_t size = strlen(text);

	if ((size_t)(parser->end - parser->p) < size || memcmp(parser->p, text, size) != 0)
		return false;
	parser->p += size;
	return true;
}

static void path_skip_blanks(struct path_parser *parser)
{
	while (parser->blanks && (path_peek(parser) == ' ' || path_peek(parser) == '\t'))
		parser->p++;
}

static int path_add_step(struct path_parser *parser, struct path_step step)
{
	struct path *path = parser->path;

	if (path->count == PATH_STEPS_MAX)
		return path_syntax(parser, "too many steps");
	if (step.type == STEP_KEY && path->n_keys == path->count)
		path->n_keys++;
	path->is_plural |= step.type != STEP_KEY && step.type != STEP_INDEX;
	path->steps[path->count++] = step;
	return 0;
}

/* Adds the key put from KEY_AT on. */
static int path_add_key(struct path_parser *parser, size_t key_at)
{
	struct buf *keys = &parser->path->keys;
	int r = buf_error(keys);

	return r < 0 ? r
		     : path_add_step(parser, (struct path_step){.type = STEP_KEY,
						     .key_at = key_at,
						     .key_size = keys->size - key_at});
}

/* Parses a key as in `a.b` or kubectl's `labels.app\.kubernetes\.io/name`. */
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

/* Parses an optional number. Returns: FOUND, NOT_FOUND, ERR_SYNTAX. */
static int path_parse_number(struct path_parser *parser, int64_t *ret_number)
{
	bool negative = path_take(parser, '-');
	int64_t number = 0;

	if (!isdigit((unsigned char)path_peek(parser)))
		return negative ? path_syntax(parser, "expected a number") : NOT_FOUND;
	for (; isdigit((unsigned char)path_peek(parser)); parser->p++) {
		number = number * 10 + (*parser->p - '0');
		if (number > UINT32_MAX)
			return path_syntax(parser, "the number is too large");
	}
	*ret_number = negative ? -number : number;
	return FOUND;
}

/* Parses one member of a bracket, up to `]` or `,`. */
static int path_parse_member(struct path_parser *parser)
{
	int64_t number = 0;

	if (path_take(parser, '*'))
		return path_add_step(parser, (struct path_step){.type = STEP_ALL});
	if (path_take(parser, '\''))
		return path_parse_quoted_key(parser, '\'');
	if (path_take(parser, '"'))
		return path_parse_quoted_key(parser, '"');
	int r = path_parse_number(parser, &number);
	if (r < 0)
		return r;
	if (path_take(parser, ':')) { /* after the first number, which may be left out */
		struct path_step slice = {.type = STEP_SLICE,
			.from = number,
			.has_from = r == FOUND,
			.to = INT64_MAX,
			.by = 1};

		r = path_parse_number(parser, &slice.to);
		if (r >= 0 && path_take(parser, ':'))
			r = path_parse_number(parser, &slice.by);
		if (r >= 0 && slice.by <= 0)
			r = path_syntax(parser, "the step of a slice must be above 0");
		return r < 0 ? r : path_add_step(parser, slice);
	}
	if (r == NOT_FOUND)
		return path_syntax(parser,
			"expected '*', a number, a slice, a quoted key, a filter '?(...)' or "
			"KEY=VALUE");
	return path_add_step(parser, (struct path_step){.type = STEP_INDEX, .from = number});
}

/* ---- parts of a path ---------------------------------------------------- */

static int path_new(struct path **ret_path)
{
	struct path *path = calloc(1, sizeof(*path));

	if (!path)
		return err_set(-ENOMEM, "allocating a field path");
	path->magic = PATH_MAGIC;
	*ret_path = path;
	return 0;
}

/* Parses with PARSE into a new path, from PARSER's position. */
static int path_parse_part(
	struct path_parser *parser, int (*parse)(struct path_parser *), struct path **ret_path)
{
	struct path_parser part = *parser;

	if (++part.depth > PATH_NESTED_MAX)
		return path_syntax(parser, "too many filters within each other");
	int r = path_new(ret_path);
	if (r < 0)
		return r;
	part.path = *ret_path;
	r = parse(&part);
	parser->p = part.p;
	return r;
}

/* Parses the next member of a union. A quoted text with dots is also parsed as a path. */
static int path_parse_union_member(struct path_parser *parser, struct path_union *union_)
{
	struct path_member member = {NULL};

	path_skip_blanks(parser);
	const char *start = parser->p;
	int r = path_parse_part(parser, path_parse_member, &member.path);
	if (r == 0 && (*start == '\'' || *start == '"') &&
		memchr(start, '.', (size_t)(parser->p - start))) {
		struct path_parser inner = *parser;
		inner.p = start + 1;
		inner.end = parser->p - 1;
		r = path_parse_part(&inner, path_parse_steps, &member.otherwise);
		if (r == ERR_SYNTAX || (r == 0 && inner.p < inner.end)) {
			path_free(&member.otherwise);
			err_forget();
			r = 0;
		}
	}
	member.text = strndup(start, (size_t)(parser->p - start));
	if (!member.text && r == 0)
		r = err_set(-ENOMEM, "a field path");
	path_skip_blanks(parser);
	if (r == 0)
		r = ARRAY_ADD(union_->members, union_->n, union_->room, member, "a field path");
	if (r < 0) {
		path_free(&member.path);
		path_free(&member.otherwise);
		free(member.text);
	}
	return r;
}

static int path_parse_union(struct path_parser *parser)
{
	struct path_union *union_ = calloc(1, sizeof(*union_));

	if (!union_)
		return err_set(-ENOMEM, "allocating a field path");
	int r = path_add_step(
		parser, (struct path_step){.type = STEP_UNION, .more.union_ = union_});
	if (r < 0) {
		free(union_);
		return r;
	}
	do
		r = path_parse_union_member(parser, union_);
	while (r == 0 && path_take(parser, ','));
	if (r == 0 && union_->n > PATH_WAYS_MAX / parser->cost->ways)
		return path_syntax(parser, "the members of its unions have too many combinations");
	parser->cost->ways *= union_->n;
	return r;
}

static int path_parse_constant(struct path_parser *parser, struct buf *out)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	const char *start = parser->p;

	if (path_peek(parser) == '"' || path_peek(parser) == '\'') {
		if (!path_unquote(&parser->p, parser->end, &text))
			return path_syntax(parser, "the quote does not end");
		value_put_string(out, buf_bytes(&text));
		return buf_error(&text);
	}
	while (isalnum((unsigned char)path_peek(parser)) || path_peek(parser) == '.' ||
		path_peek(parser) == '-' || path_peek(parser) == '+')
		parser->p++;
	struct bytes word = BYTES(start, (size_t)(parser->p - start));
	if (bytes_equal(word, BYTES_LIT("true")) || bytes_equal(word, BYTES_LIT("false")))
		value_put_bool(out, word.size == 4);
	else if (!value_put_number(out, word)) {
		parser->p = start;
		return path_syntax(
			parser, "expected a path, a number, true, false or a quoted text");
	}
	return buf_error(out);
}

static int path_parse_operand(struct path_parser *parser, struct path_operand *operand)
{
	char c;

	path_skip_blanks(parser);
	c = path_peek(parser);
	bool is_path = c == '@' || c == '$' || c == '.' || c == '[';
	int r = is_path ? path_parse_part(parser, path_parse_steps, &operand->path)
			: path_parse_constant(parser, &operand->constant);
	path_skip_blanks(parser);
	return r;
}

static int path_add_filter(struct path_parser *parser, struct path_filter **ret_filter)
{
	struct path_filter *filter = calloc(1, sizeof(*filter));

	if (!filter)
		return err_set(-ENOMEM, "allocating a field path");
	int r = path_add_step(
		parser, (struct path_step){.type = STEP_FILTER, .more.filter = filter});
	if (r < 0)
		free(filter);
	else
		*ret_filter = filter;
	return r;
}

/* Parses the rest of [?(...)]. */
static int path_parse_filter(struct path_parser *parser)
{
	struct path_filter *filter;
	int r = path_add_filter(parser, &filter);

	if (r == 0)
		r = path_parse_operand(parser, &filter->left);
	if (r < 0 || path_take(parser, ')'))
		return r;
	for (int i = PATH_OPERATOR_MAX - 1; i > PATH_EXISTS; i--) /* <= before < */
		if (!filter->operator&& path_take_text(parser, path_operators[i]))
			filter->operator=(enum path_operator) i;
	if (!filter->operator)
		return path_syntax(parser, "expected ')' or one of == != < <= > >=");
	r = path_parse_operand(parser, &filter->right);
	if (r < 0)
		return r;
	return path_take(parser, ')') ? 0 : path_syntax(parser, "expected ')'");
}

/* Parses [key=value], if it is one. */
static int path_parse_short_filter(struct path_parser *parser)
{
	const char *start = parser->p, *p = start;
	struct path_filter *filter;

	while (p < parser->end && (path_is_plain_char(*p) || *p == '.'))
		p++;
	if (p == start || p == parser->end || *p != '=')
		return NOT_FOUND;
	int r = path_add_filter(parser, &filter);
	if (r < 0)
		return r;
	struct path_parser key = *parser;
	key.end = p;
	r = path_parse_part(&key, path_parse_steps, &filter->left.path);
	parser->p = p + 1;
	(void)path_take(parser, '=');
	const char *value = parser->p;
	filter->operator= PATH_EQUAL;
	if (path_peek(parser) == '"' || path_peek(parser) == '\'')
		return r < 0 ? r : path_parse_constant(parser, &filter->right.constant);
	while (parser->p < parser->end && *parser->p != ']')
		parser->p++;
	value_put_string(&filter->right.constant, BYTES(value, (size_t)(parser->p - value)));
	return r < 0 ? r : buf_error(&filter->right.constant);
}

static int path_parse_bracket(struct path_parser *parser)
{
	bool quoted = false, is_union = false;
	char quote = '\0';
	int r;

	bool blanks = parser->blanks;

	parser->blanks = true;
	if (path_take_text(parser, "?(")) {
		r = path_parse_filter(parser);
	} else {
		for (const char *p = parser->p; p < parser->end && (quoted || *p != ']'); p++) {
			is_union |= !quoted && *p == ',';
			if (quoted && *p == '\\' && p + 1 < parser->end)
				p++;
			else if (quoted ? *p == quote : *p == '\'' || *p == '"')
				quoted = !quoted, quote = *p;
		}
		r = is_union ? NOT_FOUND : path_parse_short_filter(parser);
		if (r == NOT_FOUND)
			r = is_union ? path_parse_union(parser) : path_parse_member(parser);
	}
	parser->blanks = blanks;
	if (r < 0)
		return r;
	return path_take(parser, ']') ? 0 : path_syntax(parser, "expected ']'");
}

/* Parses the rest after one dot or two. */
static int path_parse_dot(struct path_parser *parser)
{
	struct path *path = parser->path;

	if (path_take(parser, '.')) {
		if (path->count && path->steps[path->count - 1].type == STEP_RECURSIVE)
			return path_syntax(parser, "'..' twice");
		if (++parser->cost->descents > PATH_DESCENTS_MAX)
			return path_syntax(parser, "too many steps '..'");
		int r = path_add_step(parser, (struct path_step){.type = STEP_RECURSIVE});
		if (r < 0 || (!path_is_plain_char(path_peek(parser)) && path_peek(parser) != '*' &&
				     path_peek(parser) != '\\'))
			return r;
	}
	if (path_take(parser, '*'))
		return path_add_step(parser, (struct path_step){.type = STEP_ALL});
	return path_parse_plain_key(parser);
}

/* Parses steps up to something else. */
static int path_parse_steps(struct path_parser *parser)
{
	bool is_first = true;
	int r = 0;

	path_skip_blanks(parser);
	if ((path_take(parser, '$') || path_take(parser, '@')) &&
		path_is_plain_char(path_peek(parser)))
		parser->p--; /* a key that begins with it */
	for (; r == 0; is_first = false) {
		struct path_parser before = *parser;

		path_skip_blanks(parser);
		if (path_take(parser, '[')) {
			r = path_parse_bracket(parser);
		} else if (path_take(parser, '.')) {
			char next = path_peek(parser);
			if (is_first && (next == '[' || next == '\0' || next == ')' || next == ' '))
				continue; /* the whole value, or a path beginning with a bracket */
			r = path_parse_dot(parser);
		} else if (is_first && path_is_plain_char(path_peek(parser))) {
			r = path_parse_plain_key(parser); /* the first '.' is optional */
		} else if (is_first && path_peek(parser) == '\\') {
			r = path_parse_plain_key(parser);
		} else {
			parser->p = path_peek(parser) == '\0' ? parser->p : before.p;
			break;
		}
	}
	return r;
}

/* ---- quoted texts ------------------------------------------------------- */

static int path_hex(const char **p, const char *end, int n)
{
	int number = 0;

	for (; n; n--, ++*p) {
		int digit = *p < end ? hex_digit(**p) : -1;

		if (digit < 0)
			return -1;
		number = number * 16 + digit;
	}
	return number;
}

bool path_unquote(const char **p, const char *end, struct buf *out)
{
	static const char letters[] = "abfnrtv\\'\"", meanings[] = "\a\b\f\n\r\t\v\\'\"";
	char quote = *(*p)++;
	uint8_t bytes[4];

	for (; *p < end && **p != quote;) {
		char c = *(*p)++;

		if (c != '\\' || *p == end) {
			buf_byte(out, (uint8_t)c);
			continue;
		}
		c = *(*p)++;
		const char *letter = c ? strchr(letters, c) : NULL;
		int code = letter ? meanings[letter - letters] : -1;
		if (c == 'x')
			code = path_hex(p, end, 2);
		else if (c == 'u')
			code = path_hex(p, end, 4);
		if (code < 0)
			return false;
		if (c == 'u')
			buf_put(out, bytes, utf8_put((uint32_t)code, bytes));
		else
			buf_byte(out, (uint8_t)code);
	}
	if (*p == end)
		return false;
	++*p;
	return true;
}

/* ---- public ------------------------------------------------------------- */

int path_parse(const char *text, struct path **ret_path)
{
	CLEANUP(path_free) struct path *path = NULL;
	struct path_cost cost = {.ways = 1};
	struct path_parser parser = {
		.text = text, .p = text, .end = text + strlen(text), .cost = &cost};
	int r = path_new(&path);

	if (r < 0)
		return r;
	parser.path = path;
	if (path_take(&parser, '{')) {
		if (parser.p == parser.end || parser.end[-1] != '}')
			return path_syntax(&parser, "expected '}' at the end");
		parser.end--;
		parser.blanks = true;
	}
	const char *start = parser.p;
	r = path_parse_steps(&parser);
	if (r == 0 && parser.p < parser.end && parser.p > start)
		r = path_syntax(&parser, "expected '.' or '['");
	if (r == 0 && !path->count)
		r = path_syntax(&parser, "expected a key");
	if (r < 0)
		return r;
	path_put_steps(path, &path->text, true);
	(void)buf_cstr(&path->text); /* allocates: path_text() can't fail */
	r = buf_error(&path->text);
	if (r < 0)
		return r;
	*ret_path = TAKE(path);
	return 0;
}
