/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/err.h"

/* ---- grammar ---- */

/* Where the parts of a number are in its text. */
struct parts {
	bool negative;
	struct bytes whole;    /* digits before the point */
	struct bytes fraction; /* digits behind it, or none */
	struct bytes exponent; /* with its sign, or none */
};

static struct bytes take_digits(struct bytes *text)
{
	const char *p = text->data;
	size_t n = 0;

	while (n < text->size && p[n] >= '0' && p[n] <= '9')
		n++;
	*text = BYTES(p + n, text->size - n);
	return BYTES(p, n);
}

/* One of the characters ANY (a string), or NUL. */
static char take_any(struct bytes *text, const char *any)
{
	const char *p = text->data;

	if (!text->size || !*p || !strchr(any, *p))
		return '\0';
	*text = BYTES(p + 1, text->size - 1);
	return *p;
}

static bool split(struct bytes text, struct parts *ret_parts)
{
	struct parts parts = {.negative = take_any(&text, "-")};

	parts.whole = take_digits(&text);
	if (!parts.whole.size || (parts.whole.size > 1 && *(const char *)parts.whole.data == '0'))
		return false;
	if (take_any(&text, ".")) {
		parts.fraction = take_digits(&text);
		if (!parts.fraction.size)
			return false;
	}
	if (take_any(&text, "eE")) {
		const char *start = text.data;
		(void)take_any(&text, "+-");
		if (!take_digits(&text).size)
			return false;
		parts.exponent = BYTES(start, (size_t)((const char *)text.data - start));
	}
	*ret_parts = parts;
	return text.size == 0;
}

bool number_is_valid(struct bytes text)
{
	struct parts parts;

	return split(text, &parts);
}

/* ---- reading ---- */

static bool read_integer(const struct parts *parts, struct number *ret_number)
{
	const char *digits = parts->whole.data;
	uint64_t u = 0;

	if (parts->fraction.size || parts->exponent.size)
		return false;
	for (size_t i = 0; i < parts->whole.size; i++) {
		if (__builtin_mul_overflow(u, 10u, &u) ||
			__builtin_add_overflow(u, (uint64_t)(digits[i] - '0'), &u))
			return false;
	}
	if (!parts->negative) {
		*ret_number = (struct number){.form = NUMBER_UINT, .u.u = u};
		return true;
	}
	if (u == 0 || u > (uint64_t)INT64_MAX + 1) /* -0 is a double */
		return false;
	*ret_number = (struct number){.form = NUMBER_INT, .u.i = (int64_t)(0 - u)};
	return true;
}

/* The number behind an 'e', with or without sign; beyond 9999 it is 9999. */
static int read_exponent(struct bytes text)
{
	const char *p = text.data;
	int exponent = 0;

	for (size_t i = 0; i < text.size; i++) {
		if (p[i] >= '0' && p[i] <= '9' && exponent < 1000)
			exponent = exponent * 10 + (p[i] - '0');
		else if (p[i] >= '0' && p[i] <= '9')
			return *p == '-' ? -9999 : 9999;
	}
	return text.size && *p == '-' ? -exponent : exponent;
}

/* strtod() of DIGITS * 10^EXPONENT. Without a point in the text no locale matters. */
static double from_digits(const char *digits, int n_digits, int exponent)
{
	char text[NUMBER_TEXT_MAX * 2];

	(void)snprintf(text, sizeof(text), "%.*se%d", n_digits, digits, exponent);
	return strtod(text, NULL);
}

/* A double whose form is this text. Longer texts are no double's shortest form. */
static bool read_double(struct bytes text, const struct parts *parts, struct number *ret_number)
{
	char digits[NUMBER_TEXT_MAX], back[NUMBER_TEXT_MAX];

	if (text.size >= NUMBER_TEXT_MAX)
		return false;
	int n = snprintf(digits, sizeof(digits), "%.*s%.*s", BYTES_ARG(parts->whole),
		BYTES_ARG(parts->fraction));
	int power = read_exponent(parts->exponent) - (int)parts->fraction.size;
	double d = from_digits(digits, n, power);
	if (!isfinite(d))
		return false;
	if (parts->negative)
		d = -d;
	if (!bytes_equal(text, BYTES(back, number_format_double(d, back))))
		return false;
	*ret_number = (struct number){.form = NUMBER_DOUBLE, .u.d = d};
	return true;
}

int number_parse(struct bytes text, struct number *ret_number)
{
	struct parts parts;

	if (!split(text, &parts))
		return ERR_SYNTAX;
	if (!read_integer(&parts, ret_number) && !read_double(text, &parts, ret_number))
		*ret_number = (struct number){.form = NUMBER_TEXT};
	return 0;
}

/* ---- writing ---- */

