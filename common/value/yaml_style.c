/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/yaml_style.h"

#include <string.h>

#include "common/value/yaml_plain.h"

#define KEY_MAX 128 /* bytes of a simple key */

/* ---- characters --------------------------------------------------------- */

bool yaml_is_break(struct bytes text, size_t at)
{
	const uint8_t *p = (const uint8_t *)text.data + at;
	size_t left = text.size - at;

	return *p == '\n' || *p == '\r' || (*p == 0xc2 && left > 1 && p[1] == 0x85) ||
	       (*p == 0xe2 && left > 2 && p[1] == 0x80 && (p[2] | 1) == 0xa9);
}

size_t yaml_last_break(struct bytes text, size_t end)
{
	const uint8_t *p = text.data;
	size_t at = end;

	while (at && (p[at - 1] & 0xc0) == 0x80)
		at--;
	return at && yaml_is_break(BYTES(p, end), at - 1) ? at - 1 : end;
}

/* go-yaml escapes tabs and all characters beyond the first 65,536. */
static bool style_is_printable(struct bytes text, size_t at)
{
	const uint8_t *p = (const uint8_t *)text.data + at;
	uint8_t second = text.size - at > 1 ? p[1] : 0, third = text.size - at > 2 ? p[2] : 0;

	if (*p < 0x80)
		return *p == '\n' || (*p >= ' ' && *p <= '~');
	if (*p == 0xef)
		return !(second == 0xbb && third == 0xbf) && !(second == 0xbf && third >= 0xbe);
	return (*p == 0xc2 && second >= 0xa0) || (*p > 0xc2 && *p < 0xed) ||
	       (*p == 0xed && second < 0xa0) || *p == 0xee;
}

bool yaml_needs_escape(struct bytes text, size_t at)
{
	static const struct bytes mark =
		BYTES_LIT("\xef\xbb\xbf"); /* go-yaml escapes all of a text beginning with it */
	uint8_t c = ((const uint8_t *)text.data)[at];

	return c == '"' || c == '\\' || !style_is_printable(text, at) || yaml_is_break(text, at) ||
	       bytes_starts(text, mark);
}

/* ---- strings that would be something else ------------------------------- */

static bool style_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *style_skip_digits(const char *p, const char *end)
{
	while (p < end && style_is_digit(*p))
		p++;
	return p;
}

/* Reads a number of one or two digits, FROM to TO. */
static bool style_read_part(const char **at, const char *end, int from, int to, int *ret_number)
{
	const char *p = *at;
	int number = 0;

	for (; p < end && p < *at + 2 && style_is_digit(*p); p++)
		number = number * 10 + (*p - '0');
	bool is_there = p > *at && number >= from && number <= to;
	*at = p;
	*ret_number = number;
	return is_there;
}

static bool style_take(const char **at, const char *end, char c)
{
	bool is_there = *at < end && **at == c;

	*at += is_there;
	return is_there;
}

/* Reads an offset from UTC: Z, or +07:00. */
static bool style_read_zone(const char **at, const char *end)
{
	const char *p = *at;

	if (style_take(at, end, 'Z'))
		return true;
	if (end - p < 6 || (*p != '+' && *p != '-') || !style_is_digit(p[1]) ||
		!style_is_digit(p[2]) || p[3] != ':' || !style_is_digit(p[4]) ||
		!style_is_digit(p[5]))
		return false;
	*at += 6;
	return (p[1] - '0') * 10 + p[2] - '0' <= 24 && (p[4] - '0') * 10 + p[5] - '0' <= 60;
}

/* Returns true if go-yaml takes TEXT for a timestamp: 2026-1-2, with a time after T, t or
 * blanks. */
