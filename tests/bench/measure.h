/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools of all measuring programs: clocks, memory, percentiles, and the result as one line of JSON.
 * A failed program prints the reason on stderr and exits with 1, without a result.
 */
#ifndef TESTS_BENCH_MEASURE_H
#define TESTS_BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ends the program with WHAT and the text of CODE on an error; otherwise returns CODE. */
int must(int code, const char *what);
void must_true(bool ok, const char *what);
/* Parses a command line operand: a number of at least LEAST. */
uint64_t must_number(const char *text, uint64_t least, const char *what);

/* Measure the wall clock and the CPU time of this process (user and system) since measure_begin(),
 * in seconds. */
struct measure {
	uint64_t wall_ns;
	uint64_t cpu_ns;
};
void measure_begin(struct measure *measure);
double measure_wall(const struct measure *measure);
double measure_cpu(const struct measure *measure);

/* Returns the unshared anonymous memory of this process in bytes (RssAnon); mapped store files and
 * rings do not count. It is cheap enough to sample. */
uint64_t measure_private(void);

/* xorshift64*: the same numbers in every run. STATE must not be 0. */
uint64_t measure_random(uint64_t *state);

/* Returns the nearest-rank percentile; sorts SAMPLES. */
uint64_t measure_percentile(uint64_t *samples, size_t n, double percent);

/* Print the result: {"name": number, ...} in one line. */
void result_begin(void);
void result_number(const char *name, double value);
/* Adds NAME_p50_us, NAME_p99_us, NAME_max_us and NAME_n of nanoseconds; sorts them. */
void result_samples(const char *name, uint64_t *ns, size_t n);
void result_end(void);

#endif
