/* SPDX-License-Identifier: Apache-2.0 */
/* kinf rebuild-index */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command/command.h"
#include "command/manage/maintenance.h"
#include "common/cleanup.h"
#include "common/daemon/signals.h"
#include "common/err.h"

/* Makes kinf-processor's program build it and end. */
static int rebuild_offline(
	struct home **home, const struct config_flags *flags, char ret_text[CONTROL_SIZE])
{
	char store[PATH_MAX], runtime[PATH_MAX], index[PATH_MAX + 8];
	AUTO_FD int signals = -1;

	(void)snprintf(store, sizeof(store), "%s", home_path(*home));
	(void)snprintf(runtime, sizeof(runtime), "%s", home_runtime(*home));
	int r = maintenance_check_owner(*home);
	home_close(home);
	if (r < 0)
		return r;
	char *slash = strrchr(runtime, '/');
	if (slash)
		*slash = '\0'; /* its parent */
	signals = signals_open();
	if (signals < 0)
		return signals;
	const char *program[12] = {"kinf-processor", "--once", "--rebuild", "--store", store};
	size_t n = 5;
	if (slash) {
		program[n++] = "--runtime-dir";
		program[n++] = runtime;
	}
	if (flags->file || flags->cluster) {
		program[n++] = flags->file ? "--config" : "--cluster";
		program[n++] = flags->file ? flags->file : flags->cluster;
	}
	(void)snprintf(ret_text, CONTROL_SIZE, "the index is built");
	(void)snprintf(index, sizeof(index), "%s/index", store);
	return maintenance_run(program, signals, "building the index", index);
}

int command_rebuild_index(int argc, char **argv)
{
	CLEANUP(home_close) struct home *home = NULL;
	char text[CONTROL_SIZE];
	struct command_line line = {
		.options = {"kinf rebuild-index", "",
			"Builds the index again from the journal; the API server is not asked. "
			"Readers use the old index until the new one is complete. Works while "
			"kinf-processor runs, and without it; a feed that the configuration does "
			"not have keeps its indexes."},
	};
	int r = command_parse(&line, argc, argv);

	if (r != 0)
		return command_usage(&line, r);
	r = maintenance_open(&line.flags, &home);
	if (r == 0)
		r = maintenance_ask(
			home, HOME_PROCESSOR, "rebuild-index", "", "building the index", text);
	if (r == NOT_FOUND)
		r = rebuild_offline(&home, &line.flags, text);
	if (r != 0)
		return r < 0 ? command_fail(r) : PROC_FAILED; /* the failed program has told why */
	(void)printf("%s\n", text);
	return PROC_OK;
}
