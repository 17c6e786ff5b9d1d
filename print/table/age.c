/* SPDX-License-Identifier: Apache-2.0 */
#include "print/table/age.h"

#include <stdio.h>

#include "common/proc.h"
#include "common/text/timestamp.h"

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

void age_between(struct bytes from, uint64_t now_ns, const char *none, char text[AGE_SIZE])
{
	static const struct bytes zero = BYTES_LIT("0001-01-01T00:00:00Z");
	int64_t ns, seconds;

	if (bytes_equal(from, zero)) {
		(void)snprintf(text, AGE_SIZE, "<unknown>");
		return;
	}
	if (!timestamp_parse(from, &ns)) {
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

static uint64_t age_fixed_ns; /* atomic */

void age_set_now(uint64_t realtime_ns)
{
	__atomic_store_n(&age_fixed_ns, realtime_ns, __ATOMIC_RELAXED);
}

uint64_t age_now_ns(void)
{
	uint64_t fixed_ns = __atomic_load_n(&age_fixed_ns, __ATOMIC_RELAXED);

	return fixed_ns ? fixed_ns : proc_realtime_ns();
}

void age_since(uint64_t time_ns, char text[AGE_SIZE])
{
	uint64_t now = age_now_ns();

	age_from_seconds(now > time_ns ? (now - time_ns) / 1000000000 : 0, text);
}
