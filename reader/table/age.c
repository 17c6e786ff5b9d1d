/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/table/age.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/proc.h"

#define MINUTE 60
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
#define YEAR   (365 * DAY)

/* The steps are those of apimachinery's HumanDuration. */
void age_from_seconds(uint64_t seconds, char text[AGE_SIZE])
{
	static const struct {
		uint64_t below, unit, smaller; /* smaller 0: only the one unit */
		char name, smaller_name;
	} steps[] = {
		{2 * MINUTE, 1, 0, 's', 0},
		{10 * MINUTE, MINUTE, 1, 'm', 's'},
		{3 * HOUR, MINUTE, 0, 'm', 0},
		{8 * HOUR, HOUR, MINUTE, 'h', 'm'},
		{2 * (uint64_t)DAY, HOUR, 0, 'h', 0},
		{8 * (uint64_t)DAY, DAY, HOUR, 'd', 'h'},
		{2 * (uint64_t)YEAR, DAY, 0, 'd', 0},
		{8 * (uint64_t)YEAR, YEAR, DAY, 'y', 'd'},
		{UINT64_MAX, YEAR, 0, 'y', 0},
	};
	size_t i = 0;

	while (seconds >= steps[i].below && steps[i].below != UINT64_MAX)
		i++;
	uint64_t rest = steps[i].smaller ? seconds % steps[i].unit / steps[i].smaller : 0;
	int n = snprintf(text, AGE_SIZE, "%llu%c", (unsigned long long)(seconds / steps[i].unit),
		steps[i].name);
	if (rest)
		(void)snprintf(text + n, AGE_SIZE - (size_t)n, "%llu%c", (unsigned long long)rest,
			steps[i].smaller_name);
}

/* Reads N digits at *P. Returns -1 if there are others. */
static int age_digits(const char **p, const char *end, int n)
{
	int number = 0;

	for (; n; n--, ++*p) {
		if (*p == end || **p < '0' || **p > '9')
			return -1;
		number = number * 10 + (**p - '0');
	}
	return number;
}

static bool age_take(const char **p, const char *end, char c)
{
	if (*p == end || **p != c)
		return false;
	++*p;
	return true;
}

bool age_parse(struct bytes text, int64_t *ret_ns)
{
	static const char separators[] = "--T::";
	static const int digits[] = {4, 2, 2, 2, 2, 2};
	const char *p = text.data, *end = p + text.size;
	int parts[6], sign = 0;
	int64_t fraction = 0, unit = 1000000000, offset = 0;

	for (int i = 0; i < 6; i++) {
		if (i && !age_take(&p, end, separators[i - 1]))
			return false;
		parts[i] = age_digits(&p, end, digits[i]);
		if (parts[i] < 0)
			return false;
	}
	if (age_take(&p, end, '.'))
		for (; p < end && *p >= '0' && *p <= '9'; p++)
			fraction += (*p - '0') * (unit /= 10);
	if (!age_take(&p, end, 'Z')) {
		sign = age_take(&p, end, '-') ? -1 : age_take(&p, end, '+') ? 1 : 0;
		int hours = age_digits(&p, end, 2);
		bool colon = age_take(&p, end, ':');
		int minutes = age_digits(&p, end, 2);
		if (!sign || !colon || hours < 0 || minutes < 0)
			return false;
		offset = sign * (hours * HOUR + minutes * MINUTE);
	}
	struct tm tm = {.tm_year = parts[0] - 1900, .tm_mon = parts[1] - 1, .tm_mday = parts[2],
		.tm_hour = parts[3], .tm_min = parts[4], .tm_sec = parts[5]};
	if (p != end || parts[1] < 1 || parts[1] > 12 || parts[2] < 1 || parts[2] > 31 ||
		parts[3] > 23 || parts[4] > 59 || parts[5] > 60)
		return false;
	/* Years far away do not fit into nanoseconds; any of them is as far as the last that
	 * does. */
	if (__builtin_mul_overflow((int64_t)timegm(&tm) - offset, INT64_C(1000000000), ret_ns))
		*ret_ns = parts[0] < 1970 ? INT64_MIN : INT64_MAX - fraction;
	*ret_ns += fraction;
	return true;
}

void age_between(struct bytes from, uint64_t now_ns, const char *none, char text[AGE_SIZE])
{
	static const struct bytes zero = BYTES_LIT("0001-01-01T00:00:00Z");
	int64_t ns, seconds;

	if (bytes_equal(from, zero)) {
		(void)snprintf(text, AGE_SIZE, "<unknown>");
		return;
	}
	if (!age_parse(from, &ns)) {
		(void)snprintf(text, AGE_SIZE, "%s", none);
		return;
	}
	if (__builtin_sub_overflow((int64_t)now_ns, ns, &seconds))
		seconds = INT64_MAX;
	seconds /= 1000000000;
	if (seconds < -1)
		(void)snprintf(text, AGE_SIZE, "<invalid>");
	else
		age_from_seconds(seconds < 0 ? 0 : (uint64_t)seconds, text);
}

void age_from_time(const char *time_text, size_t size, char text[AGE_SIZE])
{
	age_between(BYTES(time_text, size), proc_realtime_ns(), "<unknown>", text);
}

void age_since(uint64_t time_ns, char text[AGE_SIZE])
{
	uint64_t now = proc_realtime_ns();

	age_from_seconds(now > time_ns ? (now - time_ns) / 1000000000 : 0, text);
}
