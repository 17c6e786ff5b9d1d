/* SPDX-License-Identifier: Apache-2.0 */
#include "common/timestamp.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

/* Writes the text up to the seconds, "" for a year that struct tm can't hold. */
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
	(void)snprintf(text, TIMESTAMP_SIZE, "%s.%03" PRIu64 "Z", begin, realtime_ns / 1000000 % 1000);
}
