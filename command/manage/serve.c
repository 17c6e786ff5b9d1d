/* SPDX-License-Identifier: Apache-2.0 */
/* kinf serve: becomes kinf-serve. */
#include <errno.h>
#include <unistd.h>

#include "command/command.h"
#include "command/manage/children.h"
#include "common/cleanup.h"
#include "common/err.h"

int command_serve(int argc, char **argv)
{
	AUTO_FREE char *path = NULL;
	int r = children_find("kinf-serve", &path);

	(void)argc;
	if (options_complete)
		return 0;
	if (r == 0 && execv(path, argv) < 0)
		r = err_set(-errno, "starting '%s'", path);
	return command_fail(r);
}
