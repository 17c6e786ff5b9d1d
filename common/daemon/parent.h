/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that start a daemon: the service manager, and 'kinf run', the supervisor. */
#ifndef COMMON_DAEMON_PARENT_H
#define COMMON_DAEMON_PARENT_H

/* Sends STATE ("READY=1") to the service manager, as sd_notify(3) does. Does nothing without
 * $NOTIFY_SOCKET. */
void parent_notify(const char *state);

/* Returns: the descriptor that becomes readable (end of file) when the supervisor ends, inherited from
 * it as $KINF_DEATH_FD; -1: there is no supervisor. */
int parent_pipe(void);

#endif
