/* SPDX-License-Identifier: Apache-2.0 */
/* kinf metrics: the status of a store as text for Prometheus. */
#include <stdio.h>

#include "command/command.h"
#include "common/cleanup.h"
#include "common/output.h"
#include "print/status/status.h"
#include "reader/handle.h"

int command_metrics(int argc, char **argv)
{
	const char *directory;
	CLEANUP(kinf_close) struct kinf *kinf = NULL;
	struct config_flags flags = {0};
	const struct options_group groups[] = {config_common_options(&flags)};
	const struct options options = {"kinf metrics", "",
		"Prints the counters of the daemons, and the state of store, feeds, readers and "
		"cursors, in Prometheus' text format, for instance for the textfile collector of "
		"its node exporter. Works while the daemons run and without them.",
		groups, ARRAY_SIZE(groups), false};
	int r = options_parse_all(&options, argc, argv);

	if (r != 0)
		return command_usage(&options, r);
	r = command_use_store(&flags, &directory);
	if (r < 0)
		return command_fail(r);
	r = kinf_open_checked(
		/* the good part of a damaged copy is counted */
		directory, NULL, NULL, true, &kinf);
	if (!kinf)
		return command_fail(r);
	CLEANUP(status_release) struct store_status status;
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	int gathered = status_gather(kinf, command_has_serve(&flags), &status);

	/* An unreadable store has metrics that say so. */
	r = metrics_text(&status, false, &out);
	if (r == 0)
		r = output_text(&out);
	if (r < 0)
		return command_fail(r);
	if (gathered < 0 || kinf->is_damaged)
		(void)fprintf(stderr, "Error: %s\n", status.error);
	return gathered < 0 || kinf->is_damaged ? PROC_FAILED : PROC_OK;
}
