/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf import FILE --store DIR: the reflector's program reads the file into a journal, the
 * processor's builds the index.
 */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command/command.h"
#include "command/manage/children.h"
#include "command/manage/maintenance.h"
#include "command/manage/partial.h"
#include "common/cleanup.h"
#include "common/daemon/signals.h"
#include "common/err.h"

#define IMPORTED "store"

struct import_work {
	struct partial partial;
	int signals;
};

static void import_work_release(struct import_work *work)
{
	partial_release(&work->partial);
	cleanup_fd(&work->signals);
}

static int import_make(struct import_work *work, const char *file, const struct config_flags *flags)
{
	char store[PATH_MAX], runtime[PATH_MAX], journal[PATH_MAX + 8], index[PATH_MAX + 8];

	int r = partial_begin(&work->partial, flags->store, PARTIAL_DIRECTORY);
	if (r == 0)
		r = partial_path(&work->partial, IMPORTED, store);
	if (r == 0)
		r = partial_path(&work->partial, "run", runtime);
	if (r == 0 && mkdir(runtime, 0700) < 0)
		r = err_set(-errno, "making '%s'", runtime);
	const char *configured = flags->file ? "--config" : "--cluster";
	const char *config = flags->file ? flags->file : flags->cluster;
	const char *reading[] = {"kinf-reflector", "--store", store, "--import", file,
		config ? configured : NULL, config, NULL};
	const char *indexing[] = {"kinf-processor", "--store", store, "--runtime-dir", runtime,
		"--once", config ? configured : NULL, config, NULL};
	if (r < 0)
		return r;
	(void)snprintf(journal, sizeof(journal), "%s/journal", store);
	(void)snprintf(index, sizeof(index), "%s/index", store);
	r = maintenance_run(reading, work->signals, "reading", journal);
	if (r == 0)
		r = maintenance_run(indexing, work->signals, "building the index", index);
	return r != 0 ? r : partial_end(&work->partial, IMPORTED);
}

int command_import(int argc, char **argv)
{
	CLEANUP(import_work_release)
	struct import_work work = {.partial = PARTIAL_INIT, .signals = -1};
	struct config_flags flags = {0};
	int first;
	const struct options_group groups[] = {config_common_options(&flags)};
	const struct options options = {"kinf import", "FILE",
		"Makes the directory --store a store of the objects in FILE (- reads standard "
		"input), a List as 'kubectl get -o json' and 'kinf export' print it: for tests, "
		"and to look into what somebody has sent. Each kind becomes a feed. An object that "
		"can't be stored, because it is nested too deep or its name is too long, is left "
		"out and named. Indexes are those of the configuration.",
		groups, ARRAY_SIZE(groups), false};
	int r = options_parse(&options, argc, argv, &first);

	if (r == 0 && (argc - first != 1 || !*argv[first]))
		r = options_bad(&options, "write one file, or - for standard input");
	if (r == 0 && (!flags.store || !*flags.store))
		r = options_bad(&options, "name the new store with --store DIR");
	if (r != 0)
		return command_usage(&options, r);
	work.signals = r = signals_open();
	if (r >= 0)
		r = import_make(&work, argv[first], &flags);
	if (r != 0)
		return r < 0 ? command_fail(r) : PROC_FAILED; /* the failed program has told why */
	(void)printf("made the store '%s': read it with --store\n", flags.store);
	return PROC_OK;
}
