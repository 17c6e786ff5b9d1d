/* SPDX-License-Identifier: Apache-2.0 */
/* kinf cursor ls | rm NAME... */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "command/command.h"
#include "common/err.h"
#include "common/output.h"
#include "print/print.h"
#include "print/table/age.h"
#include "reader/handle.h"
#include "store/read/follow.h"

#define CURSOR_BAD_NAMED 20 /* named files other than cursors; the rest is counted */

struct cursor_rows {
	struct home *home;
	struct table table;
	struct buf out;
	size_t bad;
};

/* EVENT: the follower has examined all its feeds up to it. */
static int cursor_list_one(void *arg, const char *name, const struct cursor_file *cursor)
{
	struct cursor_rows *rows = arg;
	char feeds[24], event[24], age[AGE_SIZE];
	const char *const cells[] = {name, feeds, event, age};

	(void)snprintf(feeds, sizeof(feeds), "%zu", cursor->n);
	(void)snprintf(event, sizeof(event), "%" PRIu64, cursor_least(cursor));
	age_since(cursor->written_ns, age);
	return table_row(&rows->table, cells, &rows->out);
}

/* Names a damaged cursor, or another file; the group's members choose such names. */
static void cursor_list_bad(void *arg, int error)
{
	struct cursor_rows *rows = arg;
	char text[COMMAND_TEXT_SIZE];

	if (rows->bad++ >= CURSOR_BAD_NAMED)
		return;
	(void)snprintf(text, sizeof(text), "%s", err_text(error));
	for (char *c = text; *c; c++)
		*c = iscntrl((unsigned char)*c) ? '?' : *c;
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
	int r = cursor_each_file(home, cursor_list_one, cursor_list_bad, &rows);
	if (r == 0)
		r = table_settle(&rows.table, &rows.out);
	if (r == 0)
		r = output_text(&rows.out);
	if (rows.bad > CURSOR_BAD_NAMED)
		(void)fprintf(stderr,
			"note: %zu more files in '%s/cursors' are no cursors, or do not count\n",
			rows.bad - CURSOR_BAD_NAMED, home_path(home));
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
	struct config_flags flags = {0};
	struct kinf *kinf = NULL;
	int first;
	const struct options_group groups[] = {config_common_options(&flags)};
	const struct options options = {"kinf cursor", "ls | rm CURSOR...",
		"Lists the named cursors of followers, or removes some; the store then no longer "
		"keeps history for them.",
		groups, ARRAY_SIZE(groups), false};
	int r = options_parse(&options, argc, argv, &first);
	bool is_ls = r == 0 && argc - first == 1 && strcmp(argv[first], "ls") == 0;
	bool is_rm = r == 0 && argc - first >= 2 && strcmp(argv[first], "rm") == 0;

	if (r == 0 && !is_ls && !is_rm)
		r = options_bad(&options, "write 'ls', or 'rm' and names");
	for (int i = first + 1; r == 0 && is_rm && i < argc; i++)
		r = cursor_check_name(argv[i]);
	if (r != 0)
		return command_usage(&options, r);
	if (command_open(&flags, &kinf) < 0)
		return PROC_FAILED;
	struct home *home = store_home(kinf->store);
	int status = is_ls ? cursor_list(home)
			   : cursor_remove_all(home, argv + first + 1, (size_t)(argc - first - 1));
	kinf_close(&kinf);
	return status;
}
