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

#include "common/buf.h"
#include "common/config/config.h"
#include "common/options.h"
#include "common/proc.h"
#include "reader/past.h"

#define COMMAND(name, symbol, about) int command_##symbol(int argc, char **argv);
#include "command/command.def"
#undef COMMAND

/* ---- errors ------------------------------------------------------------- */

/* Print "Error: <sentence>" to stderr: the sentence of CODE, or of the last error on KINF. Return
 * PROC_FAILED. */
int command_fail(int code);
int command_fail_kinf(const struct kinf *kinf);
/* Does the same for the result CODE. Returns the exit status: PROC_USAGE if an option was
 * unreadable. */
int command_fail_code(const struct kinf *kinf, int code);

/* Writes the sentence of the last error CODE on KINF about FEED. If FEED is in kinf.yaml but the
 * reflector could not make a feed of it yet, writes the reflector's reason instead of "no feed". */
#define COMMAND_TEXT_SIZE 1024
void command_explain(
	const struct kinf *kinf, const char *feed, int code, char text[COMMAND_TEXT_SIZE]);
/* Prints that sentence as an error. Returns PROC_FAILED. */
int command_fail_feed(const struct kinf *kinf, const char *feed, int code);
/* Cuts NAME in place if it is NAMESPACE/NAME. Returns 0, or ERR_SYNTAX if it contradicts
 * *NAMESPACE_ (NULL: none). */
int command_cut_name(char **name, const char **namespace_);
/* Explains a store without feeds, as far as known. */
int command_fail_no_feeds(const struct kinf *kinf);

/* Explains why a read of FEED (NULL: of all feeds) returned KINF_AGAIN: an unfinished list (of
 * NAMESPACE_, unless NULL) with its progress and fault, or the filling of an index. Returns
 * PROC_FAILED. */
int command_fail_again(struct kinf *kinf, struct kinf_snapshot *snapshot, const char *feed,
	const char *namespace_);

/* Checks that RV, from the command line, is a number. Returns: 0, ERR_SYNTAX. */
int command_check_rv(const char *rv);

/* Returns the exit status for RESULT of options_parse(), not 0. */
int command_usage(const struct options *options, int result);

/* ---- the store ---------------------------------------------------------- */

/* Names the ignored file or variable of the environment. */
void command_note(const struct config *config);
/* Sets *RET_DIRECTORY to the store: --store, $KINF_STORE, the configuration's, the default. The
 * caller frees it. */
int command_store(const struct config_flags *flags, char **ret_directory);
/* The same for the life of the process: the handler of memory faults names it, too. */
int command_use_store(const struct config_flags *flags, const char **ret_directory);

/* Returns true if the configuration of FLAGS has kinf-serve. */
bool command_has_serve(const struct config_flags *flags);

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

/* Takes a snapshot. On failure, also without anything to read yet, prints the error and returns
 * below 0. */
int command_snapshot(struct kinf *kinf, struct kinf_snapshot **ret_snapshot);

/* The option --at, a text at FIELD, and its reader: 0 or ERR_SYNTAX; NULL is now. */
#define COMMAND_AT(field) \
	{ \
		0, "at", OPTION_TEXT, field, "WHEN", \
			"the state of then, as long as its history is kept: a time " \
			"(2026-01-31T15:00:00Z), how long ago (10m, 2h), or an event ('kinf log' " \
			"lists them); ages are of then also" \
	}
int command_read_at(const char *text, struct past *ret_when);
/* Makes SNAPSHOT show the state of WHEN, unless that is now, and ages be counted to it. Returns
 * below 0 after it printed an error. */
int command_go_to(struct kinf *kinf, struct kinf_snapshot *snapshot, struct past *when);

/* Sets *RET_INFO to the status of the first feed of FEED. Returns 0 or a negative error. */
int command_first_feed(
	struct kinf_snapshot *snapshot, const char *feed, struct kinf_feed_info *ret_info);

/* Prints a note to stderr for each feed of FEED (NULL: of all) that is not live ("note: pods: stale
 * since ..."), for the first ones of many; with NAMESPACE_ only for feeds with objects of it, and
 * also if FEED has none. Unless MAX_STALE_NS is 0, prints an error for each feed with an older or
 * unknown last contact with the API server, and returns -ESTALE. */
int command_note_state(struct kinf_snapshot *snapshot, const char *feed, const char *namespace_,
	uint64_t max_stale_ns);

#define STALENESS_ANY UINT64_MAX /* without --max-staleness */

/* Returns MAX_STALE_NS for the option's value: 0s is a limit too, never kept. */
static inline uint64_t command_staleness(uint64_t given)
{
	return given == STALENESS_ANY ? 0 : given ? given : 1;
}

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

/* Fills *QUERY, valid until query_args_release(). Returns 0, ERR_SYNTAX or -ENOMEM. */
int query_from_args(struct query_args *args, const char *feed, struct kinf_query *query);
void query_args_release(struct query_args *args);

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

/* Prints the fields that differ between the object OPERANDS (FEED NAME) now and as of event FROM.
 * Returns the exit status: PROC_FAILED also if it differs. */
int history_diff(const struct options *options, const struct config_flags *flags, char **operands,
	size_t n, const char *namespace_, uint64_t from);

/* ---- for kinf open (kubeconfig.c, manage/import.c) ---------------------- */

/* Appends the kubeconfig of the kinf-serve of CONFIG's store. It may have credentials. */
int kubeconfig_write(const struct config *config, struct buf *out);

/* Makes the store of FLAGS of the SOURCES up to NULL. SIGNALS are of signals_open(). Returns: 0;
 * PROC_PARTLY: without what was named; other exit statuses of a program that has said why;
 * errors. */
int import_store(char *const *sources, const struct config_flags *flags, int signals);

#endif
