/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the commands that change a store. A store belongs to its running daemons: the command
 * calls them by their control sockets (common/daemon/control.h). Otherwise it takes the role of the
 * missing daemon, so that none starts meanwhile.
 */
#ifndef COMMAND_MANAGE_MAINTENANCE_H
#define COMMAND_MANAGE_MAINTENANCE_H

#include "common/config/config.h"
#include "common/daemon/control.h"
#include "store/env/home.h"

/* Opens the directories of the store of FLAGS. */
int maintenance_open(const struct config_flags *flags, struct home **ret_home);

/* Returns "kinf-reflector" or "kinf-processor". */
const char *maintenance_name(enum home_role role);

/* Calls COMMAND of the daemon with ROLE, with WHAT as the title of its progress on a terminal;
 * prints its notes. RET_TEXT gets its answer. Returns: 0; NOT_FOUND: no daemon has the role;
 * errors. */
int maintenance_ask(struct home *home, enum home_role role, const char *command,
	const char *argument, const char *what, char ret_text[CONTROL_SIZE]);

/* The same for kinf-serve. Returns: 0; NOT_FOUND: it does not run. */
int maintenance_ask_serve(const struct home *home, const char *command, const char *argument,
	char ret_text[CONTROL_SIZE]);

/* Checks that this process runs as the store's owner: the daemons can't use another user's files.
 * Returns: 0; -EPERM. */
int maintenance_check_owner(const struct home *home);

/* Takes ROLE for this process. Returns: 0; as maintenance_check_owner(); as home_take_role(). */
int maintenance_take(struct home *home, enum home_role role);

/* Runs PROGRAM[0], a program of kinf, with the arguments PROGRAM[1] up to NULL, and waits for its
 * end. Passes the signals of SIGNALS (signals_open()) on. Meanwhile a terminal shows WHAT it does,
 * with the size of the database in the directory MAKING. Returns: 0; the exit status of a failed
 * program, which has said why; errors. */
int maintenance_run(const char *const *program, int signals, const char *what, const char *making);

#endif
