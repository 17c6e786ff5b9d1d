/* SPDX-License-Identifier: Apache-2.0 */
/* kinf-reflector: API server -> journal + delta ring. */
#include "common/cleanup.h"
#include "common/daemon/daemon.h"
#include "reflector/loop.h"

static int run(struct daemon *daemon)
{
	CLEANUP(loop_free) struct loop *loop = NULL;
	int r = loop_new(daemon, &loop);

	return daemon_end(daemon, r < 0 ? r : loop_run(loop));
}

int main(int argc, char **argv)
{
	static const struct daemon_program program = {
		.name = "kinf-reflector",
		.about = "Reads the API server into the journal. 'kinf run' starts it.",
		.status_page = "stats.reflector",
		.user = CONFIG_REFLECTOR,
		.run = run,
	};

	return daemon_main(&program, argc, argv);
}
