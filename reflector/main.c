/* SPDX-License-Identifier: Apache-2.0 */
/* kinf-reflector: API server -> journal + delta ring. */
#include <stdio.h>

#include "common/cleanup.h"
#include "common/config/config.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "common/options.h"
#include "common/proc.h"
#include "reflector/loop.h"
#include "store/env/env.h"

#define PROGRAM "kinf-reflector"

static int complain(int error)
{
	log_event(LOG_ERROR, "main", "ended", "error=%s", log_quote(err_text(error)));
	return proc_exit_of(error);
}

static int run(struct config *config, const struct config_flags *flags)
{
	CLEANUP(loop_free) struct loop *loop = NULL;
	int r = loop_new(config, flags, &loop);

	if (r >= 0)
		r = loop_run(loop);
	return r < 0 ? complain(r) : PROC_OK;
}

int main(int argc, char **argv)
{
	CLEANUP(config_flags_release) struct config_flags flags = {0};
	CLEANUP(config_free) struct config *config = NULL;
	struct options_group groups[] = {config_running_options(&flags),
		config_common_options(&flags)};
	struct options options = {.program = PROGRAM, .usage = "",
		.about = "Reads the API server into the journal. 'kinf run' starts it.",
		.groups = groups, .n_groups = ARRAY_SIZE(groups)};
	int first;
	int r = options_parse(&options, argc, argv, &first);

	if (r == END)
		return PROC_OK;
	if (r >= 0 && first < argc)
		r = options_bad(&options, "unexpected operand '%s'", argv[first]);
	if (r < 0) {
		fprintf(stderr, PROGRAM ": %s\n", err_text(r));
		return PROC_USAGE;
	}
	log_setup(PROGRAM, LOG_INFO, config_first_format(&flags));
	r = failpoint_setup();
	if (r >= 0)
		r = config_load(&flags, &config);
	if (r < 0) {
		(void)complain(r);
		return PROC_CONFIG; /* a file that is not there too: somebody has to do something */
	}
	log_setup(PROGRAM, config->log_level, config->log_format);
	if (env_library_fault())
		log_event(LOG_WARNING, "store", "library", "text=%s", log_quote(env_library_fault()));
	return run(config, &flags);
}
