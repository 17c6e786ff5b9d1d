/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grammar of field selectors (docs/protocol.md 10.2): terms separated by commas, each
 * KEY=VALUE, KEY==VALUE or KEY!=VALUE. In a value a backslash stands before `\`, `,` and `=`. A
 * blank is a character like any other. KEY is a field path (common/value/path.h); commas and
 * operators in its brackets are its own. Readers also compare (selector_parse_query()).
 */
#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/selector_internal.h"

/* Returns the size of a path's bracket at TEXT, inclusive; 0 if it does not end. */
static size_t fields_bracket_size(const char *text, size_t size)
{
	size_t depth = 0;
	char quote = '\0';

	for (size_t i = 0; i < size; i++) {
		if (quote && text[i] == '\\')
			i++;
		else if (quote)
			quote = text[i] == quote ? '\0' : quote;
		else if (text[i] == '\'' || text[i] == '"')
			quote = text[i];
		else if (text[i] == '[')
			depth++;
		else if (text[i] == ']' && --depth == 0)
			return i + 1;
	}
	return 0;
}

/* The grammar of a whole selector: the API server's, or the readers' with comparisons. */
struct fields_grammar {
	const char *text;
	bool is_query;
};

/* Removes the backslashes from TEXT in place. */
static int fields_unescape(
	const struct fields_grammar *grammar, char *text, size_t size, struct bytes *ret_value)
{
	const char *p = text, *end = text + size;
	char *to = text;

	for (; p < end; p++) {
		if (*p == '=' && grammar->is_query)
			return err_say(ERR_SYNTAX,
				"field selector '%s': a '=' within a value is written '\\='",
				grammar->text);
		if (*p == '=') /* a comma would have ended the term */
			return err_say(ERR_SYNTAX,
				"invalid field selector: unescaped character in value: %d", *p);
		if (*p == '\\' && (++p == end || !strchr("\\,=", *p))) {
			int n = p < end; /* one UTF-8 character, with its continuation bytes */
			while (n && p + n < end && ((uint8_t)p[n] & 0xc0) == 0x80)
				n++;
			if (grammar->is_query)
				return err_say(ERR_SYNTAX,
					"field selector '%s': only '\\', ',' and '=' are written "
					"with a backslash before them, not '%.*s'",
					grammar->text, n, p);
			return err_say(ERR_SYNTAX,
				"invalid field selector: invalid escape sequence: \\%.*s", n, p);
		}
		*to++ = *p;
	}
	*ret_value = BYTES(text, (size_t)(to - text));
	return 0;
}

/* Removes leading blanks, and with BOTH trailing ones. */
static struct bytes fields_trim(struct bytes text, bool both)
{
	const char *p = text.data;

	while (both && text.size && p[text.size - 1] == ' ')
		text.size--;
	while (text.size && *p == ' ')
		p++, text.size--;
	return BYTES(p, text.size);
}

static enum selector_op fields_operator(const char *text, bool has_equals)
{
	switch (*text) {
	case '!':
		return SELECTOR_NOT_IN;
	case '<':
		return has_equals ? SELECTOR_LESS_EQUAL : SELECTOR_LESS;
	case '>':
		return has_equals ? SELECTOR_GREATER_EQUAL : SELECTOR_GREATER;
	default:
		return SELECTOR_IN;
	}
}

static int fields_add_term(
	const struct fields_grammar *grammar, struct selector *selector, char *term, size_t size)
{
	size_t key_size = 0;

	while (key_size < size && term[key_size] != '=' &&
		!(term[key_size] == '!' && key_size + 1 < size && term[key_size + 1] == '=') &&
		!(grammar->is_query && (term[key_size] == '<' || term[key_size] == '>'))) {
		size_t bracket = term[key_size] == '['
					 ? fields_bracket_size(term + key_size, size - key_size)
					 : 0;
		key_size += bracket ? bracket : 1;
	}
	if (key_size == size && grammar->is_query)
		return err_say(ERR_SYNTAX,
			"field selector '%s': '%.*s' has none of = != < <= > >=", grammar->text,
			(int)size, term);
	if (key_size == size)
		return err_say(ERR_SYNTAX, "invalid selector: '%s'; can't understand '%.*s'",
			grammar->text, (int)size, term);
	bool has_equals = key_size + 1 < size && term[key_size + 1] == '=';
	enum selector_op op = fields_operator(term + key_size, has_equals);
	bool compares = selector_op_compares(op);
	size_t value_at = key_size + 1 + has_equals;
	struct bytes key = BYTES(term, key_size), value;
	int r = fields_unescape(grammar, term + value_at, size - value_at, &value);
	if (r < 0)
		return r;
	if (grammar->is_query)
		key = fields_trim(key, compares);
	if (!key.size && !value.size) /* as in the API server: no requirement */
		return 0;
	if (compares)
		value = fields_trim(value, true);
	else if (grammar->is_query && bytes_equal(key, BYTES_LIT(SELECTOR_AGE)))
		return err_say(ERR_SYNTAX,
			"field selector '%s': compare 'age', the time since an object was created, "
			"with < or >; a field of that name is '.age'",
			grammar->text);
	r = selector_add(selector, (struct selector_requirement){
					   .key = key, .op = op, .values = &value, .n_values = 1});
	if (r == ERR_SYNTAX && grammar->is_query)
		return err_add(r, "field selector '%s'", grammar->text);
	if (r == ERR_SYNTAX)
		return err_say(r, "field label not supported: %.*s", BYTES_ARG(key));
	return r;
}

static int fields_parse(const struct fields_grammar *grammar, struct selector **ret_selector)
{
	CLEANUP(selector_free) struct selector *selector = NULL;
	int r = selector_new(grammar->text, true, &selector);

	if (r < 0)
		return r;
	char *p = selector_source(selector);
	while (r == 0 && *p) {
		size_t size = 0; /* up to the first comma without a backslash before it */
		bool in_key = true;
		while (p[size] && p[size] != ',') {
			size_t bracket = in_key && p[size] == '['
						 ? fields_bracket_size(p + size, strlen(p + size))
						 : 0;

			in_key &= p[size] != '=' &&
				  !(grammar->is_query && (p[size] == '<' || p[size] == '>'));
			size += bracket ? bracket : p[size] == '\\' && p[size + 1] ? 2 : 1;
		}
		bool is_last = !p[size];
		if (size) /* an empty term is no requirement */
			r = fields_add_term(grammar, selector, p, size);
		p += size + !is_last;
	}
	if (r == 0)
		r = selector_finish(selector);
	if (r < 0)
		return r;
	*ret_selector = TAKE(selector);
	return 0;
}

int selector_parse_fields(const char *text, struct selector **ret_selector)
{
	return fields_parse(&(struct fields_grammar){text, false}, ret_selector);
}

int selector_parse_query(const char *text, struct selector **ret_selector)
{
	return fields_parse(&(struct fields_grammar){text, true}, ret_selector);
}
