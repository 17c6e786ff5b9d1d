/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "reflector/net/http_internal.h"

#define CONNECT_LIMIT_NS (10 * SECOND_NS)
/* After a turn with less of a bulk answer http_poll() sleeps shortly. */
#define GATHER_BYTES  (24u * 1024)
#define GATHER_NS     1000000
#define SOCKETS_BATCH 64 /* ready sockets served in one turn; the others stay ready */

/* ---- a call's life ------------------------------------------------------ */

static void call_free(struct http_call **call)
{
	struct http_call *c = *call;

	*call = NULL;
	if (!c)
		return;
	CHECK_OBJ(c, CALL_MAGIC);
	http_call_unlink(c);
	c->http->cancelled -= c->cancelled;
	if (c->state == CALL_RUNNING)
		(void)curl_multi_remove_handle(c->http->multi, c->easy);
	curl_easy_cleanup(c->easy);
	for (struct curl_slist *item = c->headers; item; item = item->next)
		explicit_bzero(item->data, strlen(item->data));
	curl_slist_free_all(c->headers);
	certificate_set_release(&c->certificates);
	free(c->sentence);
	c->magic = 0;
	free(c);
}

int http_start(struct http *http, const struct http_request *request, struct http_call **ret_call)
{
	CLEANUP(call_free) struct http_call *call = calloc(1, sizeof(*call));
	int r;

	CHECK_OBJ(http, HTTP_MAGIC);
	REQUIRE(request->path && *request->path == '/' && request->on_done);
	if (!call)
		return err_set(-ENOMEM, "request");
	call->magic = CALL_MAGIC;
	call->http = http;
	call->request = *request;
	call->request.path = call->request.accept = call->request.etag = NULL;
	http_move_clock(http, 0); /* the caller's own time is not the server's */
	call->limit = (struct limit){
		.first_byte_ns = request->first_byte_ns,
		.idle_ns = request->idle_ns,
		.total_ns = request->total_ns,
		.silence_ns = request->renewable ? http->silence_ns : 0,
		.start_ns = http->clock_ns,
	};
	call->easy = curl_easy_init();
	if (!call->easy)
		return err_set(-ENOMEM, "request");
	r = http_call_set_up(call, request);
	if (r < 0)
		return r;
	http_call_link(call);
	http_call_note_deadline(call);
	http_count(http, STAT_REQUESTS, 1);
	if (ret_call)
		*ret_call = call;
	call = NULL;
	return 0;
}

void http_set_quiet(struct http_call *call)
{
	CHECK_OBJ(call, CALL_MAGIC);
	call->limit.idle_ns = 0;
	call->limit.silence_ns = call->http->silence_ns;
	http_call_note_deadline(call);
	call->request.bulk = false;
}

void http_cancel(struct http_call **call)
{
	struct http_call *c = *call;

	*call = NULL;
	if (!c)
		return;
	CHECK_OBJ(c, CALL_MAGIC);
	if (!c->http->performing) {
		call_free(&c);
		return;
	}
	c->http->cancelled +=
		!c->cancelled; /* libcurl must not be called here: http_poll frees it */
	c->cancelled = true;
}

/* ---- how a call ends ---------------------------------------------------- */

static void call_end(struct http_call *call, int result)
{
	call->result = result;
	http_call_set_state(call, CALL_ENDED);
	(void)curl_multi_remove_handle(call->http->multi, call->easy);
}

/* As call_end(), and keeps RESULT's sentence until on_done. */
static void call_fail(struct http_call *call, int result)
{
	call->sentence = strdup(err_text(result));
	call_end(call, result);
}

static bool http_runs_plugin(const struct http *http)
{
	const struct exec *exec = credential_exec(http->credential);

	return exec && exec->plugin;
}

/* Ends CALL if it is at a limit, and closes its connection if nothing else was heard there. */
static void http_check_limit(struct http *http, struct http_call *call)
{
	uint64_t limit_ns;
	const char *words;
	long port = call->port;

	if (http->clock_ns < limit_deadline(&call->limit, &limit_ns, &words))
		return;
	if (!words) {
		call_end(call, HTTP_SILENT);
		return;
	}
	if (!port) /* stays 0 without a connection */
		(void)curl_easy_getinfo(call->easy, CURLINFO_LOCAL_PORT, &port);
	call_fail(call, err_say(ERR_TIMEOUT, "%s: %s within %g s", http->name, words,
				(double)limit_ns / 1e9));
	connections_condemn(&http->connections, (uint16_t)port, http->clock_ns - limit_ns);
}

