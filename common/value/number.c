/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/check.h"

/* ---- grammar ------------------------------------------------------------ */

/* The parts of a number, borrowed from its text. */
struct number_parts {
	bool negative;
	struct bytes whole;    /* digits before the point */
	struct bytes fraction; /* digits after it, or none */
	struct bytes exponent; /* with its sign, or none */
};

static struct bytes number_take_digits(struct bytes *text)
{
	const char *p = text->data;
	size_t n = 0;

	while (n < text->size && p[n] >= '0' && p[n] <= '9')
		n++;
	*text = BYTES(p + n, text->size - n);
	return BYTES(p, n);
}

/* Takes the next character if ANY has it. Returns the character, or NUL. */
static char number_take_any(struct bytes *text, const char *any)
{
	const char *p = text->data;

	if (!text->size || !*p || !strchr(any, *p))
		return '\0';
	*text = BYTES(p + 1, text->size - 1);
	return *p;
}

static bool number_split(struct bytes text, struct number_parts *ret_parts)
{
	struct number_parts parts = {.negative = number_take_any(&text, "-")};

	parts.whole = number_take_digits(&text);
	if (!parts.whole.size || (parts.whole.size > 1 && *(const char *)parts.whole.data == '0'))
		return false;
	if (number_take_any(&text, ".")) {
		parts.fraction = number_take_digits(&text);
		if (!parts.fraction.size)
			return false;
	}
	if (number_take_any(&text, "eE")) {
		const char *start = text.data;
		(void)number_take_any(&text, "+-");
		if (!number_take_digits(&text).size)
			return false;
		parts.exponent = BYTES(start, (size_t)((const char *)text.data - start));
	}
	*ret_parts = parts;
	return text.size == 0;
}

bool number_is_valid(struct bytes text)
{
	struct number_parts parts;

	return number_split(text, &parts);
}

/* ---- reading ------------------------------------------------------------ */

static bool number_read_integer(const struct number_parts *parts, struct number *ret_number)
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

/* Returns the number after an 'e', with or without sign, at most 9999. */
static int number_read_exponent(struct bytes text)
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

/* Returns DIGITS * 10^EXPONENT by strtod(3); without a point no locale matters. */
static double number_decimal_value(const char *digits, int n_digits, int exponent)
{
	char text[NUMBER_TEXT_MAX * 2];

	(void)snprintf(text, sizeof(text), "%.*se%d", n_digits, digits, exponent);
	return strtod(text, NULL);
}

/* Returns the nearest double; infinity if the number is too large. */
static double number_nearest(const struct number_parts *parts)
{
	const char *whole = parts->whole.data, *fraction = parts->fraction.data;
	int power = number_read_exponent(parts->exponent) - (int)parts->fraction.size, n = 0;
	char digits[NUMBER_TEXT_MAX];

	/* The digits from the first other than 0. A double has 17; more only move the point. */
	for (size_t i = 0; i < parts->whole.size + parts->fraction.size; i++) {
		char digit = i < parts->whole.size ? whole[i] : fraction[i - parts->whole.size];

		if (n == NUMBER_TEXT_MAX)
			power++;
		else if (n || digit != '0')
			digits[n++] = digit;
	}
	double d = n ? number_decimal_value(digits, n, power) : 0;
	return parts->negative ? -d : d;
}

bool number_value(struct bytes text, double *ret_value)
{
	struct number_parts parts;

	if (!number_split(text, &parts))
		return false;
	*ret_value = number_nearest(&parts);
	return true;
}

/* Finds the double with TEXT as its shortest form. No shortest form is NUMBER_TEXT_MAX long. */
static bool number_read_double(
	struct bytes text, const struct number_parts *parts, struct number *ret_number)
{
	char back[NUMBER_TEXT_MAX];

	if (text.size >= NUMBER_TEXT_MAX)
		return false;
	double d = number_nearest(parts);
	if (!isfinite(d))
		return false;
	if (!bytes_equal(text, BYTES(back, number_format_double(d, back))))
		return false;
	*ret_number = (struct number){.form = NUMBER_DOUBLE, .u.d = d};
	return true;
}

