/* SPDX-License-Identifier: Apache-2.0 */
/* kinf replay [step [N] | run [Nx] | stop] */
#include <stdio.h>
#include <string.h>

#include "command/command.h"
#include "command/manage/maintenance.h"
#include "common/cleanup.h"
#include "common/err.h"

int command_replay(int argc, char **argv)
{
	CLEANUP(home_close) struct home *home = NULL;
	char command[64], text[CONTROL_SIZE];
	struct command_line line = {
		.options = {"kinf replay", "[step [N] | run [Nx] | stop]",
			"Controls a replay, kinf-serve with --at and --replay, and says where it "
			"is. step: one change, or N, and then it stands still. run: at its own "
			"pace, or N times as fast."},
		.takes = {0, 2, "write one command"},
	};
	int r = command_parse(&line, argc, argv);

	if (r == 0 && line.n && strcmp(line.operands[0], "step") != 0 &&
		strcmp(line.operands[0], "run") != 0 && strcmp(line.operands[0], "stop") != 0)
		r = options_bad(
			&line.options, "'%s' is no command: step, run or stop", line.operands[0]);
	if (r != 0)
		return command_usage(&line, r);
	(void)snprintf(command, sizeof(command), "%s%s%s", line.n ? line.operands[0] : "",
		line.n == 2 ? " " : "", line.n == 2 ? line.operands[1] : "");
	r = maintenance_open(&line.flags, &home);
	if (r == 0)
		r = maintenance_ask_serve(home, "replay", command, text);
	if (r == NOT_FOUND)
		r = err_say(ERR_NO_STORE,
			"kinf-serve does not run on store '%s': start it with --at and --replay",
			home_path(home));
	if (r < 0)
		return command_fail(r);
	(void)printf("%s\n", text);
	return PROC_OK;
}
