/* SPDX-License-Identifier: Apache-2.0 */
/* kinf relist FEED */
#include <stdio.h>

#include "command/command.h"
#include "command/manage/maintenance.h"
#include "common/cleanup.h"
#include "common/err.h"

int command_relist(int argc, char **argv)
{
	CLEANUP(home_close) struct home *home = NULL;
	char text[CONTROL_SIZE];
	struct command_line line = {
		.options = {"kinf relist", "FEED",
			"Lets the reflector list a feed again now, also one that waits after a "
			"failure. Objects that have not changed cause no event. Returns when the "
			"reflector has begun, or knows why it can't yet; 'kinf wait FEED --for "
			"live' waits for the end."},
		.takes = {1, 1, "write one feed"},
	};
	int r = command_parse(&line, argc, argv);

	if (r != 0)
		return command_usage(&line, r);
	r = maintenance_open(&line.flags, &home);
	if (r == 0)
		r = maintenance_ask(home, HOME_REFLECTOR, "relist", line.operands[0], "", text);
	if (r == NOT_FOUND)
		r = err_say(ERR_NO_STORE,
			"kinf-reflector does not run on store '%s': start it with 'kinf run'",
			home_path(home));
	if (r < 0)
		return command_fail(r);
	(void)printf("%s: %s\n", line.operands[0], text);
	return PROC_OK;
}
