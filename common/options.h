/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines from tables: each program, and each subcommand of kinf, lists its options once;
 * parsing, checking and --help use that table. Options and operands may come in any order; `--`
 * ends the options. --help and --version need not be in a table.
 *
 *	struct get_args { const char *namespace; uint64_t limit; bool all; };
 *	static const struct option_spec get_options[] = {
 *		{'n', "namespace", OPTION_TEXT, offsetof(struct get_args, namespace), "NS",
 *			"only this namespace"},
 *		...
 *	};
 *	struct options_group groups[] = {
 *		{"Options", get_options, ARRAY_SIZE(get_options), &args},
 *		config_common_options(&flags),
 *	};
 *	struct options options = {.program = "kinf get", .usage = "FEED [NAME...]",
 *		.groups = groups, .n_groups = 2};
 *	r = options_parse(&options, argc, argv, &first);
 *	if (r == END)			(--help or --version was printed)
 *		return PROC_OK;
 *	if (r < 0)			(print err_text(r) as one line)
 *		return PROC_USAGE;
 *	operands are argv[first] to argv[argc - 1]
 *
 * A missing option leaves its field alone: the caller sets defaults before. Texts point into argv.
 * Only one thread may parse (getopt_long(3)).
 */
#ifndef COMMON_OPTIONS_H
#define COMMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_type {
	OPTION_FLAG,  /* bool: becomes true */
	OPTION_COUNT, /* unsigned: its count */
	OPTION_TEXT,  /* const char *: the last one given */
	/* the same, but an empty one (of an unset variable) is none: NULL, as kubectl takes -n
	 * '' */
	OPTION_NAME,
	OPTION_WORD,          /* const char *: one of `words` */
	OPTION_TEXT_OPTIONAL, /* const char *, "" if no operand follows: --serve, --serve ADDRESS */
	OPTION_TEXTS,         /* struct option_texts: all of them */
	OPTION_NUMBER,        /* uint64_t, decimal */
	OPTION_DURATION,      /* uint64_t nanoseconds: 10m, 1h30m, 500ms */
	OPTION_SIZE,          /* uint64_t bytes: 64MiB */
	OPTION_TYPE_MAX
};

struct option_texts {
	const char **items;
	size_t n, room;
};
void option_texts_release(struct option_texts *texts);

struct option_spec {
	char letter;      /* 0: none */
	const char *name; /* the long one, without dashes */
	enum option_type type;
	size_t offset;     /* of its field in the group's `into` */
	const char *value; /* name of the value in --help; NULL for flags and counts */
	const char *text;  /* one line for --help */
	const char *words; /* the allowed values, if few: "text|json"; else NULL */
};

struct options_group {
	const char *title; /* heading in --help */
	const struct option_spec *specs;
	size_t n;
	void *into;
};

struct options {
	const char *program; /* "kinf get" */
	const char *usage;   /* operands, "" if there are none */
	const char *about;   /* one paragraph for --help, may be NULL */
	const struct options_group *groups;
	size_t n_groups;
	/* stops at the first operand: for kinf's own options before the subcommand */
	bool stop_at_operand;
};

/* Sets the first word of program names in usages and errors: "kubectl kinf" for the plugin of
 * kubectl. */
void options_call(const char *name);

/* Returns the program's name in usages and errors, until the next call. */
const char *options_program(const struct options *options);

/* Parses the command line and moves all operands to the end of argv.
 * Returns: 0, RET_FIRST is the index of the first operand; END, --help or --version was printed to
 * stdout; ERR_SYNTAX, a line without the program's name, such as "unknown option '--frist'; see
 * 'kinf get --help'"; -ENOSPC and the like: the help could not be printed. */
int options_parse(const struct options *options, int argc, char **argv, int *ret_first);

/* Returns true if the flag NAME is given, also in a cluster (-Aw), with a value (--watch=true) or
 * abbreviated. Stores and moves nothing and ignores errors: for commands with options that depend
 * on a flag. */
bool options_flag(const struct options *options, int argc, char **argv, const char *name);

/* Sets the sentence of a usage error found by the program. Returns ERR_SYNTAX. */
int options_bad(const struct options *options, const char *format, ...)
	__attribute__((format(printf, 2, 3), cold));

/* ---- completion of command lines in shells ------------------------------ */

enum options_word_type {
	WORD_OPERAND,
	WORD_OPTION, /* begins with a dash */
	WORD_VALUE   /* of the option SPEC */
};

/* The last word of an unfinished command line, with its context. */
struct options_word {
	const struct options *options;
	enum options_word_type type;
	const struct option_spec *spec;
	const char *text;   /* the word, or its value part */
	const char *before; /* the part of the word before TEXT: "--output=", "" */
	size_t before_size;
	char **operands; /* before the word */
	size_t n_operands;
};

/* While set, options_parse() ends neither at errors nor at --help: it stores the options before the
 * last word, calls this function and returns its result, or END. */
extern int (*options_complete)(const struct options_word *word);

/* Calls FN for each option of the command, --help and --version; stops at a result other than 0 and
 * returns it. */
int options_each(const struct options *options,
	int (*fn)(void *arg, const struct option_spec *spec), void *arg);

#endif
