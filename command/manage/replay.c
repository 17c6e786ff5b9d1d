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
	struct config_flags flags = {0};
	char command[64], text[CONTROL_SIZE];
	int first;
	const struct options_group groups[] = {config_common_options(&flags)};
	const struct options options = {"kinf replay", "[step [N] | run [Nx] | stop]",
		"Controls a replay, kinf-serve with --at and --replay, and says where it is. step: "
		"one change, or N, and then it stands still. run: at its own pace, or N times as "
		"fast.",
		groups, ARRAY_SIZE(groups), false};
	int r = options_parse(&options, argc, argv, &first);

	if (r == 0 && argc - first > 2)
		r = options_bad(&options, "write one command");
	if (r == 0 && first < argc && strcmp(argv[first], "step") != 0 &&
		strcmp(argv[first], "run") != 0 && strcmp(argv[first], "stop") != 0)
		r = options_bad(&options, "'%s' is no command: step, run or stop", argv[first]);
	if (r != 0)
		return command_usage(&options, r);
	(void)snprintf(command, sizeof(command), "%s%s%s", argc > first ? argv[first] : "",
		argc - first == 2 ? " " : "", argc - first == 2 ? argv[first + 1] : "");
	r = maintenance_open(&flags, &home);
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