bool number_parse(struct bytes text, struct number *ret_number)
{
	struct number_parts parts;

	if (!number_split(text, &parts))
		return false;
	if (!number_read_integer(&parts, ret_number) &&
		!number_read_double(text, &parts, ret_number))
		*ret_number = (struct number){.form = NUMBER_TEXT};
	return true;
}

/* ---- writing ------------------------------------------------------------ */

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
struct number_decimal {
	char digits[32];
	int n;
	int point;
};

/* Rounds D correctly to N significant digits, without zeros at the end. */
static void number_decimal_round(double d, int n, struct number_decimal *ret_decimal)
{
	char text[48];

	(void)snprintf(text, sizeof(text), "%.*e", n - 1, d);
	/* The point depends on the locale: skip all but digits. */
	const char *p = text;
	ret_decimal->n = 0;
	for (; *p && *p != 'e'; p++) {
		if (*p >= '0' && *p <= '9')
			ret_decimal->digits[ret_decimal->n++] = *p;
	}
	ret_decimal->point = 1 + number_read_exponent(bytes_str(p + 1));
	while (ret_decimal->n > 1 && ret_decimal->digits[ret_decimal->n - 1] == '0')
		ret_decimal->n--;
}

/* Finds the shortest decimal that reads back as D, a positive double. Any decimal of up to 15
 * digits survives a double: the search begins with 15 digits; doubles below DBL_MIN have lost
 * digits and begin with one. (At some powers of two Go finds one digit less, above the nearest
 * decimal.) */
static void number_decimal_shortest(double d, struct number_decimal *ret_decimal)
{
	for (int n = d < DBL_MIN ? 1 : DBL_DIG; n < DBL_DECIMAL_DIG; n++) {
		number_decimal_round(d, n, ret_decimal);
		if (number_decimal_value(ret_decimal->digits, ret_decimal->n,
			    ret_decimal->point - ret_decimal->n) == d)
			return;
	}
	number_decimal_round(d, DBL_DECIMAL_DIG, ret_decimal);
}

static char *number_decimal_put_zeros(char *p, int n)
{
	for (; n > 0; n--)
		*p++ = '0';
	return p;
}

static char *number_decimal_put_digits(
	char *p, const struct number_decimal *decimal, int from, int to)
{
	memcpy(p, decimal->digits + from, (size_t)(to - from));
	return p + (to - from);
}

/* Writes D, which must be finite, with an exponent of at least EXPONENT_DIGITS digits from 10^HIGH
 * on and below 10^LOW. */
static size_t number_format(double d, int low, int high, int exponent_digits, char *text)
{
	struct number_decimal decimal;
	char *p = text;

	REQUIRE(isfinite(d));
	if (signbit(d))
		*p++ = '-';
	d = fabs(d);
	if (d == 0) {
		*p++ = '0';
		return (size_t)(p - text);
	}
	number_decimal_shortest(d, &decimal);
	int exponent = decimal.point - 1;
	if (exponent < low || exponent >= high) { /* 1.23e-7, 1e+21 */
		p = number_decimal_put_digits(p, &decimal, 0, 1);
		if (decimal.n > 1)
			*p++ = '.';
		p = number_decimal_put_digits(p, &decimal, 1, decimal.n);
		*p++ = 'e';
		*p++ = exponent < 0 ? '-' : '+';
		exponent = abs(exponent);
		p = number_decimal_put_zeros(p, exponent < 10 ? exponent_digits - 1 : 0);
		p += number_format_uint((uint64_t)exponent, p);
		return (size_t)(p - text);
	}

	/* 123000, 1.23, 0.00123 */
	int whole = decimal.point < 0 ? 0 : decimal.point < decimal.n ? decimal.point : decimal.n;

	if (decimal.point <= 0)
		*p++ = '0';
	p = number_decimal_put_digits(p, &decimal, 0, whole);
	p = number_decimal_put_zeros(p, decimal.point - whole);
	if (whole < decimal.n) {
		*p++ = '.';
		p = number_decimal_put_zeros(p, -decimal.point);
		p = number_decimal_put_digits(p, &decimal, whole, decimal.n);
	}
	return (size_t)(p - text);
}

size_t number_format_double(double d, char *text)
{
	return number_format(d, -6, 21, 1, text);
}

size_t number_format_go(double d, char *text)
{
	return number_format(d, -4, 6, 2, text);
}
