/* SPDX-License-Identifier: Apache-2.0 */
/* kinf rebuild-index */
#include <stdio.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "reader/command/command.h"
#include "reader/command/maintenance.h"

int command_rebuild_index(int argc, char **argv)
{
	CLEANUP(home_close) struct home *home = NULL;
	struct config_flags flags = {0};
	char text[CONTROL_SIZE];
	int first;
	const struct options_group groups[] = {config_common_options(&flags)};
	const struct options options = {"kinf rebuild-index", "",
		"Builds the index again from the journal; the API server is not asked. Readers use the old "
		"index until the new one is complete. If kinf-processor does not run, it builds the index "
		"when it is started.",
		groups, ARRAY_SIZE(groups), false};
	int r = options_parse(&options, argc, argv, &first);

	if (r == 0 && first != argc)
		r = options_bad(&options, "'%s' is not an option", argv[first]);
	if (r != 0)
		return command_usage(&options, r);
	r = maintenance_open(&flags, &home);
	if (r == 0)
		r = maintenance_ask(home, HOME_PROCESSOR, "rebuild-index", "", "building the index", text);
	if (r == NOT_FOUND)
		r = err_say(ERR_NO_STORE,
			"kinf-processor does not run on store '%s': start it with 'kinf run'",
			home_path(home));
	if (r < 0)
		return command_fail(r);
	(void)printf("%s\n", text);
	return PROC_OK;
}
