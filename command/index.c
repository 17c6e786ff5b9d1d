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
	CLEANUP(command_view_release) struct command_view view = {.kinf = NULL};
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	struct command_line line = {
		.options = {"kinf index", "FEED [INDEX]",
			"Prints the indexes of a feed, or the values of one: VALUE, a tab, COUNT."},
		.groups = {{"Options", index_options, ARRAY_SIZE(index_options), &args}},
		.takes = {1, 2, "write a feed, and the name of an index for its values"},
	};
	bool begun = false;
	int r = command_parse(&line, argc, argv);

	if (r == 0 && args.at && line.n == 1)
		r = options_bad(&line.options, "--at shows the values of one index: name it");
	if (r == 0)
		r = command_read_at(args.at, &view.when);
	if (r != 0)
		return command_usage(&line, r);
	const char *feed = line.operands[0];
	if (command_view_open(&view, &line.flags) < 0 ||
		command_note_state(&view, feed, NULL, 0) != PROC_OK)
		return PROC_FAILED;
	r = line.n == 1 ? kinf_index_list(view.snapshot, feed, index_print, &begun)
			: kinf_index_values(view.snapshot, feed, line.operands[1], args.prefix,
				  index_print_value, &text);
	if (r != 0)
		return command_fail_read(view.kinf, feed, r);
	r = output_flush();
	return r < 0 ? command_fail(r) : PROC_OK;
}
