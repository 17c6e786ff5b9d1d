/* SPDX-License-Identifier: Apache-2.0 */
/* kinf clusters */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/output.h"
#include "print/table/table.h"
#include "store/env/home.h"

struct clusters {
	struct dirent **files; /* NAME.yaml, by name */
	int n;
};

static void clusters_release(struct clusters *clusters)
{
	for (int i = 0; i < clusters->n; i++)
		free(clusters->files[i]);
	free(clusters->files);
}

static int clusters_is_file(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && fnmatch("?*.yaml", entry->d_name, 0) == 0;
}

/* Returns the state of a store in words. */
static const char *clusters_state(const char *store)
{
	CLEANUP(home_close) struct home *home = NULL;
	int r = home_open(store, &(struct home_options){0}, &home);

	err_ignore(r, "the state says so");
	if (r == ERR_NO_STORE)
		return "no store yet";
	if (r == -EACCES)
		return "no permission";
	if (r < 0)
		return "unreadable store";
	bool reflector = home_role_holder(home, HOME_REFLECTOR);
	bool processor = home_role_holder(home, HOME_PROCESSOR);
	return reflector && processor   ? "running"
	       : reflector || processor ? "partly running"
					: "stopped";
}

int command_clusters(int argc, char **argv)
{
	CLEANUP(clusters_release) struct clusters clusters = {.n = 0};
	static const char *const heads[] = {"NAME", "STATE", "STORE"};
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	CLEANUP(table_release) struct table table;
	int bad = 0;
	struct command_line line = {
		.options = {"kinf clusters", "",
			"Lists the configurations /etc/kinf/NAME.yaml, with their stores. 'kinf "
			"--cluster NAME COMMAND' uses one of them."},
	};
	table_init(&table, heads, ARRAY_SIZE(heads));
	int r = command_parse(&line, argc, argv);

	if (r != 0)
		return command_usage(&line, r);
	clusters.n = scandir(config_directory(), &clusters.files, clusters_is_file, alphasort);
	if (clusters.n < 0 && errno != ENOENT)
		return command_fail(err_set(-errno, "'%s'", config_directory()));
	if (clusters.n <= 0) {
		(void)fprintf(stderr, "no configurations: there is no NAME.yaml in '%s'\n",
			config_directory());
		return PROC_OK;
	}
	for (int i = 0; r == 0 && i < clusters.n; i++) {
		CLEANUP(config_free) struct config *config = NULL;
		char *name = clusters.files[i]->d_name;
		const struct config_flags one = {.cluster = name};
		const char *cells[] = {name, "bad file", ""};

		*strrchr(name, '.') = '\0';
		r = config_load(&one, &config);
		if (r < 0) {
			bad++;
			(void)command_fail(r);
		} else {
			cells[1] = clusters_state(config->store);
			cells[2] = config->store;
		}
		r = table_row(&table, cells, &out);
	}
	if (r == 0)
		r = table_settle(&table, &out);
	if (r == 0)
		r = output_text(&out);
	if (r < 0)
		return command_fail(r);
	return bad ? PROC_FAILED : PROC_OK;
}
