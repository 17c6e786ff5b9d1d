/* SPDX-License-Identifier: Apache-2.0 */
/* kinf-reflector: API server -> journal + delta ring. */
#include "common/cleanup.h"
#include "common/daemon/daemon.h"
#include "common/err.h"
#include "reflector/loop.h"

static int run(struct daemon *daemon)
{
	CLEANUP(loop_free) struct loop *loop = NULL;
	int r = loop_new(daemon, &loop);

	if (r < 0 && daemon->stop) {
		err_ignore(r, "the daemon was told to stop while it waited for the journal");
		r = 0;
	} else if (r >= 0) {
		r = loop_run(loop);
	}
	return daemon_end(daemon, r);
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