size_t number_format_uint(uint64_t u, char *text)
{
	char digits[20];
	size_t n = 0;

	do
		digits[sizeof(digits) - ++n] = (char)('0' + u % 10);
	while (u /= 10);
	memcpy(text, digits + sizeof(digits) - n, n);
	return n;
}

size_t number_format_int(int64_t i, char *text)
{
	if (i >= 0)
		return number_format_uint((uint64_t)i, text);
	*text = '-';
	return 1 + number_format_uint(0 - (uint64_t)i, text + 1);
}

/* A decimal: 0.DIGITS * 10^POINT. */
struct decimal {
	char digits[32];
	int n;
	int point;
};

/* D to N significant digits, correctly rounded, without zeros at the end. */
static void round_to(double d, int n, struct decimal *ret_decimal)
{
	char text[48];

	(void)snprintf(text, sizeof(text), "%.*e", n - 1, d);
	/* The point's character, or characters, are the locale's: pass over whatever is no digit.
	 */
	const char *p = text;
	ret_decimal->n = 0;
	for (; *p && *p != 'e'; p++) {
		if (*p >= '0' && *p <= '9')
			ret_decimal->digits[ret_decimal->n++] = *p;
	}
	ret_decimal->point = 1 + read_exponent(bytes_str(p + 1));
	while (ret_decimal->n > 1 && ret_decimal->digits[ret_decimal->n - 1] == '0')
		ret_decimal->n--;
}

static bool reads_back(const struct decimal *decimal, double d)
{
	return from_digits(decimal->digits, decimal->n, decimal->point - decimal->n) == d;
}

/* The next larger decimal of N digits. */
static void step_up(struct decimal *decimal, int n)
{
	int last = n;

	memset(decimal->digits + decimal->n, '0', (size_t)(n - decimal->n));
	while (last > 0 && decimal->digits[last - 1] == '9')
		last--; /* a 9 becomes a 0, and those at the end are left out */
	if (last == 0) {
		decimal->digits[0] = '0';
		decimal->point++;
		last = 1;
	}
	decimal->digits[last - 1]++;
	decimal->n = last;
}

/*
 * The shortest decimal that reads back as D, a positive double, the nearest of those. Up to 15
 * digits survive a double, so 15 finds all that have so few, except below the normal doubles, where
 * digits are lost. At a power of two the doubles below lie closer than those above: there the
 * nearest decimal may fail although its upper neighbour reads back.
 */
static void shortest(double d, struct decimal *ret_decimal)
{
	for (int n = d < DBL_MIN ? 1 : DBL_DIG; n < DBL_DECIMAL_DIG; n++) {
		round_to(d, n, ret_decimal);
		if (reads_back(ret_decimal, d))
			return;
		step_up(ret_decimal, n);
		if (reads_back(ret_decimal, d))
			return;
	}
	round_to(d, DBL_DECIMAL_DIG, ret_decimal);
}

static char *put_zeros(char *p, int n)
{
	for (; n > 0; n--)
		*p++ = '0';
	return p;
}

static char *put_digits(char *p, const struct decimal *decimal, int from, int to)
{
	memcpy(p, decimal->digits + from, (size_t)(to - from));
	return p + (to - from);
}

/* 123000, 1.23, 0.00123 */
static char *put_plain(char *p, const struct decimal *decimal)
{
	int whole = decimal->point < 0            ? 0
		    : decimal->point < decimal->n ? decimal->point
						  : decimal->n;

	if (decimal->point <= 0)
		*p++ = '0';
	p = put_digits(p, decimal, 0, whole);
	p = put_zeros(p, decimal->point - whole);
	if (whole == decimal->n)
		return p;
	*p++ = '.';
	p = put_zeros(p, -decimal->point);
	return put_digits(p, decimal, whole, decimal->n);
}

/* 1.23e-7, 1e+21 */
static char *put_scientific(char *p, const struct decimal *decimal)
{
	int exponent = decimal->point - 1;

	p = put_digits(p, decimal, 0, 1);
	if (decimal->n > 1)
		*p++ = '.';
	p = put_digits(p, decimal, 1, decimal->n);
	*p++ = 'e';
	*p++ = exponent < 0 ? '-' : '+';
	return p + number_format_uint((uint64_t)abs(exponent), p);
}

size_t number_format_double(double d, char *text)
{
	struct decimal decimal;
	char *p = text;

	REQUIRE(isfinite(d));
	if (signbit(d))
		*p++ = '-';
	d = fabs(d);
	if (d == 0) {
		*p++ = '0';
		return (size_t)(p - text);
	}
	shortest(d, &decimal);
	p = d < 1e-6 || d >= 1e21 ? put_scientific(p, &decimal) : put_plain(p, &decimal);
	return (size_t)(p - text);
}
