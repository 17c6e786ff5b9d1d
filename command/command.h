/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The `kinf` command. Each subcommand is a row of command.def and a file of its own name, with the
 * one function declared here. The rest of this header is shared by subcommands: opening the store,
 * selecting objects, and errors.
 *
 * Results go to stdout, everything else to stderr. Exit status: 0 success; 1 failure, with one line
 * of cause and remedy; 2 wrong usage.
 */
#ifndef COMMAND_COMMAND_H
#define COMMAND_COMMAND_H

#include <string.h>

#include "common/buf.h"
#include "common/config/config.h"
#include "common/options.h"
#include "common/proc.h"
#include "reader/past.h"

#define COMMAND(name, symbol, about) int command_##symbol(int argc, char **argv);
#include "command/command.def"
#undef COMMAND

/* ---- command lines ------------------------------------------------------ */

/*
 * The command line of a subcommand:
 *
 *	struct command_line line = {
 *		.options = {"kinf relist", "FEED", "Lets the reflector list ..."},
 *		.takes = {1, 1, "write one feed"},
 *	};
 *	int r = command_parse(&line, argc, argv);
 *	if (r != 0)
 *		return command_usage(&line, r);
 *	line.operands[0] is the feed
 */
struct command_line {
	struct options options; /* program, usage and about; the rest is command_parse()'s */
	struct options_group groups[5]; /* the command's own; the common ones come after them */
	struct {
		size_t least, most; /* operands */
		const char *rule;   /* the usage error of another number of them */
	} takes;
	struct config_flags flags; /* the common options */
	char **operands;
	size_t n;
};

/* Parses the options and counts the operands, which are not empty. Returns as options_parse(). */
int command_parse(struct command_line *line, int argc, char **argv);
/* Reports RESULT of command_parse() or options_bad(), not 0. Returns the exit status. */
int command_usage(const struct command_line *line, int result);
/* Returns options_flag(): for a command with options that depend on a flag. */
bool command_has_flag(struct command_line *line, int argc, char **argv, const char *name);
void command_line_release(struct command_line *line); /* after options of the daemons */

/* Returns whether the value of -o is json; NULL is text. */
static inline bool command_is_json(const char *output)
{
	return output && strcmp(output, "json") == 0;
}

/* Checks that RV, from the command line, is a number. Returns: 0, ERR_SYNTAX. */
int command_check_rv(const char *rv);
/* Cuts NAME in place if it is NAMESPACE/NAME. Returns 0, or ERR_SYNTAX if it contradicts
 * *NAMESPACE_ (NULL: none). */
int command_cut_name(char **name, const char **namespace_);

/* ---- the store ---------------------------------------------------------- */

/* Names the ignored file or variable of the environment. */
void command_note(const struct config *config);
/* Sets *RET_DIRECTORY to the store: --store, $KINF_STORE, the configuration's, the default. The
 * caller frees it. */
int command_store(const struct config_flags *flags, char **ret_directory);
/* The same for the life of the process: the handler of memory faults names it, too. */
int command_use_store(const struct config_flags *flags, const char **ret_directory);

/* Opens the store, with checksums on and a message for faults in mapped files. On failure prints
 * the error and leaves *RET_KINF NULL. */
int command_open(const struct config_flags *flags, struct kinf **ret_kinf);
/* Set for a damaged copy: the command then exits with 1 after it showed the rest. */
extern bool command_saw_damage;
/* Also waits until END_NS (CLOCK_MONOTONIC; UINT64_MAX: forever) for a missing store. */
int command_open_until(const struct config_flags *flags, uint64_t end_ns, struct kinf **ret_kinf);
/* Does the same with the store DIRECTORY; the caller handles faults in mapped files. */
int command_open_directory(const char *directory, uint64_t end_ns, struct kinf **ret_kinf);

/* Returns true if the error CODE may pass when the daemons start: for waiting callers. */
bool command_may_pass(int code);

/* ---- one state of the store --------------------------------------------- */

/* A snapshot, as of now or of a moment before; all zeroes are none. */
struct command_view {
	struct kinf *kinf;
	struct kinf_snapshot *snapshot;
	struct past when; /* all zeroes: now */
};

/* Opens the store, unless it is open, and a snapshot. It shows the state of WHEN, and ages are
 * counted to it. Returns below 0 after it printed an error. */
int command_view_open(struct command_view *view, const struct config_flags *flags);
void command_view_release(struct command_view *view);

/* The option --at, a text at FIELD, and its reader: 0 or ERR_SYNTAX; NULL is now. */
#define COMMAND_AT(field) \
	{ \
		0, "at", OPTION_TEXT, field, "WHEN", \
			"the state of then, as long as its history is kept: a time " \
			"(2026-01-31T15:00:00Z), how long ago (10m, 2h), or an event ('kinf log' " \
			"lists them); ages are of then also" \
	}
int command_read_at(const char *text, struct past *ret_when);

