/* SPDX-License-Identifier: Apache-2.0 */
/* kinf: finds the subcommand, which does the rest. */
#include <stdio.h>
#include <string.h>

#include "common/failpoint.h"
#include "common/err.h"
#include "reader/command/command.h"

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *about;
};

static const struct command commands[] = {
#define COMMAND(name, symbol, about) {name, command_##symbol, about},
#include "reader/command/command.def"
#undef COMMAND
};

static void print_help(FILE *to)
{
	(void)fputs("usage: kinf COMMAND [OPTION...]\n\n"
		    "The machine's Kubernetes informer cache.\n\nCommands:\n",
		to);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		(void)fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].about);
	(void)fputs("\n'kinf COMMAND --help' and 'kinf help COMMAND' say what each takes.\n", to);
}

/* `kinf help COMMAND` is `kinf COMMAND --help`. */
static bool is_help(const char *name)
{
	return !strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h");
}

/* Is ARGUMENT one of the common options that takes the next argument as its value? */
static bool takes_next(const char *argument)
{
	struct config_flags flags;
	const struct options_group common = config_common_options(&flags);

	for (size_t i = 0; i < common.n; i++)
		if (common.specs[i].value && !strncmp(argument, "--", 2) &&
			!strcmp(argument + 2, common.specs[i].name))
			return true;
	return false;
}

static bool wants_help(const char *argument)
{
	return !strcmp(argument, "--help") || !strcmp(argument, "-h") ||
		!strcmp(argument, "--version");
}

/* Common options may stand before the command too: they are moved behind it. */
static void command_first(int argc, char **argv)
{
	int at = 1;

	while (at < argc && argv[at][0] == '-' && !wants_help(argv[at]))
		at += takes_next(argv[at]) ? 2 : 1;
	if (at >= argc)
		return;
	char *name = argv[at];
	memmove(argv + 2, argv + 1, (size_t)(at - 1) * sizeof(*argv));
	argv[1] = name;
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (strcmp(name, commands[i].name) == 0)
			return &commands[i];
	return NULL;
}

static int say_unknown(const char *name)
{
	if (*name == '-')
		(void)fprintf(stderr, "kinf: which command? see 'kinf --help'\n");
	else if (*name)
		(void)fprintf(stderr, "kinf: unknown command '%s'; see 'kinf --help'\n", name);
	else
		print_help(stderr);
	return PROC_USAGE;
}

static int help_about(const char *name)
{
	const struct command *command = find(name);
	char program[32], option[] = "--help";
	char *argv[] = {program, option, NULL};

	if (!command)
		return say_unknown(name);
	(void)snprintf(program, sizeof(program), "%s", command->name);
	return command->run(2, argv);
}

int main(int argc, char **argv)
{
	command_first(argc, argv);
	const char *name = argc > 1 ? argv[1] : "";
	const struct command *command = find(name);
	int r = failpoint_setup();

	if (r < 0) {
		(void)fprintf(stderr, "kinf: %s\n", err_text(r));
		return PROC_USAGE;
	}
	if (command)
		return command->run(argc - 1, argv + 1);
	if (is_help(name)) {
		if (argc > 2)
			return help_about(argv[2]);
		print_help(stdout);
		return PROC_OK;
	}
	if (!strcmp(name, "--version") || !strcmp(name, "version")) {
		(void)printf("kinf %s\n", kinf_version());
		return PROC_OK;
	}
	return say_unknown(name);
}
