/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf import SOURCE... --store DIR: the reflector's program reads the sources into a journal, the
 * processor's builds the index.
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command/command.h"
#include "command/manage/maintenance.h"
#include "command/manage/partial.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/daemon/signals.h"
#include "common/err.h"

#define IMPORTED "store"

/* Appends to the arguments of a program. */
static int import_add(struct option_texts *arguments, const char *text)
{
	return ARRAY_ADD(arguments->items, arguments->n, arguments->room, text,
		"the arguments of a program");
}

/* Runs the reflector's program on the SOURCES. Returns: 0; PROC_PARTLY; other exit statuses;
 * errors. */
static int import_read(int signals, char *const *sources, const char *store, const char *configured,
	const char *config)
{
	CLEANUP(option_texts_release) struct option_texts arguments = {.n = 0};
	const char *first[] = {"kinf-reflector", "--store", store, configured, config};
	char journal[PATH_MAX + 8];
	int r = 0;

	for (size_t i = 0; r == 0 && i < (configured ? 5 : 3); i++)
		r = import_add(&arguments, first[i]);
	for (; r == 0 && *sources; sources++) {
		r = import_add(&arguments, "--import");
		if (r == 0)
			r = import_add(&arguments, *sources);
	}
	if (r == 0)
		r = import_add(&arguments, NULL);
	(void)snprintf(journal, sizeof(journal), "%s/journal", store);
	return r < 0 ? r : maintenance_run(arguments.items, signals, "reading", journal);
}

int import_store(char *const *sources, const struct config_flags *flags, int signals)
{
	CLEANUP(partial_release) struct partial partial = PARTIAL_INIT;
	char store[PATH_MAX], runtime[PATH_MAX], index[PATH_MAX + 8];

	int r = partial_begin(&partial, flags->store, PARTIAL_DIRECTORY);
	if (r == 0)
		r = partial_path(&partial, IMPORTED, store);
	if (r == 0)
		r = partial_path(&partial, "run", runtime);
	if (r == 0 && mkdir(runtime, 0700) < 0)
		r = err_set(-errno, "making '%s'", runtime);
	const char *config = flags->file ? flags->file : flags->cluster;
	const char *configured = flags->file ? "--config" : config ? "--cluster" : NULL;
	const char *indexing[] = {"kinf-processor", "--store", store, "--runtime-dir", runtime,
		"--once", configured, config, NULL};
	if (r < 0)
		return r;
	(void)snprintf(index, sizeof(index), "%s/index", store);
	int read = import_read(signals, sources, store, configured, config);
	if (read != 0 && read != PROC_PARTLY)
		return read;
	r = maintenance_run(indexing, signals, "building the index", index);
	if (r == 0)
		r = partial_end(&partial, IMPORTED);
	return r != 0 ? r : read;
}

int command_import(int argc, char **argv)
{
	struct command_line line = {
		.options = {"kinf import", "SOURCE...",
			"Makes the directory --store a store of the objects in SOURCE: a file of "
			"JSON or YAML, a directory or an archive (tar, zip) of such files, or - "
			"for standard input. It takes what kubectl get -o json or yaml, kinf "
			"export, kubectl cluster-info dump, oc adm inspect and must-gather, "
			"support bundles of troubleshoot and Velero write. Each kind becomes a "
			"feed. Several dumps of a cluster, the oldest first, become its history. "
			"What can't be read or stored is left out and named. Indexes are those of "
			"the configuration."},
		.takes = {1, SIZE_MAX, "name a file, a directory, or - for standard input"},
	};
	int r = command_parse(&line, argc, argv);

	if (r == 0 && (!line.flags.store || !*line.flags.store))
		r = options_bad(&line.options, "name the new store with --store DIR");
	if (r != 0)
		return command_usage(&line, r);
	AUTO_FD int signals = r = signals_open();
	if (r >= 0)
		r = import_store(line.operands, &line.flags, signals);
	if (r != 0 && r != PROC_PARTLY)
		return r < 0 ? command_fail(r) : PROC_FAILED; /* the failed program has told why */
	(void)printf("made the store '%s'%s: read it with --store\n", line.flags.store,
		r == PROC_PARTLY ? " without what is named above" : "");
	return r == PROC_PARTLY ? PROC_FAILED : PROC_OK;
}