/* Ends the calls at a limit. */
static void http_check_limits(struct http *http)
{
	const struct exec *exec = credential_exec(http->credential);
	struct http_call *next;

	/* Calls that wait for an exec plugin are at their start: its time is not the server's. */
	if (exec && exec->awaited)
		for (struct http_call *call = http->calls[CALL_WAITING].first; call;
			call = call->next)
			call->limit.start_ns = http->clock_ns;
	if (http->clock_ns < http->deadline_ns)
		return;
	for (size_t state = 0; state < CALL_ENDED; state++) {
		for (struct http_call *call = http->calls[state].first; call; call = next) {
			next = call->next;
			http_check_limit(http, call);
		}
	}
	http->deadline_ns = UINT64_MAX;
	for (size_t state = 0; state < CALL_ENDED; state++)
		for (struct http_call *call = http->calls[state].first; call; call = call->next)
			http_call_note_deadline(call);
}

/* Frees the calls cancelled inside of libcurl. */
static void http_free_cancelled(struct http *http)
{
	struct http_call *next;

	for (size_t state = 0; http->cancelled && state < CALL_STATE_MAX; state++) {
		for (struct http_call *call = http->calls[state].first; call; call = next) {
			next = call->next;
			if (call->cancelled)
				call_free(&call);
		}
	}
}

/* ---- libcurl's sockets -------------------------------------------------- */

/*
 * Waits for libcurl's sockets and runs ready transfers. libcurl reports its sockets and its timer
 * (the socket interface); the sockets are in one epoll set. So a turn costs as much as its ready
 * sockets, where curl_multi_poll() and curl_multi_perform() visit each of a thousand idle watches.
 */
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

static int http_sockets_run(struct http *http)
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

static int http_sockets_wait(struct http *http, int timeout_ms, struct pollfd *fds, size_t n_fds)
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
	const struct exec *exec = credential_exec(http->credential);
	all[n_fds + 1] = (struct pollfd){.fd = exec ? exec_fd(exec) : -1, .events = POLLIN};
	if (poll(all, n_fds + 2, timeout_ms) < 0 && errno != EINTR)
		return err_set(-errno, "waiting for the API server");
	http_move_clock(http, (uint64_t)timeout_ms);
	for (size_t i = 0; i < n_fds; i++)
		fds[i].revents = (short)(all[i + 1].revents & (POLLIN | POLLPRI | POLLOUT));
	return 0;
}

/* ---- the loop ----------------------------------------------------------- */

/* Runs all ready transfers and takes over the calls ended by libcurl. */
static int http_perform(struct http *http)
{
	int left, result = http_sockets_run(http);

	for (CURLMsg *msg; (msg = curl_multi_info_read(http->multi, &left));) {
		struct http_call *call;
		char *private;
		int r;

		if (msg->msg != CURLMSG_DONE ||
			curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &private))
			continue;
		call = (struct http_call *)(void *)private;
		r = call->stop ? 0 : http_call_failure(call, msg->data.result);
		if (r == ERR_TLS)
			certificates_expire(http->certificates);
		if (r)
			call_fail(call, r);
		else
			call_end(call, call->stop);
	}
	return result;
}

/* Returns true during a TLS handshake. Afterwards its connection may carry many calls. */
static bool http_is_connecting(const struct http *http)
{
	curl_off_t done_us = 0;

	if (!http->opener)
		return false;
	(void)curl_easy_getinfo(http->opener->easy, CURLINFO_APPCONNECT_TIME_T, &done_us);
	return !done_us;
}

/*
 * Hands waiting calls to libcurl, the oldest first, unless they wait for an exec plugin. When it
 * failed, all of them end with its sentence. Over HTTP/2 one connection is opened at a time:
 * when all streams are taken, libcurl 7.88 would open one for every further call, although the
 * first of them could carry the others.
 */
static int http_add_waiting(struct http *http)
{
	bool one_by_one = http->config->tls && !http->http1;
	int r;

	if (!http_oldest_waiting(http) && !http_runs_plugin(http))
		return 0;
	r = credential_ready(http->credential, proc_monotonic_ns());
	for (struct http_call *call; r < 0 && (call = http_oldest_waiting(http));)
		call_fail(call, r);
	if (r)
		return 0;
	for (struct http_call *call; !r && (call = http_oldest_waiting(http));) {
		if (one_by_one && http_is_connecting(http))
			break;
		r = http_call_set_credentials(call);
		if (r < 0) {
			call_fail(call, r);
			r = 0;
			continue;
		}
		CURLMcode code = curl_multi_add_handle(http->multi, call->easy);
		if (code)
			return sockets_multi_error(code);
		http_call_set_state(call, CALL_RUNNING);
		if (one_by_one)
			r = http_perform(http); /* shows whether the call opens a connection */
	}
	return r;
}

