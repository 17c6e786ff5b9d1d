/* SPDX-License-Identifier: Apache-2.0 */
/* The parents of a daemon: the service manager, and 'kinf run', the supervisor. */
#ifndef COMMON_DAEMON_PARENT_H
#define COMMON_DAEMON_PARENT_H

#include <stdbool.h>

/* Sends STATE ("READY=1") to the service manager, as sd_notify(3) does. Does nothing without
 * $NOTIFY_SOCKET. */
void parent_notify(const char *state);

/* Takes the service manager's address out of the environment, so that only this process can notify
 * it, and no child. */
void parent_keep_manager(void);
/* Returns whether there is a service manager to notify. */
bool parent_has_manager(void);

/* Returns: the descriptor of the supervisor's pipe (end of file when it ends), inherited as
 * $KINF_DEATH_FD; -1: there is no supervisor. */
int parent_pipe(void);

/* The supervisor gives its daemons --store and --runtime-dir, the same for both however the file
 * changes. Tells them by $KINF_RUN_GIVEN whether its own command line had these options. */
int parent_say_given(bool store, bool runtime_dir);
void parent_given(bool *ret_store, bool *ret_runtime_dir);

/* Returns how many listening sockets the service manager has passed, from descriptor PARENT_SOCKET
 * on: to this process (LISTEN_PID, LISTEN_FDS of sd_listen_fds(3)), or to its parent `kinf run`. */
#define PARENT_SOCKET 3
unsigned parent_sockets(void);
/* Checks the variables of parent_sockets(): a process listening elsewhere than on its given sockets
 * would not be found. Returns: 0, ERR_CONFIG. */
int parent_check_sockets(void);

#endif
