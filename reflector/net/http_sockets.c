/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for libcurl's sockets and runs the transfers that can go on. libcurl reports which sockets
 * it waits for and when it wants to run (its socket interface); they are kept in one epoll set. So
 * a turn costs what the ready sockets cost, where curl_multi_poll() and curl_multi_perform() visit
 * each of a thousand idle watches.
 */
#include "reflector/net/http_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/err.h"
#include "common/proc.h"
#include "reflector/net/plugin.h"

#define SOCKETS_BATCH 64 /* ready sockets that one turn serves; the others stay ready */

static int sockets_multi_error(CURLMcode code)
{
	return err_say(code == CURLM_OUT_OF_MEMORY ? -ENOMEM : ERR_NETWORK, "libcurl: %s",
		curl_multi_strerror(code));
}

static int sockets_on_change(CURL *easy, curl_socket_t fd, int what, void *arg, void *assigned)
{
	struct http *http = arg;
	struct epoll_event event = {.data.fd = fd,
		.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) |
			  (what & CURL_POLL_OUT ? EPOLLOUT : 0u)};

	(void)easy, (void)assigned;
	if (what == CURL_POLL_REMOVE) {
		(void)epoll_ctl(
			http->epoll, EPOLL_CTL_DEL, fd, NULL); /* it may be closed already */
		return 0;
	}
	/* libcurl may have closed the fd without a word and opened another of the same number. */
	if (epoll_ctl(http->epoll, EPOLL_CTL_MOD, fd, &event) < 0 &&
		(errno != ENOENT || epoll_ctl(http->epoll, EPOLL_CTL_ADD, fd, &event) < 0))
		http->epoll_errno = errno;
	return 0;
}

static int sockets_on_timer(CURLM *multi, long timeout_ms, void *arg)
{
	struct http *http = arg;

	(void)multi;
	http->timer_ns = timeout_ms < 0 ? UINT64_MAX
					: proc_monotonic_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	return 0;
}

int http_sockets_open(struct http *http)
{
	http->timer_ns = UINT64_MAX;
	http->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (http->epoll < 0)
		return err_set(-errno, "an epoll set for connections");
	if (curl_multi_setopt(http->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX) ||
		curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, sockets_on_change) ||
		curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http) ||
		curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, sockets_on_timer) ||
		curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http))
		return err_set(-ENOMEM, "libcurl");
	return 0;
}

int http_sockets_run(struct http *http)
{
	struct epoll_event events[SOCKETS_BATCH];
	int running, n = epoll_wait(http->epoll, events, SOCKETS_BATCH, 0);
	CURLMcode code = CURLM_OK;

	http->performing = true;
	for (int i = 0; !code && i < n; i++) {
		int ready = (events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
			    (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
			    (events[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);

		code = curl_multi_socket_action(http->multi, events[i].data.fd, ready, &running);
	}
	if (!code && http->timer_ns <= proc_monotonic_ns()) {
		http->timer_ns = UINT64_MAX; /* it fires once: libcurl does not cancel it */
		code = curl_multi_socket_action(http->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	}
	http->performing = false;
	if (http->epoll_errno)
		return err_set(-http->epoll_errno, "waiting for a connection");
	return code ? sockets_multi_error(code) : 0;
}

int http_sockets_add(struct http_call *call)
{
	CURLMcode code = curl_multi_add_handle(call->http->multi, call->easy);

	return code ? sockets_multi_error(code) : 0;
}

int http_sockets_wait(struct http *http, int timeout_ms, struct pollfd *fds, size_t n_fds)
{
	struct pollfd all[HTTP_FDS_MAX + 2] = {{.fd = http->epoll, .events = POLLIN}};
	uint64_t now = proc_monotonic_ns(), timer_ms = UINT64_MAX;

	if (http->timer_ns != UINT64_MAX)
		timer_ms = http->timer_ns > now ? (http->timer_ns - now + NS_PER_MS - 1) / NS_PER_MS
						: 0;
	if (timer_ms < (uint64_t)timeout_ms)
		timeout_ms = (int)timer_ms;
	if (n_fds)
		memcpy(&all[1], fds, n_fds * sizeof(*fds));
	all[n_fds + 1] = (struct pollfd){.fd = credential_fd(http->credential), .events = POLLIN};
	if (poll(all, n_fds + 2, timeout_ms) < 0 && errno != EINTR)
		return err_set(-errno, "waiting for the API server");
	http_move_clock(http, (uint64_t)timeout_ms);
	for (size_t i = 0; i < n_fds; i++)
		fds[i].revents = (short)(all[i + 1].revents & (POLLIN | POLLPRI | POLLOUT));
	return 0;
}
