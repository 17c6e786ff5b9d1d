/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/signals.h"

#include <signal.h>

#include "tests/unit/unit.h"

/* Waits for the child PID; its wait status. */
static int reap(pid_t pid)
{
	int status = -1;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return status;
}

Test(signals, signals_come_through_the_descriptor)
{
	AUTO_FD int fd = signals_open();
	cr_assert_geq(fd, 0);
	cr_assert_eq(signals_next(fd), 0);
	cr_assert_eq(raise(SIGTERM), 0);
	cr_assert_eq(raise(SIGHUP), 0);
	int first = signals_next(fd), second = signals_next(fd);
	cr_assert(first == SIGHUP && second == SIGTERM, "%d %d", first, second);
	cr_assert_eq(signals_next(fd), 0);
	cr_assert_eq(raise(SIGPIPE), 0); /* ignored: we are still here */
	cr_assert_eq(raise(SIGXFSZ), 0);
}

Test(signals, children_are_reaped_also_where_sigchld_was_ignored)
{
	cr_assert_eq(sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_IGN}, NULL), 0);
	AUTO_FD int fd = signals_open();
	cr_assert_geq(fd, 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(7);
	int status = reap(pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	cr_assert_eq(signals_next(fd), SIGCHLD);
}

Test(signals, signals_are_usual_again_after_reset)
{
	AUTO_FD int fd = signals_open();
	cr_assert_geq(fd, 0);
	pid_t pid = fork();
	if (pid == 0) {
		signals_reset();
		(void)raise(SIGTERM);
		_exit(0);
	}
	int status = reap(pid);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

/* A hangup during a daemon's start does not end it, and the reload comes later. */
Test(signals, hangup_waits_for_a_daemon_that_starts)
{
	pid_t pid = fork();

	if (pid == 0) {
		signals_reset();
		(void)raise(SIGHUP);
		AUTO_FD int fd = signals_open();
		_exit(fd >= 0 && signals_next(fd) == SIGHUP ? 0 : 1);
	}
	int status = reap(pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
