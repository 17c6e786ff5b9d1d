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

int watch_writer_init(struct watch_writer *writer)
{
	*writer = (struct watch_writer){.signals = signals_open()};
	return writer->signals < 0 ? err_set(writer->signals, "opening the signals") : 0;
}

void watch_writer_release(struct watch_writer *writer)
{
	if (writer->signals >= 0)
		(void)close(writer->signals); /* nothing was written to it */
	writer->signals = -1;
	buf_release(&writer->text);
}

bool watch_writer_ended(struct watch_writer *writer)
{
	int number;

	while ((number = signals_next(writer->signals)) > 0)
		if (number == SIGTERM || number == SIGINT || number == SIGHUP)
			writer->ended = true;
	return writer->ended;
}

int watch_writer_flush(struct watch_writer *writer)
{
	const uint8_t *next = writer->text.data;
	size_t left = writer->text.size;
	int r = buf_error(&writer->text);
	struct pollfd fds[] = {
		{.fd = STDOUT_FILENO, .events = POLLOUT},
		{.fd = writer->signals, .events = POLLIN},
	};

	if (r == 0 && !left) {
		struct pollfd consumer = {.fd = STDOUT_FILENO};

		/* write(2) does not tell an idle command that the consumer is gone */
		return poll(&consumer, 1, 0) > 0 && consumer.revents & (POLLERR | POLLHUP)
			       ? err_set(-EPIPE, "the output")
			       : 0;
	}
	while (r == 0 && left) {
		/* After a signal only the consumer is waited for. */
		int ready = poll(fds, writer->ended ? 1 : 2, writer->ended ? GRACE_MS : -1);

		if (ready == 0) {
			r = err_set(-EINTR, "waiting for the consumer of the output");
			break;
		}
		if (ready < 0 && errno != EINTR) { /* a seccomp filter refuses poll(2) */
			r = err_set(-errno, "waiting for the consumer of the output: poll(2)");
			break;
		}
		if (ready < 0 || !fds[0].revents) {
			(void)watch_writer_ended(writer);
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
	buf_reset(&writer->text);
	return r;
}
