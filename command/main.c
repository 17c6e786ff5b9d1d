/* SPDX-License-Identifier: Apache-2.0 */
/* kinf: finds the subcommand and runs it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "command/command.h"
#include "common/daemon/signals.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "common/output.h"
#include "common/proc.h"
#include "common/text/similar.h"

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *about;
};

static const struct command commands[] = {
#define COMMAND(name, symbol, about) {name, command_##symbol, about},
#include "command/command.def"
#undef COMMAND
};

static const struct options main_options = {.program = "kinf"}; /* for its name */

static void main_print_help(FILE *to)
{
	(void)fprintf(to,
		"usage: %s COMMAND [OPTION...]\n\n"
		"A cache of Kubernetes objects for all programs of this machine.\n\nCommands:\n",
		options_program(&main_options));
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		(void)fprintf(to, "  %-13s %s\n", commands[i].name, commands[i].about);
	(void)fprintf(to, "\n'%s COMMAND --help' describes one; the manual is kinf(1).\n",
		options_program(&main_options));
}

/* Moves options before the subcommand after it: common ones, and -n, for kubectl. */
static void main_command_first(int argc, char **argv)
{
	struct config_flags flags;
	const struct options_group common = config_common_options(&flags);
	int at = 1;

	while (at < argc && argv[at][0] == '-' && strcmp(argv[at], "--help") &&
		strcmp(argv[at], "-h") && strcmp(argv[at], "--version")) {
		const char *option = argv[at++];

		if (strcmp(option, "-n") == 0 || strcmp(option, "--namespace") == 0)
			at++;
		for (size_t i = 0; i < common.n; i++)
			if (common.specs[i].value && !strncmp(option, "--", 2) &&
				!strcmp(option + 2, common.specs[i].name))
				at++; /* the next argument is its value */
	}
	if (at >= argc)
		return;
	char *name = argv[at];
	memmove(argv + 2, argv + 1, (size_t)(at - 1) * sizeof(*argv));
	argv[1] = name;
}

static const struct command *main_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (strcmp(name, commands[i].name) == 0)
			return &commands[i];
	return NULL;
}

/* kinf __complete WORD...: prints the candidates for the last word. */
static int main_complete(int argc, char **argv)
{
	char *last = argc > 1 ? argv[--argc] : NULL;
	const struct command *command;

	main_command_first(argc, argv); /* not with the word being typed */
	command = argc > 1 ? main_find(argv[1]) : NULL;
	if (!last)
		return PROC_OK;
	if (command) {
		argv[argc] = last;
		complete_begin();
		return command->run(argc, argv + 1);
	}
	for (size_t i = 0; argc == 1 && i < ARRAY_SIZE(commands); i++)
		if (strncmp(commands[i].name, last, strlen(last)) == 0)
			complete_print(commands[i].name, commands[i].about);
	return PROC_OK;
}

/* Returns true if PATH is a link called NAME to this program: kubectl-kinf, kubectl's plugin, or
 * kubectl_complete-kinf, the plugin's completion. */
static bool main_is_called(const char *path, const char *name)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return path && strcmp(slash ? slash + 1 : path, name) == 0;
}

/* Finds the command, and runs it. Returns: the exit status. */
static int main_run(int argc, char **argv)
{
	main_command_first(argc, argv);
	const char *name = argc > 1 ? argv[1] : "";
	bool help = !strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h");
	const struct command *command = NULL;
	int r = failpoint_setup();

	if (r < 0) {
		(void)fprintf(stderr, "kinf: %s\n", err_text(r));
		return PROC_USAGE;
	}
	if (!strcmp(name, "--version") || !strcmp(name, "version")) {
		(void)printf("kinf %s\n", kinf_version());
		return PROC_OK;
	}
	if (help && argc == 2) {
		main_print_help(stdout);
		return PROC_OK;
	}
	if (help)
		name = argv[2];
	command = main_find(name);
	if (command && help) { /* `kinf help COMMAND` is `kinf COMMAND --help` */
		char program[32], option[] = "--help";

		(void)snprintf(program, sizeof(program), "%s", command->name);
		return command->run(2, (char *[]){program, option, NULL});
	}
	if (command)
		return command->run(argc - 1, argv + 1);
	if (*name == '-') {
		(void)fprintf(stderr, "kinf: which command? see 'kinf --help'\n");
		return PROC_USAGE;
	}
	if (!*name) {
		main_print_help(stderr);
		return PROC_USAGE;
	}
	const char *program = options_program(&main_options), *meant = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(commands) && !meant; i++)
		if (similar(name, commands[i].name))
			meant = commands[i].name;
	(void)fprintf(stderr, "%s: unknown command '%s'%s%s%s; see '%s --help'\n", program, name,
		meant ? ": did you mean '" : "", meant ? meant : "", meant ? "'?" : "", program);
	return PROC_USAGE;
}

int main(int argc, char **argv)
{
	bool for_kubectl = main_is_called(argv[0], "kubectl_complete-kinf");

	proc_begin();
	if (main_is_called(argv[0], "kubectl-kinf"))
		options_call("kubectl kinf");
	if (for_kubectl)
		complete_for_kubectl();
	if (for_kubectl || (argc > 1 && strcmp(argv[1], "__complete") == 0)) {
		int status = main_complete(argc - !for_kubectl, argv + !for_kubectl);
		complete_end();
		return status;
	}
	signals_begin();
	int status = main_run(argc, argv);
	int r = output_flush();
	if (r < 0 && r != -EPIPE) /* the consumer is gone: nothing to say */
		(void)command_fail(r);
	return status == PROC_OK && (r < 0 || command_saw_damage) ? PROC_FAILED : status;
}
