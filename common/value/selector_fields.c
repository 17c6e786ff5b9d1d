/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Field selectors (docs/protocol.md 10.2): terms separated by commas, each KEY=VALUE, KEY==VALUE or
 * KEY!=VALUE; in values a backslash stands before `\`, `,` and `=`. Blanks mean themselves.
 */
#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/selector_build.h"

/* Length of the term at P: up to the first comma that has no backslash before it. */
static size_t term_size(const char *p)
{
	size_t n = 0;

	while (p[n] && p[n] != ',')
		n += p[n] == '\\' && p[n + 1] ? 2 : 1;
	return n;
}

/* Length of the UTF-8 character at P: continuation bytes go with the first. */
static size_t character_size(const char *p, const char *end)
{
	size_t n = 1;

	while (p + n < end && ((uint8_t)p[n] & 0xc0) == 0x80)
		n++;
	return n;
}

/* Takes the backslashes out of TEXT, which becomes shorter in place. */
static int unescape(char *text, size_t size, struct bytes *ret_value)
{
	const char *p = text, *end = text + size;
	char *to = text;

	for (; p < end; p++) {
		if (*p == '=') /* a comma would have ended the term */
			return err_say(ERR_SYNTAX,
				"invalid field selector: unescaped character in value: %d", *p);
		if (*p == '\\' && (++p == end || !strchr("\\,=", *p)))
			return err_say(ERR_SYNTAX,
				"invalid field selector: invalid escape sequence: \\%.*s",
				p < end ? (int)character_size(p, end) : 0, p);
		*to++ = *p;
	}
	*ret_value = BYTES(text, (size_t)(to - text));
	return 0;
}

/* Where the first operator of a term is; SIZE when there is none. */
static size_t find_operator(const char *term, size_t size)
{
	size_t n = 0;

	while (n < size && term[n] != '=' &&
		!(term[n] == '!' && n + 1 < size && term[n + 1] == '='))
		n++;
	return n;
}

static int add_term(struct selector *selector, char *term, size_t size, const char *whole)
{
	size_t key_size = find_operator(term, size);

	if (key_size == size)
		return err_say(ERR_SYNTAX, "invalid selector: '%s'; can't understand '%.*s'", whole,
			(int)size, term);
	bool is_negative = term[key_size] == '!';
	bool is_double = is_negative || (key_size + 1 < size && term[key_size + 1] == '=');
	size_t value_at = key_size + 1 + is_double;
	struct bytes value;
	int r = unescape(term + value_at, size - value_at, &value);
	if (r < 0)
		return r;
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
		size_t size = term_size(p);
		bool is_last = !p[size];
		if (size) /* empty terms are passed over */
			r = add_term(selector, p, size, text);
		p += size + !is_last;
	}
	if (r == 0)
		r = selector_finish(selector);
	if (r < 0)
		return r;
	*ret_selector = TAKE(selector);
	return 0;
}
