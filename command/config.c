/* SPDX-License-Identifier: Apache-2.0 */
/* kinf config check [FILE], kinf config rbac [FILE] */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command/command.h"
#include "command/manage/children.h"
#include "command/rbac.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/output.h"

/* A daemon with names of its own in the configuration. */
struct config_checker {
	const char *program, *names;
	bool needed;
};

/* Runs the daemon's own check. OPTIONS are the command line's. Returns the exit status. */
static int config_check_by(
	const struct config_checker *checker, char *const *options, int n_options, const char *file)
{
	static char check[] = "--check", config[] = "--config";
	AUTO_FREE char *path = NULL;
	AUTO_FREE char **argv = calloc((size_t)n_options + 5, sizeof(*argv));
	AUTO_FREE char *copy = file ? strdup(file) : NULL;
	int n = 0, status = 0;
	pid_t pid;

	if (!argv || (file && !copy))
		return command_fail(err_set(-ENOMEM, "checking"));
	int r = checker->needed ? children_find(checker->program, &path) : 0;
	if (r < 0)
		(void)fprintf(stderr, "note: %s%s: %s\n",
			r == -ENOENT ? checker->program : err_text(r),
			r == -ENOENT ? " is not installed here" : "", checker->names);
	if (r < 0 || !path)
		return PROC_OK;
	argv[n++] = path;
	for (int i = 0; i < n_options; i++)
		argv[n++] = options[i];
	if (file) {
		argv[n++] = config;
		argv[n++] = copy;
	}
	argv[n] = check;
	r = child_start(path, argv, &(struct child_start){.fd = 0}, &pid);
	if (r < 0)
		return command_fail(r);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? PROC_OK : PROC_FAILED;
}

/* Prints the rights for the feeds. An existing store knows the groups of custom resources. */
static int config_print_rbac(const struct config *config, const struct rbac_args *args)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	struct kinf_snapshot *snapshot = NULL;
	struct kinf *kinf = NULL;

	if (kinf_open(config->store, &kinf) == 0)
		err_ignore(kinf_snapshot_open(kinf, &snapshot),
			"a name without group is then an error");
	int r = rbac_write(config, args, snapshot, &out);
	kinf_snapshot_close(&snapshot);
	kinf_close(&kinf);
	if (r == 0)
		r = output_text(&out);
	return r < 0 ? command_fail(r) : PROC_OK;
}

/* Checks the parts of CONFIG on this machine. FILE is the operand, NULL if none. */
static int config_check(
	const struct config *config, char *const *options, int n_options, const char *file)
{
	const struct config_checker checkers[] = {
		{"kinf-reflector", "kubeconfig, context, group and directories are not checked",
			true},
		{"kinf-serve", "the files and addresses of 'serve' are not checked",
			config->serve.enabled},
	};

	for (size_t i = 0; i < ARRAY_SIZE(checkers); i++) {
		int status = config_check_by(&checkers[i], options, n_options, file);

		if (status != PROC_OK)
			return status;
	}
	(void)printf("%s: good: %zu feed%s, store '%s'\n",
		config->file ? config->file : "command line", config->n_feeds,
		config->n_feeds == 1 ? "" : "s", config->store);
	return PROC_OK;
}

int command_config(int argc, char **argv)
{
	CLEANUP(config_free) struct config *config = NULL;
	struct rbac_args args = {.name = NULL};
	CLEANUP(command_line_release)
	struct command_line line = {
		.options = {"kinf config", "check [FILE] | rbac [FILE]",
			"check: checks a configuration without starting anything: the file, and "
			"that the kubeconfig, the context, the group and the files of kinf-serve "
			"in it exist and are good, that the directories can be made and the "
			"addresses can be listened on. rbac: prints the rights that the feeds of a "
			"configuration need at the API server, for kubectl apply."},
		.groups = {rbac_options(&args), config_running_options(&line.flags)},
		.takes = {1, 2,
			"write 'check' or 'rbac', and the file if it is not the default one"},
	};
	int r = command_parse(&line, argc, argv);
	bool is_rbac = r == 0 && strcmp(line.operands[0], "rbac") == 0;
	bool is_check = r == 0 && strcmp(line.operands[0], "check") == 0;

	if (r == 0 && !is_check && !is_rbac)
		r = options_bad(&line.options, "%s", line.takes.rule);
	if (r == 0 && is_check && rbac_is_asked(&args))
		r = options_bad(&line.options, "--name, --namespace, --service-account, --user and "
					       "--group are options of 'kinf config rbac'");
	if (r == 0)
		r = rbac_check_args(&line.options, &args);
	if (r != 0)
		return command_usage(&line, r);
	const char *operand = line.n == 2 ? line.operands[1] : NULL;
	if (operand)
		line.flags.file = operand;
	r = config_load(&line.flags, &config);
	if (r < 0)
		return command_fail(r);
	command_note(config);
	r = config_need_feeds(config);
	if (r < 0)
		return command_fail(r);
	return is_rbac ? config_print_rbac(config, &args)
		       : config_check(config, argv + 1, argc - 1 - (int)line.n, operand);
}
