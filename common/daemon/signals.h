/* SPDX-License-Identifier: Apache-2.0 */
/* Signals as a file descriptor, for poll(2). */
#ifndef COMMON_DAEMON_SIGNALS_H
#define COMMON_DAEMON_SIGNALS_H

/* Makes a file that would exceed the limit (RLIMIT_FSIZE) an error, -EFBIG, and not the end of the
 * process; and has the kernel tell how a child ended, also if the parent of this program had left
 * SIGCHLD ignored. Process 1 of a container gets no signal without a handler; here it ends by
 * SIGTERM, SIGINT and SIGHUP as every other process. */
void signals_begin(void);

/* signals_begin(), and blocks SIGTERM, SIGINT, SIGHUP and SIGCHLD, and ignores SIGPIPE. Returns: a
 * non-blocking descriptor for the blocked ones; negative errno. */
int signals_open(void);

/* Returns: the number of the next signal; 0: there is none. */
int signals_next(int fd);

/* Undoes signals_open() in a child between fork and exec, except that SIGHUP stays blocked: one
 * before the child opens its signals waits until then. Async-signal-safe. */
void signals_reset(void);

#endif
