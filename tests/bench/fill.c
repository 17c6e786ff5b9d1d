/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures a list of N synthetic pods into a store: JSON -> msgpack -> recorder -> journal, without
 * the network. A second run on the same store gives every pod a new version. With "wait" a
 * processor must be running; the program then also measures the time from the commit of the list's
 * end until the index has taken it. usage: fill STORE RUNTIME N [small] [moving] [wait]
 */
#include <stdio.h>
#include <string.h>

#include "tests/bench/measure.h"
#include "tests/bench/source.h"

static bool has(char **arguments, const char *word)
{
	for (; *arguments; arguments++)
		if (!strcmp(*arguments, word))
			return true;
	return false;
}

static void print_sizes(struct source *source)
{
	struct source_sizes sizes;

	source_sizes(source, &sizes);
	result_number("journal_used_bytes", (double)sizes.journal_used);
	result_number("journal_file_bytes", (double)sizes.journal_file);
	result_number("index_used_bytes", (double)sizes.index_used);
	result_number("index_file_bytes", (double)sizes.index_file);
}

int main(int argc, char **argv)
{
	struct source source;

	if (argc < 4) {
		(void)fputs("usage: fill STORE RUNTIME N [small] [moving] [wait]\n", stderr);
		return 2;
	}
	struct pods pods = {.n = must_number(argv[3], 1, "N"),
		.small = has(argv + 4, "small"),
		.moving = has(argv + 4, "moving")};
	source_open(&source, argv[1], argv[2]);
	source_list(&source, &pods, source_next_version(&source));
	double apply = has(argv + 4, "wait") ? source_wait_taken(&source, source_last(&source)) : 0;

	result_begin();
	result_number("objects", (double)pods.n);
	result_number("json_bytes", (double)source.json_bytes);
	result_number("record_s", source.record_wall);
	result_number("record_cpu_s", source.record_cpu);
	result_number("peak_private_bytes", (double)source.peak_private);
	if (apply > 0)
		result_number("apply_s", apply);
	print_sizes(&source);
	result_end();
	source_close(&source);
	return 0;
}
