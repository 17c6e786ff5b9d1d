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
	(void)fputs("\n'kinf COMMAND --help' says what each takes.\n", to);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	int r = failpoint_setup();

	if (r < 0) {
		(void)fprintf(stderr, "kinf: %s\n", err_text(r));
		return PROC_USAGE;
	}
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (strcmp(name, commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
		print_help(stdout);
		return PROC_OK;
	}
	if (!strcmp(name, "--version")) {
		(void)printf("kinf %s\n", kinf_version());
		return PROC_OK;
	}
	if (*name)
		(void)fprintf(stderr, "kinf: unknown command '%s'; see 'kinf --help'\n", name);
	else
		print_help(stderr);
	return PROC_USAGE;
}