int http_poll(struct http *http, int timeout_ms, struct pollfd *fds, size_t n_fds)
{
	int r;

	CHECK_OBJ(http, HTTP_MAGIC);
	REQUIRE(n_fds <= HTTP_FDS_MAX && !http->performing);
	http_move_clock(http, 0);
	r = http_add_waiting(http);
	if (!r) {
		int wait = http->calls[CALL_ENDED].first ? 0 : http_wait_ms(http, timeout_ms);

		if (http_runs_plugin(http) && wait > EXEC_POLL_MS)
			wait = EXEC_POLL_MS; /* the plugin's exit can't be polled */
		/* A server writes a list in pieces of a few kB; waking for each would take half of
		 * the time. So it sleeps for a moment, unless the last turn may have left bytes in
		 * the kernel. */
		if (http->bulk_bytes && http->bulk_bytes < GATHER_BYTES)
			(void)nanosleep(&(struct timespec){0, GATHER_NS}, NULL);
		http->bulk_bytes = 0;
		r = http_sockets_wait(http, wait, fds, n_fds);
	}
	if (!r)
		r = http_perform(http);
	http_free_cancelled(http);
	if (!r)
		http_check_limits(
			http); /* after all bytes are taken: waiting bytes are no silence */
	for (struct http_call *call; (call = http->calls[CALL_ENDED].first);) {
		struct http_request request = call->request;
		int result = call->result, status = call->limit.answered ? call->status : 0;

		if (result < 0)
			(void)err_say(
				result, "%s", call->sentence ? call->sentence : err_name(result));
		call_free(&call);
		/* Not modified, or not there: as was asked. */
		bool answered =
			status < 300 || status == 304 || (status == 404 && request.may_be_absent);
		if (result < 0 || !answered)
			http_count(http, STAT_HTTP_ERRORS, 1);
		request.on_done(request.arg, result, status);
	}
	return r;
}

/* ---- the client --------------------------------------------------------- */

int http_new(const struct kubeconfig *config, struct http **ret_http)
{
	CLEANUP(http_free) struct http *http = calloc(1, sizeof(*http));
	int r;

	if (!http)
		return err_set(-ENOMEM, "http");
	http->magic = HTTP_MAGIC;
	http->epoll = -1;
	http->config = config;
	http->connect_limit_ns = CONNECT_LIMIT_NS;
	http->last_ns = proc_monotonic_ns();
	for (size_t state = 0; state < CALL_STATE_MAX; state++)
		http->calls[state].end = &http->calls[state].first;
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return err_set(-ENOMEM, "libcurl");
	http->global_init = true;
	http->multi = curl_multi_init();
	http->timer_ns = UINT64_MAX;
	http->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (http->epoll < 0)
		return err_set(-errno, "an epoll set for connections");
	if (!http->multi ||
		curl_multi_setopt(http->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX) ||
		curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, sockets_on_change) ||
		curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http) ||
		curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, sockets_on_timer) ||
		curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http))
		return err_set(-ENOMEM, "libcurl");
	r = http_parse_server(http);
	if (!r)
		r = certificates_new(config, &http->certificates);
	if (!r)
		r = credential_new(config, http->certificates, &http->credential);
	if (r < 0)
		return r;
	*ret_http = TAKE(http);
	return 0;
}

void http_set_limits(struct http *http, uint64_t connect_ns, uint64_t silence_ns)
{
	CHECK_OBJ(http, HTTP_MAGIC);
	http->connect_limit_ns = connect_ns;
	http->silence_ns = silence_ns;
}

void http_set_stats(struct http *http, struct stats *stats)
{
	CHECK_OBJ(http, HTTP_MAGIC);
	http->stats = stats;
}

void http_count(const struct http *http, enum counter counter, uint64_t n)
{
	if (http->stats)
		stats_add(http->stats, counter, n);
}

void http_free(struct http **http)
{
	struct http *h = *http;

	*http = NULL;
	if (!h)
		return;
	CHECK_OBJ(h, HTTP_MAGIC);
	REQUIRE(!h->performing);
	for (size_t state = 0; state < CALL_STATE_MAX; state++) {
		while (h->calls[state].first) {
			struct http_call *call = h->calls[state].first;

			call_free(&call);
		}
	}
	(void)curl_multi_cleanup(
		h->multi); /* closes the sockets; NULL only makes it return an error */
	cleanup_fd(&h->epoll);
	if (h->global_init)
		curl_global_cleanup();
	credential_free(&h->credential);
	certificates_free(&h->certificates);
	connections_release(&h->connections);
	curl_slist_free_all(h->connect_to);
	proxy_release(&h->proxy);
	free(h->name);
	free(h->host_header);
	free(h->base);
	h->magic = 0;
	free(h);
}

const char *http_server(const struct http *http)
{
	CHECK_OBJ(http, HTTP_MAGIC);
	return http->config->server;
}

const char *http_awaited_plugin(const struct http *http, uint64_t *ret_since_ns)
{
	const struct exec *exec = credential_exec(http->credential);

	if (!exec || !exec->awaited)
		return NULL;
	*ret_since_ns = exec->started_ns;
	return http->config->exec.command;
}

struct bytes http_ca(struct http *http, uint64_t *ret_changes)
{
	CHECK_OBJ(http, HTTP_MAGIC);
	return certificates_ca(http->certificates, proc_monotonic_ns(), ret_changes);
}
