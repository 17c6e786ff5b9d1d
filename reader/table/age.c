/* SPDX-License-Identifier: Apache-2.0 */
/* Ages as kubectl prints them (apimachinery's HumanDuration): two units at most, fewer digits the
 * older it is. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "reader/command/print.h"

#define MINUTE 60
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
#define YEAR   (365 * DAY)

/* "<n><unit>" and, when PART is not 0, "<part><small unit>" behind it. */
static void put_units(char *text, size_t size, int64_t n, char unit, int64_t part, char small)
{
	if (part)
		(void)snprintf(text, size, "%lld%c%lld%c", (long long)n, unit, (long long)part,
			small);
	else
		(void)snprintf(text, size, "%lld%c", (long long)n, unit);
}

void print_duration(uint64_t seconds, char *text, size_t size)
{
	int64_t s = seconds < INT64_MAX ? (int64_t)seconds : INT64_MAX;

	if (s < 2 * MINUTE)
		put_units(text, size, s, 's', 0, 0);
	else if (s < 10 * MINUTE)
		put_units(text, size, s / MINUTE, 'm', s % MINUTE, 's');
	else if (s < 3 * HOUR)
		put_units(text, size, s / MINUTE, 'm', 0, 0);
	else if (s < 8 * HOUR)
		put_units(text, size, s / HOUR, 'h', s % HOUR / MINUTE, 'm');
	else if (s < 2 * DAY)
		put_units(text, size, s / HOUR, 'h', 0, 0);
	else if (s < 8 * DAY)
		put_units(text, size, s / DAY, 'd', s % DAY / HOUR, 'h');
	else if (s < 2 * YEAR)
		put_units(text, size, s / DAY, 'd', 0, 0);
	else if (s < 8 * YEAR)
		put_units(text, size, s / YEAR, 'y', s % YEAR / DAY, 'd');
	else
		put_units(text, size, s / YEAR, 'y', 0, 0);
}

void print_age(const char *time_text, size_t size, char *ret_age, size_t age_size)
{
	char text[40];
	struct tm parts = {0};

	(void)snprintf(ret_age, age_size, "<unknown>");
	if (!size || size >= sizeof(text))
		return;
	memcpy(text, time_text, size);
	text[size] = '\0';
	if (!strptime(text, "%Y-%m-%dT%H:%M:%S", &parts))
		return;
	int64_t age = (int64_t)time(NULL) - (int64_t)timegm(&parts);
	if (age < -1)
		(void)snprintf(ret_age, age_size, "<invalid>");
	else
		print_duration(age < 0 ? 0 : (uint64_t)age, ret_age, age_size);
}
