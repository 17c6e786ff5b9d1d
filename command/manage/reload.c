/* SPDX-License-Identifier: Apache-2.0 */
/* kinf reload */
#include <stdio.h>

#include "command/command.h"
#include "command/manage/maintenance.h"
#include "common/cleanup.h"
#include "common/err.h"

/* Reports that no daemon runs on the store at PATH. */
static int reload_fail(const char *path)
{
	return command_fail(err_say(ERR_NO_STORE,
		"no daemon runs on store '%s': daemons read the configuration when they start; if "
		"they were started with another 'store', restart 'kinf run'",
		path));
}

int command_reload(int argc, char **argv)
{
	CLEANUP(home_close) struct home *home = NULL;
	const char *store = NULL;
	char text[CONTROL_SIZE];
	int status = PROC_OK, found = 0;
	struct command_line line = {
		.options = {"kinf reload", "",
			"Lets the daemons read the configuration again, as SIGHUP does, and says "
			"whether they use it. A configuration with an error changes nothing."},
	};
	int r = command_parse(&line, argc, argv);

	if (r != 0)
		return command_usage(&line, r);
	r = command_use_store(&line.flags, &store);
	if (r == 0)
		r = home_open(store, &(struct home_options){0}, &home);
	if (r == ERR_NO_STORE)
		return reload_fail(store);
	if (r < 0)
		return command_fail(r);
	for (int role = 0; role < HOME_ROLE_MAX; role++) {
		r = maintenance_ask(home, (enum home_role)role, "reload", "", "reloading", text);
		found += r != NOT_FOUND;
		if (r == 0)
			(void)printf("%s: uses %s\n", maintenance_name((enum home_role)role), text);
		else if (r < 0)
			status = command_fail(r);
	}
	r = maintenance_ask_serve(home, "reload", "", text);
	if (r == 0)
		(void)printf("kinf-serve: uses %s\n", text);
	if (r < 0)
		status = command_fail(err_add(r, "kinf-serve"));
	if (found || r != NOT_FOUND)
		return status;
	return reload_fail(home_path(home));
}
