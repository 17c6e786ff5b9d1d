/* SPDX-License-Identifier: Apache-2.0 */
/* kinf cursor ls | rm NAME... */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "command/command.h"
#include "common/err.h"
#include "common/output.h"
#include "common/text/utf8.h"
#include "print/print.h"
#include "print/table/age.h"
#include "reader/handle.h"
#include "store/read/follow.h"

struct cursor_rows {
	struct home *home;
	struct table table;
	struct buf out;
};

/* EVENT: the follower has examined all its feeds up to it. */
static int cursor_list_one(void *arg, const char *name, const struct cursor_file *cursor)
{
	struct cursor_rows *rows = arg;
	char age[AGE_SIZE];

	age_since(cursor->written_ns, age);
	return table_print(&rows->table, &rows->out, "%s\t%zu\t%" PRIu64 "\t%s", name, cursor->n,
		cursor_least(cursor), age);
}

/* Names a damaged cursor, or another file; the group's members choose such names. */
static void cursor_list_bad(void *arg, int error)
{
	struct cursor_rows *rows = arg;
	char text[COMMAND_TEXT_SIZE];

	(void)snprintf(text, sizeof(text), "%s", err_text(error));
	utf8_make_printable(text);
	if (error == -EINVAL)
		(void)fprintf(stderr,
			"note: a file in '%s/cursors' is no cursor: %s; remove it if it is not "
			"needed\n",
			home_path(rows->home), text);
	else
		(void)fprintf(stderr, "note: not shown: %s\n", text);
}

static int cursor_list(struct home *home)
{
	static const char *const heads[] = {"NAME", "FEEDS", "EVENT", "WRITTEN"};
	struct cursor_rows rows = {.home = home, .out = BUF_INIT};

	table_init(&rows.table, heads, ARRAY_SIZE(heads));
	int r = cursor_each(home, cursor_list_one, cursor_list_bad, &rows);
	if (r == 0)
		r = table_settle(&rows.table, &rows.out);
	if (r == 0)
		r = output_text(&rows.out);
	table_release(&rows.table);
	buf_release(&rows.out);
	return r < 0 ? command_fail(r) : PROC_OK;
}

static int cursor_remove_all(struct home *home, char **names, size_t n)
{
	int status = PROC_OK;

	for (size_t i = 0; i < n; i++) {
		int r = cursor_remove(home, names[i]);

		if (r == NOT_FOUND)
			(void)fprintf(stderr,
				"Error: cursor \"%s\" not found; 'kinf cursor ls' lists them\n",
				names[i]);
		else if (r < 0)
			(void)command_fail(r);
		else
			(void)printf("cursor \"%s\" removed\n", names[i]);
		if (r != FOUND)
			status = PROC_FAILED;
	}
	int r = output_flush();
	return r < 0 ? command_fail(r) : status;
}

int command_cursor(int argc, char **argv)
{
	struct kinf *kinf = NULL;
	struct command_line line = {
		.options = {"kinf cursor", "ls | rm CURSOR...",
			"Lists the named cursors of followers, or removes some; the store then no "
			"longer keeps history for them."},
		.takes = {1, SIZE_MAX, "write 'ls', or 'rm' and names"},
	};
	int r = command_parse(&line, argc, argv);
	bool is_ls = r == 0 && strcmp(line.operands[0], "ls") == 0;

	if (r == 0 && (is_ls ? line.n > 1 : line.n < 2 || strcmp(line.operands[0], "rm") != 0))
		r = options_bad(&line.options, "%s", line.takes.rule);
	for (size_t i = 1; r == 0 && i < line.n; i++)
		r = cursor_check_name(line.operands[i]);
	if (r != 0)
		return command_usage(&line, r);
	if (command_open(&line.flags, &kinf) < 0)
		return PROC_FAILED;
	struct home *home = store_home(kinf->store);
	int status =
		is_ls ? cursor_list(home) : cursor_remove_all(home, line.operands + 1, line.n - 1);
	kinf_close(&kinf);
	return status;
}
