/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all measuring programs share: clocks, memory, percentiles, and one line of JSON as the
 * result. A program that can't go on says why on stderr and ends with 1: a figure that was not
 * measured is never printed.
 */
#ifndef TESTS_BENCH_MEASURE_H
#define TESTS_BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ends the program with WHAT and the sentence of CODE when CODE is an error. Returns CODE. */
int must(int code, const char *what);
void must_true(bool ok, const char *what);
/* A command line operand: a number of at least LEAST. */
uint64_t must_number(const char *text, uint64_t least, const char *what);

/* Wall clock and CPU of this process (user and system), both in seconds, since measure_begin(). */
struct measure {
	uint64_t wall_ns;
	uint64_t cpu_ns;
};
void measure_begin(struct measure *measure);
double measure_wall(const struct measure *measure);
double measure_cpu(const struct measure *measure);

/* Anonymous memory of this process now, in bytes (RssAnon): what no other process shares. Mapped
 * store files and rings are not in it. Cheap enough to sample. */
uint64_t measure_private(void);

/* xorshift64*: the same numbers in every run. STATE must not be 0. */
uint64_t measure_random(uint64_t *state);

/* The nearest-rank percentile; sorts SAMPLES. */
uint64_t measure_percentile(uint64_t *samples, size_t n, double percent);

/* The result: {"name": number, ...} in one line. */
void result_begin(void);
void result_number(const char *name, double value);
/* NAME_p50_us, NAME_p99_us, NAME_max_us and NAME_n of nanoseconds; sorts them. */
void result_samples(const char *name, uint64_t *ns, size_t n);
void result_end(void);

#endif
