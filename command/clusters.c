/* SPDX-License-Identifier: Apache-2.0 */
/* kinf clusters */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/output.h"
#include "print/table/table.h"
#include "store/env/home.h"

struct clusters {
	char **names;
	size_t n, room;
};

static void clusters_release(struct clusters *clusters)
{
	for (size_t i = 0; i < clusters->n; i++)
		free(clusters->names[i]);
	free(clusters->names);
}

/* Finds the names NAME of the files NAME.yaml. */
static int clusters_find(struct clusters *clusters)
{
	DIR *directory = opendir(config_directory());
	int r = 0;

	if (!directory && errno == ENOENT)
		return 0;
	if (!directory)
		return err_set(-errno, "'%s'", config_directory());
	for (const struct dirent *entry; r == 0 && (entry = readdir(directory));) {
		size_t size = strlen(entry->d_name);

		if (size <= 5 || entry->d_name[0] == '.' ||
			strcmp(entry->d_name + size - 5, ".yaml") != 0)
			continue;
		char *name = strndup(entry->d_name, size - 5);
		r = name ? ARRAY_ADD(clusters->names, clusters->n, clusters->room, name,
				   "the clusters")
			 : err_set(-ENOMEM, "the clusters");
		if (r < 0)
			free(name);
	}
	(void)closedir(directory);
	if (clusters->n)
		qsort(clusters->names, clusters->n, sizeof(*clusters->names), array_by_text);
	return r;
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
	CLEANUP(clusters_release) struct clusters clusters = {.names = NULL};
	static const char *const heads[] = {"NAME", "STATE", "STORE"};
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	CLEANUP(table_release) struct table table;
	struct config_flags flags = {0};
	int bad = 0;
	const struct options_group groups[] = {config_common_options(&flags)};
	const struct options options = {"kinf clusters", "",
		"Lists the configurations /etc/kinf/NAME.yaml, with their stores. 'kinf --cluster "
		"NAME COMMAND' uses one of them.",
		groups, ARRAY_SIZE(groups), false};
	table_init(&table, heads, ARRAY_SIZE(heads));
	int r = options_parse_all(&options, argc, argv);

	if (r != 0)
		return command_usage(&options, r);
	r = clusters_find(&clusters);
	if (r < 0)
		return command_fail(r);
	if (!clusters.n) {
		(void)fprintf(stderr, "no configurations: there is no NAME.yaml in '%s'\n",
			config_directory());
		return PROC_OK;
	}
	for (size_t i = 0; r == 0 && i < clusters.n; i++) {
		CLEANUP(config_free) struct config *config = NULL;
		const struct config_flags one = {.cluster = clusters.names[i]};

		const char *cells[] = {clusters.names[i], "bad file", ""};

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
