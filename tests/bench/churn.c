/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the rate of watch events on N pods of a store, with a running processor and trimming,
 * and the sizes of the files after each tenth of the events. usage: churn STORE RUNTIME N UPDATES
 * [moving]
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/bench/measure.h"
#include "tests/bench/source.h"

/* Trimming never passes the index. The processor may be behind by LAG_MAX records, but no further
 * than the kept history: else the file would have the size of the longest lag, and show the
 * machine's load. */
enum { BATCH = 500, KEEP = 20000, LAG_MAX = KEEP, TENTHS = 10 };

/* One tenth of the updates. */
static void change_pods(
	struct source *source, const struct pods *pods, uint64_t updates, uint64_t *random)
{
	uint64_t version = source_next_version(source);

	for (uint64_t done = 0; done < updates; done++) {
		source_change(source, pods, measure_random(random) % pods->n, version + done, NULL);
		if (done % BATCH == BATCH - 1)
			source_commit(source);
		if (done % KEEP == KEEP - 1) {
			uint64_t last = source_last(source);

			source_wait_taken(source, last > LAG_MAX ? last - LAG_MAX : 0);
			source_trim(source, KEEP);
		}
	}
	source_commit(source);
	source_wait_taken(source, source_last(source));
	source_trim(source, KEEP);
}

static void print_sizes(unsigned tenth, const struct source_sizes *sizes)
{
	const struct {
		const char *name;
		uint64_t bytes;
	} rows[] = {{"journal_used", sizes->journal_used}, {"journal_file", sizes->journal_file},
		{"index_used", sizes->index_used}, {"index_file", sizes->index_file}};
	char name[64];

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		(void)snprintf(name, sizeof(name), "%s_%u", rows[i].name, tenth);
		result_number(name, (double)rows[i].bytes);
	}
}

int main(int argc, char **argv)
{
	struct source_sizes sizes[TENTHS];
	struct measure measure;
	struct source source;
	uint64_t random = 42;

	if (argc < 5) {
		(void)fputs("usage: churn STORE RUNTIME N UPDATES [moving]\n", stderr);
		return 2;
	}
	struct pods pods = {.n = must_number(argv[3], 1, "N"),
		.moving = argc > 5 && !strcmp(argv[5], "moving")};
	uint64_t updates = must_number(argv[4], TENTHS, "UPDATES");

	source_open(&source, argv[1], argv[2]);
	measure_begin(&measure);
	for (unsigned tenth = 0; tenth < TENTHS; tenth++) {
		change_pods(&source, &pods, updates / TENTHS, &random);
		source_sizes(&source, &sizes[tenth]);
	}
	double seconds = measure_wall(&measure);

	result_begin();
	result_number("updates", (double)(updates / TENTHS * TENTHS));
	result_number("seconds", seconds);
	for (unsigned tenth = 0; tenth < TENTHS; tenth++)
		print_sizes(tenth + 1, &sizes[tenth]);
	result_end();
	source_close(&source);
	return 0;
}
