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
	struct config_flags flags = {0};
	char text[CONTROL_SIZE];
	int first;
	const struct options_group groups[] = {config_common_options(&flags)};
	const struct options options = {"kinf relist", "FEED",
		"Lets the reflector list a feed again now, also one that waits after a failure. "
		"Objects that have not changed cause no event. Returns when the reflector has "
		"begun, or knows why it can't yet; 'kinf wait FEED --for live' waits for the end.",
		groups, ARRAY_SIZE(groups), false};
	int r = options_parse(&options, argc, argv, &first);

	if (r == 0 && argc - first != 1)
		r = options_bad(&options, "write one feed");
	if (r == 0 && !*argv[first])
		r = options_bad(&options, "the name of the feed is empty");
	if (r != 0)
		return command_usage(&options, r);
	r = maintenance_open(&flags, &home);
	if (r == 0)
		r = maintenance_ask(home, HOME_REFLECTOR, "relist", argv[first], "", text);
	if (r == NOT_FOUND)
		r = err_say(ERR_NO_STORE,
			"kinf-reflector does not run on store '%s': start it with 'kinf run'",
			home_path(home));
	if (r < 0)
		return command_fail(r);
	(void)printf("%s: %s\n", argv[first], text);
	return PROC_OK;
}
