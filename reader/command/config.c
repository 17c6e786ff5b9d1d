/* SPDX-License-Identifier: Apache-2.0 */
/* kinf config check [FILE] */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "reader/command/children.h"
#include "reader/command/command.h"

/* Lets kinf-reflector check what the configuration names: group, kubeconfig and context. OPTIONS are those of the
 * command line. Returns: the exit status. */
static int config_check_names(char *const *options, int n_options, const char *file)
{
	static char check[] = "--check", config[] = "--config";
	AUTO_FREE char *path = children_find("kinf-reflector");
	AUTO_FREE char **argv = calloc((size_t)n_options + 5, sizeof(*argv));
	AUTO_FREE char *copy = file ? strdup(file) : NULL;
	int n = 0, status = 0;
	pid_t pid;

	if (!argv || (file && !copy))
		return command_fail(err_set(-ENOMEM, "checking"));
	if (!path) {
		(void)fprintf(stderr, "note: kinf-reflector is not installed here: kubeconfig, "
				      "context and group are not checked\n");
		return PROC_OK;
	}
	argv[n++] = path;
	for (int i = 0; i < n_options; i++)
		argv[n++] = options[i];
	if (file) {
		argv[n++] = config;
		argv[n++] = copy;
	}
	argv[n] = check;
	int rc = posix_spawn(&pid, path, NULL, NULL, argv, environ);
	if (rc)
		return command_fail(err_set(-rc, "starting '%s'", path));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? PROC_OK : PROC_FAILED;
}

int command_config(int argc, char **argv)
{
	CLEANUP(config_free) struct config *config = NULL;
	CLEANUP(config_flags_release) struct config_flags flags = {0};
	int first;
	const struct options_group groups[] = {
		config_common_options(&flags),
		config_running_options(&flags),
	};
	const struct options options = {"kinf config", "check [FILE]",
		"Checks a configuration without starting anything: the file, and that the "
		"kubeconfig, the "
		"context and the group in it exist.",
		groups, ARRAY_SIZE(groups), false};
	int r = options_parse(&options, argc, argv, &first);

	if (r == 0 && (argc - first < 1 || argc - first > 2 || strcmp(argv[first], "check") != 0))
		r = options_bad(
			&options, "write 'check', and the file if it is not the default one");
	if (r != 0)
		return command_usage(&options, r);
	if (argc - first == 2)
		flags.file = argv[first + 1];
	r = config_load(&flags, &config);
	if (r < 0)
		return command_fail(r);
	if (config->passed_over)
		(void)fprintf(stderr, "note: %s\n", config->passed_over);
	if (!config->n_feeds) {
		(void)fprintf(stderr, "Error: %s: no feeds; name at least one under 'feeds'\n",
			config->file ? config->file
				     : "no ./kinf.yaml and no /etc/kinf/kinf.yaml");
		return PROC_FAILED;
	}
	int status =
		config_check_names(argv + 1, first - 1, argc - first == 2 ? argv[first + 1] : NULL);
	if (status != PROC_OK)
		return status;
	(void)printf("%s: good: %zu feed%s, store '%s'\n",
		config->file ? config->file : "command line", config->n_feeds,
		config->n_feeds == 1 ? "" : "s", config->store);
	return PROC_OK;
}
