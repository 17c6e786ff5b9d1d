/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/yaml_style.h"

#include <strings.h>

/* Returns whether a YAML 1.1 reader takes TEXT for null, a boolean, a merge key or a special
 * float. */
static bool style_is_word(struct bytes text)
{
	static const char *const words[] = {"~", "null", "true", "false", "yes", "no", "on", "off",
		"y", "n", "<<", "=", ".inf", "-.inf", "+.inf", ".nan"};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strlen(words[i]) == text.size &&
			strncasecmp(words[i], text.data, text.size) == 0)
			return true;
	return false;
}

static bool style_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *style_skip_digits(const char *p, const char *end)
{
	while (p < end && (style_is_digit(*p) || *p == '_' || *p == ':'))
		p++;
	return p;
}

/* Returns whether TEXT is a number in YAML 1.1 or 1.2 (1_000, 0x1f, 0o7, 1e3, 1., .5, 1:30, which
 * is sexagesimal); also true for a few texts that are none. */
static bool style_is_number(struct bytes text)
{
	const char *p = text.data, *end = p + text.size;

	if (p < end && (*p == '+' || *p == '-'))
		p++;
	if (end - p > 2 && *p == '0' && strchr("xXoObB", p[1])) {
		for (p += 2;
			p < end && (style_is_digit(*p) || *p == '_' || strchr("abcdefABCDEF", *p));)
			p++;
		return p == end;
	}
	const char *first = p;
	p = style_skip_digits(p, end);
	size_t digits = (size_t)(p - first);
	if (p < end && *p == '.') {
		first = ++p;
		p = style_skip_digits(p, end);
		digits += (size_t)(p - first);
	}
	if (!digits)
		return false;
	if (p < end && (*p == 'e' || *p == 'E')) {
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		p = style_skip_digits(p, end);
	}
	return p == end;
}

/* Returns whether a block keeps TEXT: it normalizes line breaks other than \n, allows no control
 * characters, and takes spaces at its beginning for indentation. */
static bool style_fits_block(struct bytes text)
{
	const uint8_t *p = text.data;

	if (p[0] == ' ' || p[0] == '\n')
		return false;
	/* Empty lines at its end would need "..." after it where it ends the document. */
	if (text.size > 1 && p[text.size - 1] == '\n' && p[text.size - 2] == '\n')
		return false;
	for (size_t i = 0; i < text.size; i++) {
		if ((p[i] < ' ' && p[i] != '\n') || p[i] == 0x7f)
			return false;
		if (p[i] == 0xc2 && i + 1 < text.size && p[i + 1] == 0x85) /* NEL */
			return false;
		if (p[i] == 0xe2 && i + 2 < text.size && p[i + 1] == 0x80 &&
			(p[i + 2] | 1) == 0xa9) /* LS, PS */
			return false;
	}
	return true;
}

enum yaml_style yaml_string_style(struct bytes text, bool is_key)
{
	const char *p = text.data;

	if (!text.size)
		return YAML_STYLE_QUOTED;
	if (memchr(p, '\n', text.size))
		return !is_key && style_fits_block(text) ? YAML_STYLE_LITERAL : YAML_STYLE_QUOTED;
	/* 2026-01-01, with or without a time after it. */
	bool is_date = text.size >= 8 && style_is_digit(p[0]) && style_is_digit(p[1]) &&
		       style_is_digit(p[2]) && style_is_digit(p[3]) && p[4] == '-' &&
		       style_is_digit(p[5]);
	if (p[0] == ' ' || p[text.size - 1] == ' ' || style_is_word(text) ||
		style_is_number(text) || is_date)
		return YAML_STYLE_QUOTED;
	return YAML_STYLE_PLAIN;
}
