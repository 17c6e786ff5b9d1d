/* SPDX-License-Identifier: Apache-2.0 */
/* kinf index FEED [NAME] [--prefix P] */
#include <stdio.h>
#include <string.h>

#include "common/err.h"
#include "reader/command/command.h"
#include "reader/command/print.h"

struct index_args {
	const char *prefix;
};

static const struct option_spec index_options[] = {
	{0, "prefix", OPTION_TEXT, offsetof(struct index_args, prefix), "P",
		"only values that begin so"},
};

static int print_value(void *arg, const char *value, size_t size, uint64_t count)
{
	(void)arg;
	(void)fwrite(value, 1, size, stdout); /* print_flush tells */
	(void)printf("\t%llu\n", (unsigned long long)count);
	return 0;
}

static void print_head(bool *begun)
{
	if (!*begun)
		(void)printf("%-20s %12s %12s   %s\n", "NAME", "VALUES", "ENTRIES", "PATHS");
	*begun = true;
}

static int print_index(void *arg, const char *name, const char *paths, uint64_t values,
	uint64_t entries, int ready)
{
	print_head(arg);
	(void)printf("%-20s %12llu %12llu   ", name, (unsigned long long)values,
		(unsigned long long)entries);
	if (!*paths)
		(void)fputs("(built in)", stdout);
	for (; *paths; paths++)
		(void)fputs(*paths == '\n' ? ", " : (char[]){*paths, '\0'}, stdout);
	(void)fputs(ready ? "\n" : "   being filled\n", stdout);
	return 0;
}

static int print_indexes(struct kinf_snapshot *snapshot, const char *feed)
{
	bool begun = false;

	return kinf_index_list(snapshot, feed, print_index, &begun);
}

int command_index(int argc, char **argv)
{
	struct index_args args = {0};
	struct config_flags flags = {0};
	struct kinf *kinf = NULL;
	struct kinf_snapshot *snapshot = NULL;
	int first;
	const struct options_group groups[] = {
		{"Options", index_options, ARRAY_SIZE(index_options), &args},
		config_common_options(&flags),
	};
	const struct options options = {"kinf index", "FEED [NAME]",
		"Prints the indexes of a feed, or the values of one: VALUE, a tab, COUNT.", groups,
		ARRAY_SIZE(groups), false};
	int r = options_parse(&options, argc, argv, &first);

	if (r == 0 && (argc - first < 1 || argc - first > 2))
		r = options_bad(&options, "a feed and perhaps the name of an index are wanted");
	if (r != 0)
		return command_usage(&options, r);
	if (command_open(&flags, &kinf) < 0)
		return PROC_FAILED;
	int status = PROC_FAILED;
	if (command_snapshot(kinf, &snapshot) == 0) {
		r = argc - first == 2 ? kinf_index_values(snapshot, argv[first], argv[first + 1],
						args.prefix, print_value, NULL)
				      : print_indexes(snapshot, argv[first]);
		if (r < 0)
			status = command_fail_kinf(kinf);
		else if (r == KINF_AGAIN)
			(void)fprintf(stderr, "Error: %s is still being listed or indexed\n",
				argv[first]);
		else
			status = (r = print_flush()) < 0 ? command_fail(r) : PROC_OK;
	}
	kinf_snapshot_close(&snapshot);
	kinf_close(&kinf);
	return status;
}