static bool style_is_timestamp(struct bytes text)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	const char *p = text.data, *end = p + text.size;
	int year = 0, month, day, part;

	if (style_skip_digits(p, end) != p + 4)
		return false;
	for (int i = 0; i < 4; i++)
		year = year * 10 + (*p++ - '0');
	if (!style_take(&p, end, '-') || !style_read_part(&p, end, 1, 12, &month) ||
		!style_take(&p, end, '-') || !style_read_part(&p, end, 1, 31, &day))
		return false;
	bool is_leap = month == 2 && year % 4 == 0 && (year % 100 || year % 400 == 0);
	if (day > days[month - 1] + is_leap)
		return false;
	if (p == end)
		return true;
	bool has_zone = *p == 'T' || *p == 't';
	if (!has_zone && *p != ' ')
		return false;
	for (p++; !has_zone && p < end && *p == ' ';)
		p++;
	if (!style_read_part(&p, end, 0, 23, &part) || !style_take(&p, end, ':') ||
		!style_read_part(&p, end, 0, 59, &part) || !style_take(&p, end, ':') ||
		!style_read_part(&p, end, 0, 59, &part))
		return false;
	if (end - p > 1 && (*p == '.' || *p == ',') && style_is_digit(p[1]))
		p = style_skip_digits(p + 1, end);
	return (!has_zone || style_read_zone(&p, end)) && p == end;
}

/* Returns true if TEXT is a number of base 60 of YAML 1.1: 1:30, -1:30:59.5. */
static bool style_is_base_60(struct bytes text)
{
	const char *p = text.data, *end = p + text.size;

	if (!memchr(p, ':', text.size))
		return false;
	if (*p == '+' || *p == '-')
		p++;
	if (p == end || !style_is_digit(*p))
		return false;
	while (p < end && (style_is_digit(*p) || *p == '_'))
		p++;
	const char *first = p;
	while (p < end && *p == ':') {
		const char *digits = ++p;

		p = style_skip_digits(p, end);
		if (p == digits || p - digits > 2 || (p - digits == 2 && *digits > '5'))
			return false;
	}
	if (p == first)
		return false;
	if (p < end && *p == '.')
		for (p++; p < end && (style_is_digit(*p) || *p == '_');)
			p++;
	return p == end;
}

/* Returns true if TEXT is infinite or no number: such floats of YAML are strings in JSON. */
static bool style_is_infinite(struct bytes text)
{
	static const char words[][5] = {".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF"};
	const char *p = text.data;
	bool is_signed = *p == '+' || *p == '-'; /* .nan has no sign */
	struct bytes word = BYTES(p + is_signed, text.size - is_signed);

	for (size_t i = is_signed ? 3 : 0; i < ARRAY_SIZE(words); i++)
		if (bytes_equal(word, bytes_str(words[i])))
			return true;
	return false;
}

/* ---- styles ------------------------------------------------------------- */

/* How the first character of a text may rule out a plain string. */
enum style_first {
	FIRST_LETTER = 1, /* a word of YAML 1.1 */
	FIRST_NUMBER,     /* a number or a timestamp */
	FIRST_DOT,        /* a float; or "..." */
	FIRST_MARK,       /* an indicator in any case */
	FIRST_LONE,       /* an indicator if a blank follows */
};

static const uint8_t style_firsts[256] = {
	['y'] = FIRST_LETTER,
	['Y'] = FIRST_LETTER,
	['n'] = FIRST_LETTER,
	['N'] = FIRST_LETTER,
	['t'] = FIRST_LETTER,
	['T'] = FIRST_LETTER,
	['f'] = FIRST_LETTER,
	['F'] = FIRST_LETTER,
	['o'] = FIRST_LETTER,
	['O'] = FIRST_LETTER,
	['~'] = FIRST_LETTER,
	['0' ... '9'] = FIRST_NUMBER,
	['+'] = FIRST_NUMBER,
	['-'] = FIRST_NUMBER,
	['.'] = FIRST_DOT,
	['#'] = FIRST_MARK,
	[','] = FIRST_MARK,
	['['] = FIRST_MARK,
	[']'] = FIRST_MARK,
	['{'] = FIRST_MARK,
	['}'] = FIRST_MARK,
	['&'] = FIRST_MARK,
	['*'] = FIRST_MARK,
	['!'] = FIRST_MARK,
	['|'] = FIRST_MARK,
	['>'] = FIRST_MARK,
	['\''] = FIRST_MARK,
	['"'] = FIRST_MARK,
	['%'] = FIRST_MARK,
	['@'] = FIRST_MARK,
	['`'] = FIRST_MARK,
	['?'] = FIRST_LONE,
	[':'] = FIRST_LONE,
};

