/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers kept as text, in a program with a decimal comma in its locale. */
#include "common/value/number.h"

#include <math.h>

#include "common/value/path.h"
#include "tests/unit/body.h"
#include "tests/unit/unit.h"

/* Instead of the C library's: reads up to a point only, as the C library's does in such a
 * locale. */
double strtod(const char *text, char **ret_end)
{
	char cut[128];

	(void)snprintf(cut, sizeof(cut), "%.*s", (int)strcspn(text, "."), text);
	return (double)strtold(cut, ret_end);
}

static double value_of(const char *text)
{
	double d = 7;

	cr_assert(number_value(bytes_str(text), &d), "%s", text);
	return d;
}

Test(number, is_the_double_next_to_its_text)
{
	cr_assert_eq(value_of("0"), 0);
	cr_assert(signbit(value_of("-0.00")));
	cr_assert_eq(value_of("1.50"), 1.5);
	cr_assert_eq(value_of("-1.50"), -1.5);
	cr_assert_eq(value_of("15e-1"), 1.5);
	cr_assert_eq(value_of("1.5E+3"), 1500);
	cr_assert_eq(value_of("0.00000000000000000000000000000000000000000000000015e49"), 1.5);
	cr_assert_eq(
		value_of("150000000000000000000000000000000000000000000000000000000000e-59"), 1.5);
	cr_assert_eq(value_of("1.5000000000000000000000000000000000000000000000000000000000000001"),
		1.5);
	cr_assert_eq(value_of("0.10"), 0.1);
	cr_assert(isinf(value_of("1e999")));
	cr_assert_eq(value_of("1e-999"), 0);
}

Test(number, has_no_value_if_it_is_none)
{
	static const char *const texts[] = {
		"", "-", "1.", ".5", "1,5", "01", "1e", "0x1", "inf", "nan", " 1", "1 "};
	double d = 7;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		cr_assert(!number_value(bytes_str(texts[i]), &d) && d == 7, "'%s'", texts[i]);
}

Test(number, is_written_as_go_prints_it)
{
	static const struct {
		double d;
		const char *json, *go;
	} rows[] = {
		{1e-7, "1e-7", "1e-07"},
		{1e20, "100000000000000000000", "1e+20"},
		{1234567.5, "1234567.5", "1.2345675e+06"},
		{100000, "100000", "100000"},
		{1e6, "1000000", "1e+06"},
		{0.0001, "0.0001", "0.0001"},
		{0.00001, "0.00001", "1e-05"},
		{2.5e-5, "0.000025", "2.5e-05"},
		{-1.5, "-1.5", "-1.5"},
		{0, "0", "0"},
		{1e21, "1e+21", "1e+21"},
		{1e100, "1e+100", "1e+100"},
		{5e-324, "5e-324", "5e-324"},
		{123456, "123456", "123456"},
		{12345678, "12345678", "1.2345678e+07"},
		{-0.0, "-0", "-0"},
		{0.1, "0.1", "0.1"},
		{0.000001, "0.000001", "1e-06"},
		{9.99e-7, "9.99e-7", "9.99e-07"},
		{0.1 + 0.2, "0.30000000000000004", "0.30000000000000004"},
		{2.2250738585072014e-308, "2.2250738585072014e-308", "2.2250738585072014e-308"},
		{1.7976931348623157e308, "1.7976931348623157e+308", "1.7976931348623157e+308"},
		{9007199254740993.0, "9007199254740992", "9.007199254740992e+15"},
		{1.0 / 3, "0.3333333333333333", "0.3333333333333333"},
	};
	char text[NUMBER_TEXT_MAX + 1];

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		text[number_format_double(rows[i].d, text)] = '\0';
		cr_assert_str_eq(text, rows[i].json);
		text[number_format_go(rows[i].d, text)] = '\0';
		cr_assert_str_eq(text, rows[i].go);
	}
}

static int count(void *arg, const struct value *value)
{
	(void)value;
	++*(unsigned *)arg;
	return 0;
}

Test(number, is_compared_by_its_value_in_a_filter_of_a_path)
{
	static const struct {
		const char *path;
		unsigned found;
	} cases[] = {{"a[?(@.n>1.2)]", 3}, {"a[?(@.n>=1.50)]", 2}, {"a[?(@.n==1.5)]", 2},
		{"a[?(@.n<1.40)]", 2}, {"a[?(@.n!=1.50)]", 2}};
	CLEANUP(buf_release)
	struct buf body = body_of("{\"a\":[{\"n\":1.50},{\"n\":1.5},{\"n\":1.30e0},{\"n\":1.0}]}");

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CLEANUP(path_free) struct path *path = NULL;
		unsigned n = 0;

		cr_assert_eq(path_parse(cases[i].path, &path), 0);
		cr_assert_eq(path_eval(path, BYTES(body.data, body.size), count, &n), 0);
		cr_expect_eq(n, cases[i].found, "%s: %u", cases[i].path, n);
	}
}
