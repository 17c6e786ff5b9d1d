/* SPDX-License-Identifier: Apache-2.0 */
/* Signals as a file descriptor, for programs that wait in poll(2). */
#ifndef COMMON_DAEMON_SIGNALS_H
#define COMMON_DAEMON_SIGNALS_H

/* Turns a write beyond RLIMIT_FSIZE into -EFBIG, and undoes an inherited ignored SIGCHLD, so that
 * children can be waited for. Gives process 1 of a container, which gets no signal without a
 * handler, the usual end by SIGTERM, SIGINT and SIGHUP. */
void signals_begin(void);

/* Calls signals_begin(), blocks SIGTERM, SIGINT, SIGHUP and SIGCHLD, ignores SIGPIPE. Returns a
 * non-blocking descriptor of the blocked ones, or negative errno. */
int signals_open(void);

/* Returns: the number of the next signal; 0: there is none. */
int signals_next(int fd);

/* Undoes signals_open() between fork and exec, except for SIGHUP: an early one waits until the
 * child opens its signals. Async-signal-safe. */
void signals_reset(void);

#endif
