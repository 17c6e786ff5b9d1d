/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that start a daemon: the service manager, and 'kinf run', the supervisor. */
#ifndef COMMON_DAEMON_PARENT_H
#define COMMON_DAEMON_PARENT_H

#include <stdbool.h>

/* Sends STATE ("READY=1") to the service manager, as sd_notify(3) does. Does nothing without
 * $NOTIFY_SOCKET. */
void parent_notify(const char *state);

/* Takes the service manager's address out of the environment, so that this process alone can
 * notify it, and no child that it starts. */
void parent_keep_manager(void);
/* Returns whether there is a service manager to notify. */
bool parent_has_manager(void);

/* Returns: the descriptor that becomes readable (end of file) when the supervisor ends,
 * inherited from it as $KINF_DEATH_FD; -1: there is no supervisor. */
int parent_pipe(void);

/* The supervisor gives its daemons --store and --runtime-dir, so that both use the same ones
 * however the file changes. Tells them by $KINF_RUN_GIVEN whether its own command line had these
 * options. */
int parent_say_given(bool store, bool runtime_dir);
void parent_given(bool *ret_store, bool *ret_runtime_dir);

/* Returns how many listening sockets the service manager has passed, from descriptor
 * PARENT_SOCKET on: to this process (LISTEN_PID, LISTEN_FDS of sd_listen_fds(3)), or to `kinf
 * run`, whose child this process is. */
#define PARENT_SOCKET 3
unsigned parent_sockets(void);
/* Checks the variables that parent_sockets() reads: a process that listened elsewhere than on
 * sockets that it was given would not be found. Returns: 0, ERR_CONFIG. */
int parent_check_sockets(void);

#endif