/* Returns true if go-yaml reads the unquoted TEXT as something else than a string. */
static bool style_is_no_string(struct bytes text)
{
	uint8_t first = style_firsts[*(const uint8_t *)text.data];

	if (first == FIRST_LETTER)
		return !yaml_plain_is_string(text);
	return (first == FIRST_NUMBER || first == FIRST_DOT) &&
	       (style_is_timestamp(text) || style_is_infinite(text) || style_is_base_60(text) ||
		       !yaml_plain_is_string(text));
}

/* Returns true if no plain scalar begins like TEXT. */
static bool style_begins_badly(struct bytes text)
{
	const char *p = text.data;
	uint8_t first = style_firsts[(uint8_t)*p];
	bool is_followed = text.size == 1 || p[1] == ' ' || p[1] == '\t';

	if (first < FIRST_NUMBER)
		return false;
	if (first == FIRST_MARK || (is_followed && (first == FIRST_LONE || *p == '-')))
		return true;
	return text.size > 2 && (memcmp(p, "---", 3) == 0 || memcmp(p, "...", 3) == 0);
}

/* Returns true if TEXT has only ASCII signs, digits and letters. */
static bool style_is_dense(struct bytes text)
{
	const uint8_t *p = text.data;
	size_t i = 0;

	while (i < text.size && p[i] > ' ' && p[i] <= '~')
		i++;
	return i == text.size;
}

/* The traits of a text against a style. */
struct style_traits {
	bool has_break, is_special; /* special: only double quotes escape it */
	bool begins_blank, ends_blank, ends_broken, has_break_blank, has_blank_break;
	bool is_indicator;
};

static struct style_traits style_examine(struct bytes text)
{
	const char *p = text.data;
	struct style_traits traits = {.is_indicator = style_begins_badly(text)};
	bool after_blank = false, after_break = false, after_white = true;
	size_t size;

	for (size_t i = 0; i < text.size; i += size) {
		size = yaml_char_size(text, i);
		bool is_last = i + size >= text.size, is_white = p[i] == ' ' || p[i] == '\t';
		bool is_followed = is_last || p[i + size] == ' ' || p[i + size] == '\t';
		bool is_break = yaml_is_break(text, i);

		if (i > 0)
			traits.is_indicator |=
				(p[i] == ':' && is_followed) || (p[i] == '#' && after_white);
		traits.is_special |= !style_is_printable(text, i);
		if (p[i] == ' ') {
			traits.begins_blank |= i == 0;
			traits.ends_blank |= is_last;
			traits.has_break_blank |= after_break;
		} else if (is_break) {
			traits.has_break = true;
			traits.begins_blank |= i == 0;
			traits.ends_broken |= is_last;
			traits.has_blank_break |= after_blank;
		}
		after_blank = p[i] == ' ';
		after_break = is_break;
		after_white = is_white || is_break || p[i] == '\0';
	}
	return traits;
}

enum yaml_style yaml_string_style(struct bytes text, bool is_key)
{
	const char *p = text.data;

	if (!text.size)
		return YAML_STYLE_DOUBLE_QUOTED;
	bool is_no_string = style_is_no_string(text);
	if (style_is_dense(text) && p[text.size - 1] != ':' && !style_begins_badly(text))
		return is_no_string ? YAML_STYLE_DOUBLE_QUOTED : YAML_STYLE_WORD;
	struct style_traits traits = style_examine(text);
	bool fits_quotes = !traits.has_break_blank && !traits.has_blank_break && !traits.is_special;
	if (memchr(p, '\n', text.size))
		return !is_key && !traits.ends_blank && !traits.has_blank_break &&
				       !traits.is_special
			       ? YAML_STYLE_LITERAL
			       : YAML_STYLE_DOUBLE_QUOTED;
	if (is_no_string || !fits_quotes)
		return YAML_STYLE_DOUBLE_QUOTED;
	return traits.begins_blank || traits.ends_blank || traits.ends_broken || traits.has_break ||
			       traits.is_indicator
		       ? YAML_STYLE_SINGLE_QUOTED
		       : YAML_STYLE_PLAIN;
}

bool yaml_is_simple_key(struct bytes text, enum yaml_style style)
{
	bool has_lines = style == YAML_STYLE_SINGLE_QUOTED || style == YAML_STYLE_DOUBLE_QUOTED;

	for (size_t i = 0; has_lines && i < text.size; i += yaml_char_size(text, i))
		if (yaml_is_break(text, i))
			return false;
	return text.size <= KEY_MAX;
}
