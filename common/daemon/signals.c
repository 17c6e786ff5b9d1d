/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/err.h"

static void signals_end(int number)
{
	_exit(128 + number);
}

void signals_begin(void)
{
	static const int ends[] = {SIGTERM, SIGINT, SIGHUP};
	struct sigaction ignore = {.sa_handler = SIG_IGN}, usual = {.sa_handler = SIG_DFL},
			 end = {.sa_handler = signals_end}, was;

	(void)sigaction(SIGXFSZ, &ignore, NULL); /* all fail for unknown signals only */
	(void)sigaction(SIGCHLD, &usual, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(ends) && getpid() == 1; i++)
		if (sigaction(ends[i], NULL, &was) == 0 && was.sa_handler == SIG_DFL)
			(void)sigaction(ends[i], &end, NULL);
}

int signals_open(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	sigset_t set;

	signals_begin();
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGCHLD);
	if (sigaction(SIGPIPE, &ignore, NULL) < 0)
		return err_set(-errno, "ignoring SIGPIPE");
	int r = pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (r)
		return err_set(-r, "blocking signals");
	int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return fd < 0 ? err_set(-errno, "signalfd") : fd;
}

int signals_next(int fd)
{
	struct signalfd_siginfo info;
	ssize_t n = read(fd, &info, sizeof(info));

	return n == (ssize_t)sizeof(info) ? (int)info.ssi_signo : 0;
}

void signals_reset(void)
{
	struct sigaction usual = {.sa_handler = SIG_DFL};
	sigset_t kept;

	(void)sigemptyset(&kept);
	(void)sigaddset(&kept, SIGHUP);
	(void)sigaction(SIGPIPE, &usual, NULL);
	(void)sigaction(SIGXFSZ, &usual, NULL);
	(void)sigprocmask(SIG_SETMASK, &kept, NULL);
}
