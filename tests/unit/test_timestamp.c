/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "common/text/timestamp.h"

#define SECOND INT64_C(1000000000)

Test(timestamp, fractions_and_zones_are_read)
{
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = {{"1970-01-01T00:00:01Z", SECOND}, {"1970-01-01T01:00:00+01:00", 0},
		{"1969-12-31T22:59:59-01:00", -SECOND},
		{"2030-01-01T00:00:00.25Z", 1893456000250000000},
		{"2262-04-11T23:47:16.854775807Z", INT64_MAX},
		{"2262-04-11T23:47:16.9Z", INT64_MAX}, {"9999-12-31T23:59:59.9Z", INT64_MAX},
		{"9999-12-31T23:59:59Z", INT64_MAX}};
	static const char *const bad[] = {"", "2030", "2030-01-01", "2030-01-01T00:00:00",
		"2030-13-01T00:00:00Z", "2030-01-01T00:00:00Zx", "2030-01-01T00:00:00+1:00",
		"2030-01-01T24:00:00Z", "20x0-01-01T00:00:00Z"};
	int64_t ns = 0;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		cr_assert(timestamp_parse(bytes_str(good[i].text), &ns), "%s", good[i].text);
		cr_assert_eq(ns, good[i].ns, "%s: %lld", good[i].text, (long long)ns);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_not(timestamp_parse(bytes_str(bad[i]), &ns), "%s", bad[i]);
}
