/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grammar of field selectors (docs/protocol.md 10.2): terms separated by commas, each
 * KEY=VALUE, KEY==VALUE or KEY!=VALUE. In a value a backslash stands before `\`, `,` and `=`. A
 * blank is a character like any other. KEY is a field path (common/value/path.h), in whose brackets commas
 * and operators are its own.
 */
#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/selector_internal.h"

/* Returns the size of the bracket of a path at TEXT, with its brackets; 0 if it does not end. */
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

/* Removes the backslashes from TEXT in place. */
static int fields_unescape(char *text, size_t size, struct bytes *ret_value)
{
	const char *p = text, *end = text + size;
	char *to = text;

	for (; p < end; p++) {
		if (*p == '=') /* a comma would have ended the term */
			return err_say(ERR_SYNTAX,
				"invalid field selector: unescaped character in value: %d", *p);
		if (*p == '\\' && (++p == end || !strchr("\\,=", *p))) {
			int n = p < end; /* one UTF-8 character, with its continuation bytes */
			while (n && p + n < end && ((uint8_t)p[n] & 0xc0) == 0x80)
				n++;
			return err_say(ERR_SYNTAX,
				"invalid field selector: invalid escape sequence: \\%.*s", n, p);
		}
		*to++ = *p;
	}
	*ret_value = BYTES(text, (size_t)(to - text));
	return 0;
}

static int fields_add_term(struct selector *selector, char *term, size_t size, const char *whole)
{
	size_t key_size = 0; /* up to the first operator */

	while (key_size < size && term[key_size] != '=' &&
		!(term[key_size] == '!' && key_size + 1 < size && term[key_size + 1] == '=')) {
		size_t bracket = term[key_size] == '['
			? fields_bracket_size(term + key_size, size - key_size) : 0;
		key_size += bracket ? bracket : 1;
	}
	if (key_size == size)
		return err_say(ERR_SYNTAX, "invalid selector: '%s'; can't understand '%.*s'", whole,
			(int)size, term);
	bool is_negative = term[key_size] == '!';
	bool is_double = is_negative || (key_size + 1 < size && term[key_size + 1] == '=');
	size_t value_at = key_size + 1 + is_double;
	struct bytes value;
	int r = fields_unescape(term + value_at, size - value_at, &value);
	if (r < 0)
		return r;
	if (!key_size && !value.size) /* as at the API server: no requirement */
		return 0;
	return selector_add(selector, (struct selector_requirement){.key = BYTES(term, key_size),
					      .op = is_negative ? SELECTOR_NOT_IN : SELECTOR_IN,
					      .values = &value,
					      .n_values = 1});
}

int selector_parse_fields(const char *text, struct selector **ret_selector)
{
	CLEANUP(selector_free) struct selector *selector = NULL;
	int r = selector_new(text, true, &selector);

	if (r < 0)
		return r;
	char *p = selector_source(selector);
	while (r == 0 && *p) {
		size_t size = 0; /* up to the first comma without a backslash before it */
		bool in_key = true;
		while (p[size] && p[size] != ',') {
			size_t bracket = in_key && p[size] == '['
				? fields_bracket_size(p + size, strlen(p + size)) : 0;

			in_key &= p[size] != '=';
			size += bracket ? bracket : p[size] == '\\' && p[size + 1] ? 2 : 1;
		}
		bool is_last = !p[size];
		if (size) /* an empty term is no requirement */
			r = fields_add_term(selector, p, size, text);
		p += size + !is_last;
	}
	if (r == 0)
		r = selector_finish(selector);
	if (r < 0)
		return r;
	*ret_selector = TAKE(selector);
	return 0;
}
