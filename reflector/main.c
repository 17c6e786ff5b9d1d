/* SPDX-License-Identifier: Apache-2.0 */
/* kinf-reflector: API server -> journal + delta ring. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/daemon/daemon.h"
#include "common/err.h"
#include "common/proc.h"
#include "reflector/import/import.h"
#include "reflector/loop.h"
#include "reflector/net/http.h"
#include "store/env/home.h"
#include "store/journal/journal.h"

/* Has the next process begin another journal: it would end at the same damage. */
static void run_note_damage(const struct config *config)
{
	CLEANUP(home_close) struct home *home = NULL;
	struct err_kept kept;

	err_keep(&kept);
	int r = home_open(config->store, &(struct home_options){0}, &home);
	err_ignore(r, "the next start may note it");
	err_restore(&kept);
	if (r == 0)
		(void)journal_note_damage(home); /* the caller has the error */
}

/* Opens the status page of an existing store: a daemon unable to run makes none. */
static void open_page(struct daemon *daemon, const struct config *config)
{
	CLEANUP(home_close) struct home *home = NULL;
	int r = home_open(config->store, &(struct home_options){0}, &home);

	if (r == 0)
		r = home_take_role(home, HOME_REFLECTOR); /* a running one's page is not touched */
	if (r == 0 && home_runtime_fd(home) >= 0)
		r = daemon_continue_page(daemon, home_runtime_fd(home));
	err_ignore(r, "the log alone says why");
}

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
	if (r == ERR_CORRUPT) {
		run_note_damage(daemon->config);
		stats_add(daemon->stats, STAT_DAMAGED, 1);
	}
	int status = daemon_end(daemon, r);
	if (loop && (r >= 0 || r == ERR_MOVED))
		loop_remove_runtime(loop);
	return status;
}

/* Puts the directory PATH before the sentence of R. Returns R. */
static int check_directory(int r, const char *what, const char *path)
{
	return err_add(r, "the %s '%.200s' can't be %s", what, path,
		faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) == 0 ? "used" : "made");
}

/* Checks CONFIG's group, kubeconfig and context, and makes sure its directories can be made. An
 * unnamed kubeconfig may be missing: it may be on another machine. */
static int check(const struct config *config)
{
	CLEANUP(kubeconfig_free) struct kubeconfig *kubeconfig = NULL, *other = NULL;
	CLEANUP(http_free) struct http *http = NULL;
	struct err_kept kept;
	int r = config->group ? home_check_group(config->group) : 0;

	if (r < 0)
		return config_blame(config, "group", r);
	r = home_check_writable(config->store);
	if (r < 0)
		return config_blame(config, "store", check_directory(r, "store", config->store));
	r = home_check_place(config->store, config->runtime_dir);
	if (r == 0 && geteuid() != 0) /* root checks for others as well */
		r = home_check_owner(config->store);
	if (r < 0)
		return config_blame(config, "store", r);
	r = home_check_writable(config->runtime_dir);
	if (r < 0)
		return config_blame(config, "runtimeDir",
			check_directory(r, "runtime directory", config->runtime_dir));
	r = kubeconfig_load(config->kubeconfig, config->context, &kubeconfig);
	if (r < 0 && r == -ENOENT && !config->kubeconfig && !config->context) {
		(void)fprintf(stderr, "note: %s\n", err_text(r));
		err_ignore(r, "it is noted");
		return 0;
	}
	if (r == 0)
		r = http_new(kubeconfig, &http);
	if (r >= 0)
		return 0;
	/* The context is to blame if the kubeconfig is good without it. */
	err_keep(&kept);
	bool context = config->context && kubeconfig_load(config->kubeconfig, NULL, &other) == 0;
	err_restore(&kept);
	return config_blame(config, context ? "cluster.context" : "cluster.kubeconfig", r);
}

static struct {
	struct option_texts sources;
} import;

static int import_instead(const struct config *config)
{
	if (!import.sources.n)
		return END;
	int r = import_sources(config, import.sources.items, import.sources.n);
	return r == GONE ? PROC_PARTLY : r;
}

static bool import_is_asked(void)
{
	return import.sources.n;
}

int main(int argc, char **argv)
{
	static const struct option_spec specs[] = {{0, "import", OPTION_TEXTS, 0, "SOURCE",
		"make a new store of the objects in SOURCE, then exit: 'kinf import' runs this"}};
	static const struct options_group options = {
		"Importing", specs, ARRAY_SIZE(specs), &import};
	static const char *const commands[] = {"relist", "compact", NULL};
	static const struct daemon_program program = {
		.name = "kinf-reflector",
		.about = "Reads the API server into the journal. 'kinf run' starts it.",
		.status_page = "stats.reflector",
		.control_socket = "control.reflector",
		.commands = commands,
		.user = CONFIG_REFLECTOR,
		.check = check,
		.options = &options,
		.instead = import_instead,
		.is_of_command = import_is_asked,
		.open_page = open_page,
		.run = run,
	};

	return daemon_main(&program, argc, argv);
}
