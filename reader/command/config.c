/* SPDX-License-Identifier: Apache-2.0 */
/* kinf config check [FILE] */
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "reader/command/command.h"

int command_config(int argc, char **argv)
{
	CLEANUP(config_free) struct config *config = NULL;
	CLEANUP(config_flags_release) struct config_flags flags = {0};
	int first;
	const struct options_group groups[] = {
		config_common_options(&flags),
		config_running_options(&flags),
	};
	const struct options options = {"kinf config", "check [FILE]",
		"Checks a configuration without starting anything.", groups,
		ARRAY_SIZE(groups), false};
	int r = options_parse(&options, argc, argv, &first);

	if (r == 0 && (argc - first < 1 || argc - first > 2 || strcmp(argv[first], "check") != 0))
		r = options_bad(
			&options, "write 'check', and the file if it is not the default one");
	if (r != 0)
		return command_usage(&options, r);
	if (argc - first == 2)
		flags.file = argv[first + 1];
	r = config_load(&flags, &config);
	if (r < 0)
		return command_fail(r);
	if (config->passed_over)
		(void)fprintf(stderr, "note: %s\n", config->passed_over);
	if (!config->n_feeds) {
		(void)fprintf(stderr, "Error: %s: no feeds; name at least one under 'feeds'\n",
			config->file ? config->file
				     : "no ./kinf.yaml and no /etc/kinf/kinf.yaml");
		return PROC_FAILED;
	}
	(void)printf("%s: good: %zu feed%s, store '%s'\n",
		config->file ? config->file : "command line", config->n_feeds,
		config->n_feeds == 1 ? "" : "s", config->store);
	return PROC_OK;
}
