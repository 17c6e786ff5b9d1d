/* SPDX-License-Identifier: Apache-2.0 */
#include "command/watch.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "common/daemon/signals.h"
#include "common/err.h"

#define GRACE_MS 1000

int outlet_init(struct outlet *outlet)
{
	*outlet = (struct outlet){.signals = signals_open()};
	return outlet->signals < 0 ? err_set(outlet->signals, "opening the signals") : 0;
}

void outlet_release(struct outlet *outlet)
{
	if (outlet->signals >= 0)
		(void)close(outlet->signals); /* nothing was written to it */
	outlet->signals = -1;
	buf_release(&outlet->text);
}

bool outlet_ended(struct outlet *outlet)
{
	int number;

	while ((number = signals_next(outlet->signals)) > 0)
		if (number == SIGTERM || number == SIGINT || number == SIGHUP)
			outlet->ended = true;
	return outlet->ended;
}

/* Returns -EPIPE if the output has no reader any more: write(2) does not tell an idle command. */
static int outlet_check_consumer(void)
{
	struct pollfd fd = {.fd = STDOUT_FILENO};

	return poll(&fd, 1, 0) > 0 && fd.revents & (POLLERR | POLLHUP)
		       ? err_set(-EPIPE, "the output")
		       : 0;
}

int outlet_flush(struct outlet *outlet)
{
	const uint8_t *next = outlet->text.data;
	size_t left = outlet->text.size;
	int r = buf_error(&outlet->text);
	struct pollfd fds[] = {
		{.fd = STDOUT_FILENO, .events = POLLOUT},
		{.fd = outlet->signals, .events = POLLIN},
	};

	if (r == 0 && !left)
		return outlet_check_consumer();
	while (r == 0 && left) {
		/* After a signal only the consumer is waited for. */
		int ready = poll(fds, outlet->ended ? 1 : 2, outlet->ended ? GRACE_MS : -1);

		if (ready == 0) {
			r = err_set(-EINTR, "waiting for the consumer of the output");
			break;
		}
		if (ready < 0 && errno != EINTR) { /* a seccomp filter refuses poll(2) */
			r = err_set(-errno, "waiting for the consumer of the output: poll(2)");
			break;
		}
		if (ready < 0 || !fds[0].revents) {
			(void)outlet_ended(outlet);
			continue;
		}
		/* A writable pipe takes this much without blocking. */
		ssize_t n = write(STDOUT_FILENO, next, left < PIPE_BUF ? left : PIPE_BUF);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			r = err_set(-errno, "writing the output");
		if (n > 0) {
			next += n;
			left -= (size_t)n;
		}
	}
	buf_reset(&outlet->text);
	return r;
}