/* Sets *RET_INFO to the status of the first feed of FEED. Returns 0 or a negative error. */
int command_first_feed(
	struct kinf_snapshot *snapshot, const char *feed, struct kinf_feed_info *ret_info);

/* Prints a note to stderr for each feed of FEED (NULL: of all) that is not live ("note: pods: stale
 * since ..."), for the first ones of many; with NAMESPACE_ only for feeds with objects of it, and
 * also if FEED has none. The past is never stale. Unless MAX_STALE_NS is 0, prints an error for
 * each feed with an older or unknown last contact with the API server. Returns the exit status. */
int command_note_state(const struct command_view *view, const char *feed, const char *namespace_,
	uint64_t max_stale_ns);

#define STALENESS_ANY UINT64_MAX /* without --max-staleness */

/* Returns MAX_STALE_NS for the option's value: 0s is a limit too, never kept. */
static inline uint64_t command_staleness(uint64_t given)
{
	return given == STALENESS_ANY ? 0 : given ? given : 1;
}

/* ---- errors ------------------------------------------------------------- */

/* Prints "Error: <sentence>" to stderr, the sentence of CODE. Returns PROC_FAILED. */
int command_fail(int code);

/* Writes why a read of FEED (NULL: of all feeds) gave CODE: the last sentence on KINF. If FEED is
 * in kinf.yaml but the reflector could not make a feed of it yet, or made none at all, writes the
 * reflector's reason instead of "no feed". */
#define COMMAND_TEXT_SIZE 1024
void command_explain(
	const struct kinf *kinf, const char *feed, int code, char text[COMMAND_TEXT_SIZE]);
/* Prints that sentence as an error. Returns PROC_USAGE if an option was unreadable, else
 * PROC_FAILED. */
int command_fail_read(const struct kinf *kinf, const char *feed, int code);
/* Prints in kubectl's words that FEED has no object NAME. Returns PROC_FAILED. */
int command_not_found(const struct kinf_feed_info *feed, const char *namespace_, const char *name);

/* ---- options that select objects ---------------------------------------- */

struct query_args {
	const char *namespace_;
	const char *labels;
	const char *fields;
	const char *prefix;
	bool all;
	struct option_texts index; /* NAME=VALUE */
	struct kinf_term *terms;   /* of INDEX, made by query_from_args() */
};
struct options_group query_options(struct query_args *args);

/* Fills *QUERY, but for the feed; valid until query_args_release(). Returns 0, ERR_SYNTAX or
 * -ENOMEM. */
int query_from_args(struct query_args *args, struct kinf_query *query);
void query_args_release(struct query_args *args);

/* ---- operands that name objects (targets.c) ----------------------------- */

/* A feed, and the requested names; without names its objects of a query. */
struct target {
	const char *feed;
	char **names; /* NAME or NAMESPACE/NAME */
	size_t n_names;
	struct kinf_feed_info info; /* of the first feed of the name; the command sets it */
};

struct targets {
	struct target *items;
	size_t n, room;
};

/* Reads FEED[,FEED...] [NAME...] or FEED/NAME..., and cuts them in place. Returns: 0; ERR_SYNTAX,
 * also if QUERY has a selector beside names; -ENOMEM. */
int targets_read(
	struct targets *targets, char **operands, size_t n, const struct query_args *query);
int targets_add(struct targets *targets, const char *feed, char **names, size_t n);
void targets_release(struct targets *targets);

/* ---- the status (status.c) ---------------------------------------------- */

/* Opens the store of FLAGS, also a damaged copy, and gathers its status. Returns as
 * status_gather(); *RET_KINF is NULL and there is no status if even that fails. */
struct store_status;
int status_take(
	const struct config_flags *flags, struct kinf **ret_kinf, struct store_status *ret_status);

/* ---- completion (complete.c) -------------------------------------------- */

/* Makes commands print the candidates for the last word of their command line instead. */
void complete_begin(void);

/* Prints "candidate<TAB>description". */
void complete_print(const char *candidate, const char *description);

/* Writes for the program kubectl_complete-kinf: complete_end() prints a last line, kubectl's
 * directive (file names or not, a blank or none). */
void complete_for_kubectl(void);
void complete_end(void);

/* ---- changes between two states (history.c) ----------------------------- */

/* Prints the fields that differ between the object of LINE (FEED NAME) now and as of event FROM.
 * Returns the exit status: PROC_FAILED also if it differs. */
int history_diff(struct command_line *line, const char *namespace_, uint64_t from);

/* ---- for kinf open (kubeconfig.c, manage/import.c) ---------------------- */

/* Appends the kubeconfig of the kinf-serve of CONFIG's store. It may have credentials. */
int kubeconfig_write(const struct config *config, struct buf *out);

/* Makes the store of FLAGS of the SOURCES up to NULL. SIGNALS are of signals_open(). Returns: 0;
 * PROC_PARTLY: without what was named; other exit statuses of a program that has said why;
 * errors. */
int import_store(char *const *sources, const struct config_flags *flags, int signals);

#endif
