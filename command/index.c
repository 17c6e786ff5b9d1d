/* SPDX-License-Identifier: Apache-2.0 */
/* kinf index FEED [NAME] [--prefix P] */
#include <stdio.h>
#include <string.h>

#include "command/command.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/output.h"
#include "print/table/display.h"

struct index_args {
	const char *prefix, *at;
};

static const struct option_spec index_options[] = {
	{0, "prefix", OPTION_TEXT, offsetof(struct index_args, prefix), "P",
		"only values that begin with P"},
	COMMAND_AT(offsetof(struct index_args, at)),
};

/* output_flush() finds write errors. */
static int index_print_value(void *arg, const char *value, size_t size, uint64_t count)
{
	struct buf *line = arg;

	buf_truncate(line, 0);
	display_bytes(BYTES(value, size), line); /* a value is a line */
	buf_printf(line, "\t%llu\n", (unsigned long long)count);
	int r = buf_error(line);
	if (r == 0)
		(void)fwrite(line->data, 1, line->size, stdout);
	return r;
}

static int index_print(void *arg, const char *name, const char *paths, uint64_t values,
	uint64_t entries, int ready)
{
	bool *begun = arg;

	if (!*begun)
		(void)printf("%-24s %12s %12s   %s\n", "NAME", "VALUES", "ENTRIES", "PATHS");
	*begun = true;
	(void)printf("%-24s %12llu %12llu   ", name, (unsigned long long)values,
		(unsigned long long)entries);
	if (!*paths)
		(void)fputs("(built in)", stdout);
	for (; *paths; paths++)
		(void)fputs(*paths == '\n' ? ", " : (char[]){*paths, '\0'}, stdout);
	(void)fputs(ready ? "\n" : "   being filled\n", stdout);
	return 0;
}

int command_index(int argc, char **argv)
{
	struct index_args args = {0};
	struct config_flags flags = {0};
	CLEANUP(kinf_close) struct kinf *kinf = NULL;
	CLEANUP(kinf_snapshot_close) struct kinf_snapshot *snapshot = NULL;
	CLEANUP(buf_release) struct buf line = BUF_INIT;
	struct past when;
	bool begun = false;
	int first;
	const struct options_group groups[] = {
		{"Options", index_options, ARRAY_SIZE(index_options), &args},
		config_common_options(&flags),
	};
	const struct options options = {"kinf index", "FEED [INDEX]",
		"Prints the indexes of a feed, or the values of one: VALUE, a tab, COUNT.", groups,
		ARRAY_SIZE(groups), false};
	int r = options_parse(&options, argc, argv, &first);

	if (r == 0 && (argc - first < 1 || argc - first > 2))
		r = options_bad(&options, "write a feed, and the name of an index for its values");
	if (r == 0 && args.at && argc - first == 1)
		r = options_bad(&options, "--at shows the values of one index: name it");
	if (r == 0)
		r = command_read_at(args.at, &when);
	if (r != 0)
		return command_usage(&options, r);
	if (command_open(&flags, &kinf) < 0 || command_snapshot(kinf, &snapshot) < 0 ||
		command_go_to(kinf, snapshot, &when) < 0)
		return PROC_FAILED;
	const char *feed = argv[first];
	r = when.event ? 0 : command_note_state(snapshot, feed, NULL, 0);
	if (r < 0)
		return command_fail_feed(kinf, feed, r);
	r = argc - first == 1 ? kinf_index_list(snapshot, feed, index_print, &begun)
			      : kinf_index_values(snapshot, feed, argv[first + 1], args.prefix,
					index_print_value, &line);
	if (r < 0)
		return command_fail_feed(kinf, feed, r);
	if (r == KINF_GONE)
		return command_fail_kinf(kinf);
	if (r == KINF_AGAIN)
		return command_fail_again(kinf, snapshot, feed, NULL);
	r = output_flush();
	return r < 0 ? command_fail(r) : PROC_OK;
}
