/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that start a daemon: the service manager, and the supervisor 'kinf run'. */
#ifndef COMMON_DAEMON_PARENT_H
#define COMMON_DAEMON_PARENT_H

#include <stdbool.h>

/* Sends STATE ("READY=1") to the service manager, as sd_notify(3) does. Does nothing without
 * $NOTIFY_SOCKET. */
void parent_notify(const char *state);

/* Removes the service manager's address from the environment: children can't notify it. */
void parent_keep_manager(void);
/* Returns true if there is a service manager to notify. */
bool parent_has_manager(void);

/* Returns a descriptor that reads end of file when the supervisor ends, inherited as
 * $KINF_DEATH_FD; -1: no supervisor. */
int parent_pipe(void);

/* Passes on by $KINF_RUN_GIVEN if the supervisor's own command line had --store and --runtime-dir:
 * its daemons always get both, whatever the file says later. */
int parent_say_given(bool store, bool runtime_dir);
void parent_given(bool *ret_store, bool *ret_runtime_dir);

/* Returns the number of listening sockets from the service manager, at descriptor PARENT_SOCKET and
 * up: for this process (LISTEN_PID, LISTEN_FDS of sd_listen_fds(3)), or for its parent `kinf
 * run`. */
#define PARENT_SOCKET 3
unsigned parent_sockets(void);
#endif
