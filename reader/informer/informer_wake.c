/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kinf_informer_fd polls: the processor's doorbell, a byte per batch it has committed; a timer for
 * what no batch tells (resyncs, positions, states); and the stop. Without a doorbell, or with one that
 * hung up, the timer is short.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <stdio.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "reader/informer/informer.h"

#define BELL_EVERY_NS UINT64_C(1000000000) /* a try to reach it */

static int add(const struct wake *wake, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(wake->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int wake_open(struct wake *wake)
{
	*wake = (struct wake){
		.epoll = epoll_create1(EPOLL_CLOEXEC),
		.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
		.stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.bell = -1,
	};
	int r = wake->epoll < 0 || wake->timer < 0 || wake->stop < 0 ? -errno : 0;

	if (r == 0)
		r = add(wake, wake->timer);
	if (r == 0)
		r = add(wake, wake->stop);
	return r < 0 ? err_set(r, "descriptors of an informer") : 0;
}

void wake_close(struct wake *wake)
{
	cleanup_fd(&wake->bell);
	cleanup_fd(&wake->stop);
	cleanup_fd(&wake->timer);
	cleanup_fd(&wake->epoll);
}

/* All the bytes that are there; of one that hung up nothing is kept. */
static void take_bell(struct wake *wake)
{
	char bytes[256];
	ssize_t n;

	while ((n = recv(wake->bell, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		cleanup_fd(&wake->bell); /* and so out of the epoll */
}

bool wake_take(struct wake *wake)
{
	struct epoll_event events[4];
	int n = epoll_wait(wake->epoll, events, 4, 0);
	bool stop = false;
	uint64_t ticks;

	for (int i = 0; i < n; i++) {
		int fd = events[i].data.fd;

		if (fd == wake->stop)
			stop = true; /* stays readable */
		else if (fd == wake->timer)
			wake->armed_ns = read(fd, &ticks, sizeof(ticks)) < 0 ? wake->armed_ns : 0;
		else if (fd == wake->bell)
			take_bell(wake);
	}
	return stop;
}

void wake_connect(struct wake *wake, int runtime_fd, uint64_t now)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (wake->bell >= 0 || runtime_fd < 0 ||
		(wake->tried_ns && now - wake->tried_ns < BELL_EVERY_NS))
		return;
	wake->tried_ns = now;
	/* By the descriptor: the folder's path may be too long for an address. */
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" HOME_DOORBELL,
		runtime_fd);
	AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || add(wake, fd) < 0)
		return; /* the timer will do */
	wake->bell = TAKE_FD(fd);
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

bool wake_has_bell(const struct wake *wake)
{
	return wake->bell >= 0;
}

void wake_stop(struct wake *wake)
{
	uint64_t one = 1;

	(void)!write(wake->stop, &one, sizeof(one)); /* full: it is stopped already */
}
