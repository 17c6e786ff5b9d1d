/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/measure.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/array.h"
#include "common/err.h"
#include "common/proc.h"

int must(int code, const char *what)
{
	if (code >= 0)
		return code;
	(void)fprintf(stderr, "bench: %s: %s\n", what, err_text(code));
	exit(1);
}

void must_true(bool ok, const char *what)
{
	if (ok)
		return;
	(void)fprintf(stderr, "bench: %s\n", what);
	exit(1);
}

uint64_t must_number(const char *text, uint64_t least, const char *what)
{
	char *end;

	errno = 0;
	uint64_t number = strtoull(text ? text : "", &end, 10);
	if (errno || !text || *end || end == text || number < least) {
		(void)fprintf(stderr, "bench: %s: not a number from %" PRIu64 " on: '%s'\n", what,
			least, text ? text : "");
		exit(2);
	}
	return number;
}

/* ---- clocks and memory -------------------------------------------------- */

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	must_true(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts) == 0, "clock");
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void measure_begin(struct measure *measure)
{
	measure->cpu_ns = cpu_ns();
	measure->wall_ns = proc_monotonic_ns();
}

double measure_wall(const struct measure *measure)
{
	return (double)(proc_monotonic_ns() - measure->wall_ns) / 1e9;
}

double measure_cpu(const struct measure *measure)
{
	return (double)(cpu_ns() - measure->cpu_ns) / 1e9;
}

uint64_t measure_private(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[256];
	uint64_t kib = 0;

	must_true(status != NULL, "/proc/self/status");
	while (fgets(line, sizeof(line), status))
		if (sscanf(line, "RssAnon: %" SCNu64, &kib) == 1)
			break;
	(void)fclose(status); /* only read */
	must_true(kib != 0, "/proc/self/status has no RssAnon");
	return kib * 1024;
}

/* ---- numbers ------------------------------------------------------------ */

uint64_t measure_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 2685821657736338717ull;
}

static uint64_t nearest_rank(const uint64_t *sorted, size_t n, double percent)
{
	size_t rank = (size_t)((double)n * percent / 100.0 + 0.999999);

	return sorted[rank ? rank - 1 : 0];
}

uint64_t measure_percentile(uint64_t *samples, size_t n, double percent)
{
	must_true(n > 0, "no samples");
	qsort(samples, n, sizeof(*samples), array_by_number);
	return nearest_rank(samples, n, percent);
}

/* ---- the result --------------------------------------------------------- */

static bool first;

void result_begin(void)
{
	first = true;
	(void)putchar('{');
}

void result_number(const char *name, double value)
{
	(void)printf("%s\"%s\": %.9g", first ? "" : ", ", name, value);
	first = false;
}

void result_samples(const char *name, uint64_t *ns, size_t n)
{
	static const struct {
		const char *suffix;
		double percent;
	} ranks[] = {{"p50_us", 50}, {"p99_us", 99}, {"max_us", 100}};
	char text[128];

	for (size_t i = 0; i < sizeof(ranks) / sizeof(*ranks); i++) {
		(void)snprintf(text, sizeof(text), "%s_%s", name, ranks[i].suffix);
		result_number(text, (double)measure_percentile(ns, n, ranks[i].percent) / 1000);
	}
	(void)snprintf(text, sizeof(text), "%s_n", name);
	result_number(text, (double)n);
}

void result_end(void)
{
	(void)puts("}");
	must_true(fflush(stdout) == 0, "stdout");
}
