/* SPDX-License-Identifier: Apache-2.0 */
/* kinf remove-store [--yes] */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command/command.h"
#include "command/manage/maintenance.h"
#include "common/cleanup.h"
#include "common/err.h"

struct remove_args {
	bool yes;
};

static const struct option_spec remove_options[] = {
	{'y', "yes", OPTION_FLAG, offsetof(struct remove_args, yes), NULL, "do not ask"},
};

static int remove_take(struct home *home)
{
	for (int role = 0; role < HOME_ROLE_MAX; role++) {
		int holder = home_role_holder(home, (enum home_role)role);

		if (holder)
			return err_say(ERR_LOCKED,
				"%s (process %d) uses the store '%s': stop it first",
				maintenance_name((enum home_role)role), holder, home_path(home));
		int r = maintenance_take(home, (enum home_role)role);
		if (r < 0)
			return r;
	}
	return 0;
}

int command_remove_store(int argc, char **argv)
{
	CLEANUP(home_close) struct home *home = NULL;
	struct remove_args args = {0};
	struct command_line line = {
		.options = {"kinf remove-store", "",
			"Removes a store that no daemon uses, and its runtime directory. Asks "
			"before, on a terminal. The configuration stays, and files that are not "
			"the store's."},
		.groups = {{"Options", remove_options, ARRAY_SIZE(remove_options), &args}},
		.takes = {0, 0, "; --store names the store"},
	};
	int r = command_parse(&line, argc, argv);

	if (r == 0 && !args.yes && !isatty(STDIN_FILENO))
		r = options_bad(
			&line.options, "there is no terminal to ask on: confirm with --yes");
	if (r != 0)
		return command_usage(&line, r);
	r = maintenance_open(&line.flags, &home);
	if (r < 0)
		return command_fail(r);
	if (!args.yes) {
		char answer[16] = "";

		(void)fprintf(stderr,
			"Remove the store '%s' with all its objects, history and cursors? [y/N] ",
			home_path(home));
		if (!fgets(answer, sizeof(answer), stdin) ||
			(answer[0] != 'y' && answer[0] != 'Y')) {
			(void)fprintf(stderr, "nothing was removed\n");
			return PROC_FAILED;
		}
	}
	r = remove_take(home);
	if (r == 0)
		r = home_remove(home);
	if (r < 0)
		return command_fail(r);
	if (r == NOT_FOUND)
		(void)fprintf(stderr,
			"note: the directory '%s' stays: it holds files that are not the store's, "
			"or may not be removed\n",
			home_path(home));
	(void)printf("removed the store '%s'\n", home_path(home));
	return PROC_OK;
}
