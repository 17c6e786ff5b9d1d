/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptor of kinf_informer_fd: an epoll of three descriptors. The reflector's doorbell sends
 * a byte after each commit of a batch; a timer covers events without a batch (resyncs, positions,
 * states); the third is the stop. Without a doorbell, or after it hung up, the timer is short.
 */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "common/unix_socket.h"
#include "reader/informer/informer.h"

/* between two attempts to reach the reflector */
#define BELL_PAUSE_MIN_NS UINT64_C(1000000000)
#define BELL_PAUSE_MAX_NS UINT64_C(16000000000)

static int wake_add(const struct wake *wake, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	if (epoll_ctl(wake->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		return err_set(-errno, "a descriptor of an informer");
	return 0;
}

int wake_open(struct wake *wake)
{
	*wake = (struct wake){
		.epoll = proc_apart(epoll_create1(EPOLL_CLOEXEC)),
		.timer = proc_apart(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
		.stop = proc_apart(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
		.bell = -1,
	};
	if (wake->epoll < 0 || wake->timer < 0 || wake->stop < 0)
		return err_set(-errno, "the descriptors of an informer");
	int r = wake_add(wake, wake->timer);
	return r < 0 ? r : wake_add(wake, wake->stop);
}

void wake_close(struct wake *wake)
{
	cleanup_fd(&wake->bell);
	cleanup_fd(&wake->stop);
	cleanup_fd(&wake->timer);
	cleanup_fd(&wake->epoll);
}

/* Asks the reflector for a byte after its next commit. The caller checks for work afterwards, so a
 * batch published before this byte arrives is not missed. */
static bool wake_arm_bell(const struct wake *wake)
{
	return send(wake->bell, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

int wake_wait(struct wake *wake, int stop_fd)
{
	struct pollfd fds[] = {
		{.fd = wake->epoll, .events = POLLIN}, {.fd = stop_fd, .events = POLLIN}};
	int n;

	if (stop_fd < 0) /* one system call instead of two */
		n = wake->n_ready = epoll_wait(wake->epoll, wake->ready, WAKE_EVENTS, -1);
	else
		n = poll(fds, 2, -1);
	if (n < 0)
		return errno == EINTR ? 0 : err_set(-errno, "waiting for an informer");
	if (fds[1].revents & POLLNVAL)
		return err_set(-EBADF, "descriptor %d, which is to stop an informer", stop_fd);
	return fds[1].revents ? END : 0;
}

bool wake_read(struct wake *wake)
{
	int n = wake->n_ready > 0 ? wake->n_ready
				  : epoll_wait(wake->epoll, wake->ready, WAKE_EVENTS, 0);
	const struct epoll_event *events = wake->ready;
	bool stop = false;
	char bytes[16];
	uint64_t ticks;

	wake->n_ready = 0;
	for (int i = 0; i < n; i++) {
		int fd = events[i].data.fd;

		if (fd == wake->stop) {
			stop = true; /* stays readable */
		} else if (fd == wake->timer) {
			wake->armed_ns = read(fd, &ticks, sizeof(ticks)) < 0 ? wake->armed_ns : 0;
		} else if (fd == wake->bell) {
			ssize_t size = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

			if (size > 0)
				wake->pause_ns = BELL_PAUSE_MIN_NS;
			if (size > 0 ? !wake_arm_bell(wake)
				     : size == 0 || (errno != EAGAIN && errno != EINTR))
				cleanup_fd(&wake->bell); /* removes it from the epoll too */
		}
	}
	return stop;
}

void wake_connect(struct wake *wake, int runtime_fd, uint64_t now)
{
	if (wake->bell >= 0 || runtime_fd < 0 ||
		(wake->tried_ns && now - wake->tried_ns < wake->pause_ns))
		return;
	wake->tried_ns = now;
	/* Doubles with each attempt until a byte comes: a reflector with all its places taken
	 * accepts and closes. */
	wake->pause_ns = wake->pause_ns ? wake->pause_ns * 2 : BELL_PAUSE_MIN_NS;
	if (wake->pause_ns > BELL_PAUSE_MAX_NS)
		wake->pause_ns = BELL_PAUSE_MAX_NS;
	struct sockaddr_un address = unix_socket_address(runtime_fd, HOME_DOORBELL);
	wake->bell = proc_apart(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (wake->bell < 0 ||
		connect(wake->bell, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		wake_add(wake, wake->bell) < 0 || !wake_arm_bell(wake))
		cleanup_fd(&wake->bell); /* the timer replaces it */
}

int wake_arm(struct wake *wake, uint64_t at_ns)
{
	uint64_t at = at_ns ? at_ns : 1; /* 0 would disarm it */
	struct itimerspec when = {.it_value = {.tv_sec = (time_t)(at / 1000000000u),
					  .tv_nsec = (long)(at % 1000000000u)}};

	if (wake->armed_ns && wake->armed_ns <= at)
		return 0;
	if (timerfd_settime(wake->timer, TFD_TIMER_ABSTIME, &when, NULL) < 0)
		return err_set(-errno, "timer");
	wake->armed_ns = at;
	return 0;
}

void wake_stop(struct wake *wake)
{
	uint64_t one = 1;

	(void)!write(wake->stop, &one, sizeof(one)); /* full: it is stopped already */
}
