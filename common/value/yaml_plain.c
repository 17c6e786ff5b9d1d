/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/yaml_plain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/text/decimal.h"
#include "common/value/number.h"
#include "common/value/value.h"

#define WORD_MAX 512 /* a longer plain word is a string */

/* Puts a number of JSON. Returns false if TEXT is none, or too large: 82e828 is a word. */
static bool plain_put_number(struct buf *out, struct bytes text)
{
	double d;

	return number_value(text, &d) && isfinite(d) && value_put_number(out, text);
}

/* Puts a number in a form that JSON lacks: 0644, 0x1f, 0b1, +1, 1_000, and go-yaml's 0b-1. Returns
 * false if TEXT is none. */
static bool plain_put_odd_number(struct buf *out, struct bytes text)
{
	const char *p = text.data, *end = p + text.size;
	bool negative = *p == '-', digits = false;
	uint64_t number = 0;
	unsigned base = 10;

	p += negative || *p == '+';
	if (end - p > 1 && *p == '0') {
		base = p[1] == 'x' || p[1] == 'X' ? 16 : p[1] == 'b' || p[1] == 'B' ? 2 : 8;
		p += base != 8 || p[1] == 'o' || p[1] == 'O' ? 2 : 1;
	}
	if (p - (const char *)text.data == 2 && base == 2 && p < end && (*p == '-' || *p == '+'))
		negative = *p++ == '-';
	for (; p < end; p++) {
		int digit = *p == '_' ? 0 : hex_digit(*p);

		if (*p == '_')
			continue;
		if (digit < 0 || digit >= (int)base || number > (UINT64_MAX - 15) / base)
			return false;
		number = number * base + (unsigned)digit;
		digits = true;
	}
	if (!digits || (negative && number > (uint64_t)INT64_MAX + 1))
		return false;
	if (negative)
		value_put_int(out, (int64_t)(0 - number));
	else
		value_put_uint(out, number);
	return true;
}

/* Puts a number with a fraction or an exponent in a form that JSON lacks: .5, 1., +1.5, 1_000.5;
 * also 089, which is not octal. Returns false if TEXT, of WORD_MAX bytes at most, is none. */
static bool plain_put_odd_float(struct buf *out, struct bytes text)
{
	static const char digits[] = "0123456789";
	char word[WORD_MAX + 1], json[WORD_MAX + 2], *end = word;

	for (size_t i = 0; i < text.size; i++) {
		*end = ((const char *)text.data)[i];
		end += *end != '_' || word[0] == '.';
	}
	*end = '\0';
	const char *sign = *word == '-' ? "-" : "", *p = word + (*word == '-' || *word == '+');
	const char *whole = p + strspn(p, "0"), *part = "";
	size_t n_whole = strspn(whole, digits), n_part = 0;
	bool zero = whole > p;
	p = whole + n_whole;
	if (*p == '.') {
		part = p + 1;
		n_part = strspn(part, digits);
		p = part + n_part;
	}
	if ((!zero && !n_whole && !n_part) || (*p && *p != 'e' && *p != 'E'))
		return false;
	int n = snprintf(json, sizeof(json), "%s%.*s%s%.*s%s", sign, n_whole ? (int)n_whole : 1,
		n_whole ? whole : "0", n_part ? "." : "", (int)n_part, part, p);
	return plain_put_number(out, BYTES(json, (size_t)n));
}

/* Puts a number. Returns false if TEXT is none. */
static bool plain_put_any_number(struct buf *out, struct bytes text)
{
	return plain_put_number(out, text) || plain_put_odd_number(out, text) ||
	       plain_put_odd_float(out, text);
}

/* Returns true if TEXT can only be a number or a string. */
static bool plain_begins_number(struct bytes text)
{
	char c = text.size ? *(const char *)text.data : '\0';

	return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.';
}

/* Returns the type of a word that begins no number, and the value of a boolean. */
static enum value_type plain_word(struct bytes text, bool *ret_true)
{
	static const char words[][8] = {"", "~", "null", "Null", "NULL", "true", "True", "TRUE",
		"yes", "Yes", "YES", "on", "On", "ON", "y", "Y", "false", "False", "FALSE", "no",
		"No", "NO", "off", "Off", "OFF", "n", "N"};
	enum { TRUES = 5, FALSES = 16 }; /* the first ones of them */

	uint64_t wanted = 0;

	if (text.size > 5)
		return VALUE_STRING;
	if (text.size)
		memcpy(&wanted, text.data, text.size);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (le64_get(words[i]) == wanted) {
			*ret_true = i < FALSES;
			return i < TRUES ? VALUE_NIL : VALUE_BOOL;
		}
	return VALUE_STRING;
}

void yaml_put_plain(struct buf *out, struct bytes text)
{
	bool is_true;

	if (plain_begins_number(text)) {
		if (text.size > WORD_MAX || !plain_put_any_number(out, text))
			value_put_string(out, text);
		return;
	}
	switch (plain_word(text, &is_true)) {
	case VALUE_NIL:
		value_put_nil(out);
		break;
	case VALUE_BOOL:
		value_put_bool(out, is_true);
		break;
	default:
		value_put_string(out, text);
	}
}

bool yaml_plain_is_string(struct bytes text)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	bool is_true;

	return plain_begins_number(text) ? text.size > WORD_MAX || !plain_put_any_number(&out, text)
					 : plain_word(text, &is_true) == VALUE_STRING;
}
