/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The `kinf` command: one file per subcommand, each a row of command.def. What they share stands
 * here: the store they read, the query options that mean the same everywhere, and how they fail.
 *
 * Results go to stdout, everything else to stderr. Exit 0 good, 1 failed (one line says what and what
 * to do), 2 usage.
 */
#ifndef READER_COMMAND_COMMAND_H
#define READER_COMMAND_COMMAND_H

#include "common/config/config.h"
#include "common/options.h"
#include "common/proc.h"
#include "reader/kinf.h"

#define COMMAND(name, symbol, about) int command_##symbol(int argc, char **argv);
#include "reader/command/command.def"
#undef COMMAND

/* "Error: <sentence>" on stderr; PROC_FAILED. */
int command_fail(int code);
int command_fail_kinf(const struct kinf *kinf);

/* After options_parse: the exit status when it did not return 0. */
int command_usage(const struct options *options, int result);

/* The store's directory: --store, $KINF_STORE, the configuration's, the default. Caller frees. */
int command_store(const struct config_flags *flags, char **ret_directory);

/* Opens it with checksums on, faults in mapped files caught. On failure the line is printed and
 * *ret_kinf is NULL. */
int command_open(const struct config_flags *flags, struct kinf **ret_kinf);
/* Waits until END_NS (CLOCK_MONOTONIC; UINT64_MAX: for ever) for a store that is not there yet. */
int command_open_until(const struct config_flags *flags, uint64_t end_ns, struct kinf **ret_kinf);

/* A snapshot; says in words when there is nothing to read yet. The line is printed on failure. */
int command_snapshot(struct kinf *kinf, struct kinf_snapshot **ret_snapshot);

/* Which objects: the options of get and watch. */
struct query_args {
	const char *namespace_;
	const char *labels;
	const char *fields;
	const char *prefix;
	bool all;
	struct option_texts index; /* NAME=VALUE */
};
extern const struct option_spec query_options[];
extern const size_t n_query_options;

/* Fills QUERY from ARGS; TERMS has room for args->index.n. ERR_SYNTAX. */
int query_from_args(const struct query_args *args, const char *feed, struct kinf_term *terms,
	struct kinf_query *query);
void query_args_release(struct query_args *args);

/* A note on stderr for each feed behind FEED that is not live ("note: pods: stale since ...").
 * MAX_STALE_NS: older than this is a failure (negative result, line printed); 0: any age will do. */
int command_note_state(struct kinf_snapshot *snapshot, const char *feed, uint64_t max_stale_ns);

#endif
