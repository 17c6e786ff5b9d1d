/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of label selectors (docs/protocol.md 10.1), with the messages of the API server. */
#include <stdlib.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/text.h"
#include "common/value/selector_internal.h"

#define NAME_MAX_SIZE   63
#define PREFIX_MAX_SIZE 253

/* ---- what keys and values may look like --------------------------------- */

static bool labels_is_lower_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* ([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9] */
static bool labels_is_name(struct bytes text)
{
	const char *p = text.data;

	for (size_t i = 0; i < text.size; i++) {
		bool is_edge = i == 0 || i + 1 == text.size;
		if (!labels_is_lower_or_digit(p[i]) && !(p[i] >= 'A' && p[i] <= 'Z') &&
			(is_edge || (p[i] != '-' && p[i] != '_' && p[i] != '.')))
			return false;
	}
	return text.size > 0;
}

/* Labels of a-z, 0-9 and inner dashes, separated by dots. */
static bool labels_is_subdomain(struct bytes text)
{
	const char *p = text.data;
	bool at_edge = true; /* only a letter or digit is allowed here */

	for (size_t i = 0; i < text.size; i++) {
		if (!labels_is_lower_or_digit(p[i]) && (at_edge || (p[i] != '-' && p[i] != '.')))
			return false;
		if (p[i] == '.' && p[i - 1] == '-')
			return false;
		at_edge = p[i] == '.';
	}
	return text.size > 0 && labels_is_lower_or_digit(p[text.size - 1]);
}

#define NAME_RULE \
	"must consist of alphanumeric characters, '-', '_' or '.', and must start and end with " \
	"an " \
	"alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for " \
	"validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
#define PREFIX_RULE \
	"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' " \
	"or '.', and must start and end with an alphanumeric character (e.g. 'example.com', " \
	"regex used for validation is " \
	"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define VALUE_RULE \
	"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' " \
	"or " \
	"'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or " \
	"'my_value',  or '12345', regex used for validation is " \
	"'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

/* Adds a complaint to the others. */
static void labels_complain(struct buf *complaints, const char *part, const char *what)
{
	buf_str(complaints, complaints->size ? "; " : "");
	buf_str(complaints, part);
	buf_str(complaints, what);
}

static void labels_check_key(struct bytes key, struct buf *complaints)
{
	const char *start = key.data, *end = start + key.size;
	const char *slash = memchr(start, '/', key.size);
	struct bytes name = key;

	if (slash) {
		name = BYTES(slash + 1, (size_t)(end - slash - 1));
		if (memchr(name.data, '/', name.size)) {
			labels_complain(complaints, "a valid label key ",
				NAME_RULE " with an optional DNS subdomain prefix and '/' (e.g. "
					  "'example.com/MyName')");
			return;
		}
		struct bytes prefix = BYTES(start, (size_t)(slash - start));
		if (!prefix.size)
			labels_complain(complaints, "prefix part ", "must be non-empty");
		else if (prefix.size > PREFIX_MAX_SIZE)
			labels_complain(
				complaints, "prefix part ", "must be no more than 253 bytes");
		if (prefix.size && !labels_is_subdomain(prefix))
			labels_complain(complaints, "prefix part ", PREFIX_RULE);
	}
	if (!name.size)
		labels_complain(complaints, "name part ", "must be non-empty");
	else if (name.size > NAME_MAX_SIZE)
		labels_complain(complaints, "name part ", "must be no more than 63 bytes");
	if (!labels_is_name(name))
		labels_complain(complaints, "name part ", NAME_RULE);
}

/* ---- tokens ------------------------------------------------------------- */

enum labels_token_type {
	TOKEN_END,
	TOKEN_WORD,
	TOKEN_IN,     /* a word, except at an operator's position */
	TOKEN_NOT_IN, /* likewise */
	TOKEN_OPEN,
	TOKEN_CLOSE,
	TOKEN_COMMA,
	TOKEN_NOT,
	TOKEN_EQUAL, /* = and == */
	TOKEN_NOT_EQUAL,
	TOKEN_GREATER,
	TOKEN_LESS,
};

struct labels_token {
	enum labels_token_type type;
	struct bytes text;
};

struct labels_parser {
	const char *p;
	struct labels_token token; /* the next one, not yet taken */
	struct selector *selector;
	struct bytes *values; /* of the requirement being read */
	size_t n_values, values_room;
};

static bool labels_is_special(char c)
{
	return strchr("=!(),><", c) != NULL; /* the NUL at the end too */
}

static bool labels_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static enum labels_token_type labels_special_type(const char *p, size_t size)
{
	switch (*p) {
	case '(':
		return TOKEN_OPEN;
	case ')':
		return TOKEN_CLOSE;
	case ',':
		return TOKEN_COMMA;
	case '>':
		return TOKEN_GREATER;
	case '<':
		return TOKEN_LESS;
	case '=':
		return TOKEN_EQUAL;
	default:
		return size == 2 ? TOKEN_NOT_EQUAL : TOKEN_NOT;
	}
}

/* Takes the current token, and reads the next. */
static struct labels_token labels_take_operator(struct labels_parser *parser)
{
	struct labels_token taken = parser->token;

	while (labels_is_blank(*parser->p))
		parser->p++;
	const char *p = parser->p;
	size_t size = (*p == '=' || *p == '!') && p[1] == '=' ? 2 : 1;
	if (!*p) {
		parser->token = (struct labels_token){TOKEN_END, BYTES(p, 0)};
	} else if (labels_is_special(*p)) {
		parser->token = (struct labels_token){labels_special_type(p, size), BYTES(p, size)};
	} else {
		for (size = 0; !labels_is_special(p[size]) && !labels_is_blank(p[size]);)
			size++;
		struct bytes word = BYTES(p, size);

		parser->token =
			(struct labels_token){bytes_equal(word, BYTES_LIT("in"))      ? TOKEN_IN
					      : bytes_equal(word, BYTES_LIT("notin")) ? TOKEN_NOT_IN
										      : TOKEN_WORD,
				word};
	}
	parser->p += parser->token.text.size;
	return taken;
}

static enum labels_token_type labels_as_word(enum labels_token_type type)
{
	return type == TOKEN_IN || type == TOKEN_NOT_IN ? TOKEN_WORD : type;
}

/* Takes a token other than an operator: `in` and `notin` are words then. */
static struct labels_token labels_take_token(struct labels_parser *parser)
{
	struct labels_token taken = labels_take_operator(parser);

	taken.type = labels_as_word(taken.type);
	return taken;
}

static enum labels_token_type labels_next_type(const struct labels_parser *parser)
{
	return labels_as_word(parser->token.type);
}

static int labels_unexpected(struct labels_token token, const char *what)
{
	return err_say(ERR_SYNTAX, "found '%.*s', expected: %s", BYTES_ARG(token.text), what);
}

/* ---- grammar ------------------------------------------------------------ */

static int labels_add_value(struct labels_parser *parser, struct bytes value)
{
	return ARRAY_ADD(
		parser->values, parser->n_values, parser->values_room, value, "a label selector");
}

/* Parses the values of a set up to its ')'. An empty item between commas is "". */
static int labels_parse_members(struct labels_parser *parser)
{
	for (;;) {
		struct labels_token token = labels_take_token(parser);
		int r = 0;
		if (token.type == TOKEN_WORD) {
			r = labels_add_value(parser, token.text);
			if (r < 0 || labels_next_type(parser) == TOKEN_CLOSE)
				return r;
			if (labels_next_type(parser) != TOKEN_COMMA)
				return labels_unexpected(parser->token, "',' or ')'");
			continue;
		}
		if (token.type != TOKEN_COMMA)
			return labels_unexpected(token, "',', or identifier");
		enum labels_token_type next = labels_next_type(parser);
		if (parser->n_values == 0 || next == TOKEN_CLOSE || next == TOKEN_COMMA)
			r = labels_add_value(parser, BYTES_LIT(""));
		if (r < 0 || next == TOKEN_CLOSE)
			return r;
	}
}

static int labels_parse_set(struct labels_parser *parser)
{
	struct labels_token token = labels_take_token(parser);

	if (token.type != TOKEN_OPEN) /* the API server's text has no comma here either */
		return err_say(ERR_SYNTAX, "found '%.*s' expected: '('", BYTES_ARG(token.text));
	int r;
	switch (labels_next_type(parser)) {
	case TOKEN_WORD:
	case TOKEN_COMMA:
		r = labels_parse_members(parser);
		break;
	case TOKEN_CLOSE:
		r = labels_add_value(parser, BYTES_LIT(""));
		break;
	default:
		return labels_unexpected(parser->token, "',', ')' or identifier");
	}
	if (r == 0)
		(void)labels_take_token(parser); /* the ')' seen above */
	return r;
}

static int labels_parse_operator(struct labels_parser *parser, enum selector_op *ret_op)
{
	struct labels_token token = labels_take_operator(parser);

	switch (token.type) {
	case TOKEN_IN:
	case TOKEN_EQUAL:
		*ret_op = SELECTOR_IN;
		break;
	case TOKEN_NOT_IN:
	case TOKEN_NOT_EQUAL:
		*ret_op = SELECTOR_NOT_IN;
		break;
	case TOKEN_GREATER:
		*ret_op = SELECTOR_GREATER;
		break;
	case TOKEN_LESS:
		*ret_op = SELECTOR_LESS;
		break;
	default:
		return labels_unexpected(token, "in, notin, =, ==, !=, gt, lt");
	}
	if (token.type == TOKEN_IN || token.type == TOKEN_NOT_IN)
		return labels_parse_set(parser);
	if (labels_next_type(parser) == TOKEN_END || labels_next_type(parser) == TOKEN_COMMA)
		return labels_add_value(parser, BYTES_LIT(""));
	token = labels_take_token(parser);
	if (token.type != TOKEN_WORD)
		return labels_unexpected(token, "identifier");
	return labels_add_value(parser, token.text);
}

/* Checks the values against the rules of label values. */
static int labels_check_values(const struct selector_requirement *requirement)
{
	CLEANUP(buf_release) struct buf all = BUF_INIT, complaints = BUF_INIT;
	bool is_number = requirement->op == SELECTOR_GREATER || requirement->op == SELECTOR_LESS;
	size_t n = 0;
	int64_t integer;

	for (size_t i = 0; i < requirement->n_values; i++) {
		struct bytes value = requirement->values[i];
		if (is_number && !selector_integer(value, &integer)) {
			buf_printf(&all, "%svalues[%zu]: Invalid value: ", n++ ? ", " : "", i);
			text_put_quoted(value, &all);
			buf_str(&all, ": for 'Gt', 'Lt' operators, the value must be an integer");
		}
		buf_reset(&complaints);
		if (value.size > NAME_MAX_SIZE)
			labels_complain(&complaints, "", "must be no more than 63 bytes");
		if (value.size && !labels_is_name(value))
			labels_complain(&complaints, "", VALUE_RULE);
		int r = buf_error(&complaints);
		if (r < 0)
			return r;
		if (!complaints.size)
			continue;
		buf_printf(&all, "%svalues[%zu][%.*s]: Invalid value: ", n++ ? ", " : "", i,
			BYTES_ARG(requirement->key));
		text_put_quoted(value, &all);
		buf_str(&all, ": ");
		buf_bytes_put(&all, buf_bytes(&complaints));
	}
	if (!n)
		return 0;
	return err_say(ERR_SYNTAX, n > 1 ? "[%s]" : "%s", buf_cstr(&all));
}

static int labels_parse_requirement(struct labels_parser *parser)
{
	CLEANUP(buf_release) struct buf complaints = BUF_INIT, quoted = BUF_INIT;
	struct selector_requirement requirement = {.op = SELECTOR_EXISTS};

	parser->n_values = 0;
	if (labels_next_type(parser) == TOKEN_NOT) {
		requirement.op = SELECTOR_NOT_EXISTS;
		(void)labels_take_token(parser);
	}
	struct labels_token key = labels_take_token(parser);

	if (key.type != TOKEN_WORD)
		return labels_unexpected(key, "identifier");
	labels_check_key(key.text, &complaints);
	int r = buf_error(&complaints); /* a lost complaint must not make the key valid */
	if (r < 0)
		return r;
	if (complaints.size) {
		text_put_quoted(key.text, &quoted);
		return err_say(ERR_SYNTAX, "<nil>: Invalid value: %s: %s", buf_cstr(&quoted),
			buf_cstr(&complaints));
	}
	requirement.key = key.text;
	bool is_bare =
		labels_next_type(parser) == TOKEN_END || labels_next_type(parser) == TOKEN_COMMA;
	if (requirement.op == SELECTOR_EXISTS && !is_bare)
		r = labels_parse_operator(parser, &requirement.op);
	if (r < 0)
		return r;
	requirement.values = parser->values;
	requirement.n_values = parser->n_values;
	r = selector_add(parser->selector, requirement);
	return r < 0 ? r
		     : labels_check_values(
			       selector_at(parser->selector, selector_count(parser->selector) - 1));
}

static bool labels_begins_requirement(const struct labels_parser *parser)
{
	return labels_next_type(parser) == TOKEN_WORD || labels_next_type(parser) == TOKEN_NOT;
}

static int labels_parse_requirements(struct labels_parser *parser)
{
	if (labels_next_type(parser) == TOKEN_END)
		return 0;
	if (!labels_begins_requirement(parser))
		return labels_unexpected(parser->token, "!, identifier, or 'end of string'");
	for (;;) {
		int r = labels_parse_requirement(parser);
		if (r < 0)
			return r == ERR_SYNTAX ? err_add(r, "unable to parse requirement") : r;
		struct labels_token token = labels_take_token(parser);
		if (token.type == TOKEN_END)
			return 0;
		if (token.type != TOKEN_COMMA)
			return labels_unexpected(token, "',' or 'end of string'");
		if (!labels_begins_requirement(parser))
			return labels_unexpected(parser->token, "identifier after ','");
	}
}

int selector_parse_labels(const char *text, struct selector **ret_selector)
{
	CLEANUP(selector_free) struct selector *selector = NULL;
	int r = selector_new(text, false, &selector);

	if (r < 0)
		return r;
	struct labels_parser parser = {.p = selector_source(selector), .selector = selector};
	(void)labels_take_token(&parser); /* reads the first */
	r = labels_parse_requirements(&parser);
	free(parser.values);
	if (r == 0)
		r = selector_finish(selector);
	if (r < 0)
		return r;
	*ret_selector = TAKE(selector);
	return 0;
}
