/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/timestamp.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

/* Writes the text up to the seconds, "" for a year beyond struct tm. */
static void timestamp_begin(uint64_t realtime_ns, char *text, size_t size)
{
	time_t seconds = (time_t)(realtime_ns / 1000000000);
	struct tm parts;

	if (!gmtime_r(&seconds, &parts) || strftime(text, size, "%Y-%m-%dT%H:%M:%S", &parts) == 0)
		*text = '\0';
}

void timestamp_seconds(uint64_t realtime_ns, char text[TIMESTAMP_SIZE])
{
	char begin[32];

	timestamp_begin(realtime_ns, begin, sizeof(begin));
	(void)snprintf(text, TIMESTAMP_SIZE, "%sZ", begin);
}

void timestamp_milliseconds(uint64_t realtime_ns, char text[TIMESTAMP_SIZE])
{
	char begin[32];

	timestamp_begin(realtime_ns, begin, sizeof(begin));
	(void)snprintf(
		text, TIMESTAMP_SIZE, "%s.%03" PRIu64 "Z", begin, realtime_ns / 1000000 % 1000);
}

/* Reads N digits at *P. Returns -1 if there are fewer. */
static int timestamp_digits(const char **p, const char *end, int n)
{
	int number = 0;

	for (; n; n--, ++*p) {
		if (*p == end || **p < '0' || **p > '9')
			return -1;
		number = number * 10 + (**p - '0');
	}
	return number;
}

static bool timestamp_take(const char **p, const char *end, char c)
{
	if (*p == end || **p != c)
		return false;
	++*p;
	return true;
}

bool timestamp_parse(struct bytes text, int64_t *ret_ns)
{
	static const char separators[] = "--T::";
	static const int digits[] = {4, 2, 2, 2, 2, 2};
	const char *p = text.data, *end = p + text.size;
	int parts[6], sign = 0;
	int64_t fraction = 0, unit = 1000000000, offset = 0;

	for (int i = 0; i < 6; i++) {
		if (i && !timestamp_take(&p, end, separators[i - 1]))
			return false;
		parts[i] = timestamp_digits(&p, end, digits[i]);
		if (parts[i] < 0)
			return false;
	}
	if (timestamp_take(&p, end, '.'))
		for (; p < end && *p >= '0' && *p <= '9'; p++)
			fraction += (*p - '0') * (unit /= 10);
	if (!timestamp_take(&p, end, 'Z')) {
		sign = timestamp_take(&p, end, '-') ? -1 : timestamp_take(&p, end, '+') ? 1 : 0;
		int hours = timestamp_digits(&p, end, 2);
		bool colon = timestamp_take(&p, end, ':');
		int minutes = timestamp_digits(&p, end, 2);
		if (!sign || !colon || hours < 0 || minutes < 0)
			return false;
		offset = sign * (hours * 3600 + minutes * 60);
	}
	struct tm tm = {.tm_year = parts[0] - 1900,
		.tm_mon = parts[1] - 1,
		.tm_mday = parts[2],
		.tm_hour = parts[3],
		.tm_min = parts[4],
		.tm_sec = parts[5]};
	if (p != end || parts[1] < 1 || parts[1] > 12 || parts[2] < 1 || parts[2] > 31 ||
		parts[3] > 23 || parts[4] > 59 || parts[5] > 60)
		return false;
	/* Years beyond the range of nanoseconds count as its ends. */
	if (__builtin_mul_overflow((int64_t)timegm(&tm) - offset, INT64_C(1000000000), ret_ns))
		*ret_ns = parts[0] < 1970 ? INT64_MIN : INT64_MAX;
	if (__builtin_add_overflow(*ret_ns, fraction, ret_ns))
		*ret_ns = INT64_MAX;
	return true;
}
