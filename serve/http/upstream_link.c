/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/upstream_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "serve/chain.h"
#include "serve/http/upstream_internal.h"
#include "serve/worker.h"

#define LINK_MAGIC         0x6c696e6bu
#define CONNECT_TIMEOUT_MS 10000L /* net/http's for a handshake: a busy server needs seconds */
#define IDLE_MAX           32
#define IDLE_NS            (UINT64_C(30) * 1000000000) /* kube-apiserver: 90 s or more */
#define EVENTS_MAX         64
#define SOCKET_OF_CURL     (UINT64_C(1) << 63) /* in an event: libcurl's, not a link's */

struct upstream_link {
	uint32_t magic;
	struct upstream_links *links;
	struct upstream_link *next, **at; /* of one list of `links` */
	struct upstream_link **holder;    /* where the caller has it; used ones only */
	CURL *easy;
	struct upstream_lists lists;
	enum upstream_link_state state;
	bool fresh, was_idle, closed;
	int fd;              /* of an open connection, libcurl's own; -1 */
	uint64_t generation; /* of the server */
	uint64_t idle_ns;    /* since when */
	void (*ready)(void *context);
	void *context;
	char error[CURL_ERROR_SIZE];
};

struct upstream_links {
	int runtime_fd, epoll;
	CURLM *multi;
	struct upstream_server server;
	/* The newest first. A used one without `ready` is being opened for a request that got
	 * another one. */
	struct upstream_link *used, *idle, *closed;
	unsigned n_idle;
	bool running;
	struct serve_timer timer; /* of libcurl */
	struct serve_timer idle_timer;
};

/* ---- lists of links ----------------------------------------------------- */

static void link_free(struct upstream_link *link)
{
	if (link->fd >= 0)
		(void)epoll_ctl(link->links->epoll, EPOLL_CTL_DEL, link->fd, NULL);
	if (link->easy) {
		/* It may not have been added. This closes the connection. */
		(void)curl_multi_remove_handle(link->links->multi, link->easy);
		curl_easy_cleanup(link->easy);
	}
	upstream_lists_release(&link->lists);
	link->magic = 0;
	free(link);
}

/* Frees LINK, off all lists; after the run if there is one, because an event may name it. */
static void link_discard(struct upstream_link *link)
{
	link->closed = true;
	if (link->links->running)
		CHAIN_ADD(&link->links->closed, link);
	else
		link_free(link);
}

static void link_drop_idle(struct upstream_link *link)
{
	CHAIN_REMOVE(link);
	link->links->n_idle--;
	link_discard(link);
}

static int link_watch(struct upstream_link *link, int operation, int fd)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = link};

	return epoll_ctl(link->links->epoll, operation, fd, &event);
}

/* Finds a use for the open LINK, off all lists: the oldest request that waits, or a later one. A
 * server with no time for handshakes would else fail requests that its connections could take. */
static void link_rest(struct upstream_link *link)
{
	struct upstream_links *links = link->links;
	struct upstream_link *waiting = NULL; /* the oldest one is the last */

	for (struct upstream_link *used = links->used; used; used = used->next)
		if (used->state == UPSTREAM_CONNECTING && !used->fresh && used->ready)
			waiting = used;
	if (link->generation != links->server.generation) {
		link_discard(link);
	} else if (waiting) {
		link->ready = waiting->ready;
		link->context = waiting->context;
		link->holder = waiting->holder;
		link->was_idle = true;
		*link->holder = link;
		CHAIN_ADD(&links->used, link);
		/* It can be written: ready() is called. */
		(void)link_watch(link, EPOLL_CTL_MOD, link->fd);
		waiting->ready = NULL;
	} else if (links->n_idle >= IDLE_MAX) {
		link_discard(link);
	} else {
		link->idle_ns = proc_monotonic_ns();
		CHAIN_ADD(&links->idle, link);
		if (links->n_idle++ == 0)
			serve_timer_set(&links->idle_timer, link->idle_ns + IDLE_NS);
	}
}

/* Returns true if the server has neither ended the connection nor sent anything. */
static bool link_is_silent(struct upstream_link *link)
{
	uint8_t byte;
	size_t n;

	return curl_easy_recv(link->easy, &byte, 1, &n) == CURLE_AGAIN;
}

/* ---- libcurl's side ----------------------------------------------------- */

static int link_on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *assigned)
{
	struct upstream_links *links = arg;
	struct epoll_event event = {.data.u64 = SOCKET_OF_CURL | (uint64_t)fd,
		.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) |
			  (what & CURL_POLL_OUT ? EPOLLOUT : 0u)};

	(void)easy;
	(void)assigned;
	if (what == CURL_POLL_REMOVE)
		(void)epoll_ctl(links->epoll, EPOLL_CTL_DEL, fd, NULL); /* it may be closed */
	else if (epoll_ctl(links->epoll, EPOLL_CTL_MOD, fd, &event) < 0)
		/* Without room the connection fails by its time limit. */
		(void)epoll_ctl(links->epoll, EPOLL_CTL_ADD, fd, &event);
	return 0;
}

static int link_on_timer(CURLM *multi, long timeout_ms, void *arg)
{
	struct upstream_links *links = arg;

	(void)multi;
	serve_timer_set(&links->timer,
		timeout_ms < 0 ? UINT64_MAX : proc_monotonic_ns() + (uint64_t)timeout_ms * 1000000);
	return 0;
}

/* The connection of LINK is there, or has failed. */
static void link_connected(struct upstream_link *link, CURLcode code)
{
	curl_socket_t fd = CURL_SOCKET_BAD;

	if (code == CURLE_OK)
		code = curl_easy_getinfo(link->easy, CURLINFO_ACTIVESOCKET, &fd);
	link->state = UPSTREAM_FAILED;
	if (code && !*link->error) /* mostly libcurl has written there more than this says */
		(void)snprintf(link->error, sizeof(link->error), "%s", curl_easy_strerror(code));
	else if (!code && (fd == CURL_SOCKET_BAD || link_watch(link, EPOLL_CTL_ADD, fd) < 0))
		(void)snprintf(link->error, sizeof(link->error), "the connection can't be watched");
	else if (!code)
		link->state = UPSTREAM_OPEN;
	link->fd = link->state == UPSTREAM_OPEN ? fd : -1;
	link->links->server.stale |= link->state == UPSTREAM_FAILED;
	if (link->ready) {
		link->ready(link->context);
		return;
	}
	CHAIN_REMOVE(link);
	if (link->state == UPSTREAM_OPEN)
		link_rest(link);
	else
		link_discard(link);
}

/* Reports new and failed connections, and frees the closed ones. */
static void link_finish_run(struct upstream_links *links)
{
	struct upstream_link *link;
	int left;

	for (CURLMsg *message; (message = curl_multi_info_read(links->multi, &left));) {
		CURLcode code = message->data.result;

		if (message->msg != CURLMSG_DONE)
			continue;
		(void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&link);
		if (!link->closed)
			link_connected(link, code);
	}
	links->running = false;
	while ((link = links->closed)) {
		CHAIN_REMOVE(link);
		link_free(link);
	}
}

void upstream_links_run(struct upstream_links *links)
{
	struct epoll_event events[EVENTS_MAX];
	int n = epoll_wait(links->epoll, events, EVENTS_MAX, 0), handles;

	links->running = true;
	for (int i = 0; i < n; i++) {
		struct upstream_link *link = events[i].data.ptr;
		uint32_t e = events[i].events;

		if (events[i].data.u64 & SOCKET_OF_CURL)
			(void)curl_multi_socket_action(links->multi,
				(curl_socket_t)(events[i].data.u64 & INT32_MAX),
				(e & EPOLLIN ? CURL_CSELECT_IN : 0) |
					(e & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
					(e & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0),
				&handles);
		else if (!link->closed && link->ready)
			link->ready(link->context);
		else if (!link->closed && !link_is_silent(link))
			link_drop_idle(link); /* nothing but its end can come */
	}
	link_finish_run(links);
}

static void link_timer(void *context)
{
	struct upstream_links *links = context;
	int handles;

	links->running = true;
	(void)curl_multi_socket_action(links->multi, CURL_SOCKET_TIMEOUT, 0, &handles);
	link_finish_run(links);
}

static void link_idle_timer(void *context)
{
	struct upstream_links *links = context;
	uint64_t now = proc_monotonic_ns();

	for (struct upstream_link *link = links->idle, *next; link; link = next) {
		next = link->next;
		if (now - link->idle_ns >= IDLE_NS)
			link_drop_idle(link);
	}
	serve_timer_set(&links->idle_timer, links->idle ? now + IDLE_NS / 2 : UINT64_MAX);
}

/* ---- links -------------------------------------------------------------- */

static int link_set_up(struct upstream_link *link)
{
	struct upstream_links *links = link->links;
	CURL *easy = link->easy;
	CURLcode code = CURLE_OK;
	int r = upstream_server_apply(&links->server, easy, "/", &link->lists);

	if (r < 0)
		return r;
#define SET(option, value) (code = code ? code : curl_easy_setopt(easy, option, value))
	SET(CURLOPT_CONNECT_ONLY, 1L);
	SET(CURLOPT_HTTPPROXYTUNNEL, 1L);
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_TCP_KEEPALIVE, 1L);
	SET(CURLOPT_TCP_KEEPIDLE, 20L);
	SET(CURLOPT_TCP_KEEPINTVL, 10L);
	SET(CURLOPT_PRIVATE, link);
	SET(CURLOPT_ERRORBUFFER, link->error);
	SET(CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
#undef SET
	return code ? err_say(ERR_NETWORK, "connecting to the API server: %s",
			      curl_easy_strerror(code))
		    : 0;
}

static struct upstream_link *link_take_idle(struct upstream_links *links)
{
	struct upstream_link *link;

	while ((link = links->idle)) {
		if (link->generation != links->server.generation || !link_is_silent(link)) {
			link_drop_idle(link);
			continue;
		}
		CHAIN_REMOVE(link);
		links->n_idle--;
		link->was_idle = true;
		return link;
	}
	return NULL;
}

int upstream_link_open(struct upstream_links *links, bool fresh, void (*ready)(void *context),
	void *context, struct upstream_link **ret_link)
{
	int r = upstream_server_refresh(&links->server, links->runtime_fd);

	if (r < 0)
		return r;
	struct upstream_link *link = fresh ? NULL : link_take_idle(links);

	if (!link) {
		link = calloc(1, sizeof(*link));
		if (!link)
			return err_set(-ENOMEM, "connecting to the API server");
		*link = (struct upstream_link){.magic = LINK_MAGIC,
			.links = links,
			.fresh = fresh,
			.fd = -1,
			.generation = links->server.generation};
		link->easy = curl_easy_init();
		r = link->easy ? link_set_up(link)
			       : err_set(-ENOMEM, "connecting to the API server");
		if (r == 0 && curl_multi_add_handle(links->multi, link->easy) != CURLM_OK)
			r = err_set(-ENOMEM, "connecting to the API server");
		if (r < 0) {
			link_free(link);
			return r;
		}
	}
	link->ready = ready;
	link->context = context;
	link->holder = ret_link;
	CHAIN_ADD(&links->used, link);
	*ret_link = link;
	return 0;
}

enum upstream_link_state upstream_link_state(const struct upstream_link *link)
{
	return link->state;
}

bool upstream_link_was_idle(const struct upstream_link *link)
{
	return link->was_idle;
}

const char *upstream_link_error(const struct upstream_link *link)
{
	return *link->error ? link->error : "the connection broke";
}

ssize_t upstream_link_read(struct upstream_link *link, void *out, size_t room)
{
	size_t n = 0;

	CHECK_OBJ(link, LINK_MAGIC);
	CURLcode code = curl_easy_recv(link->easy, out, room, &n);
	return code == CURLE_OK      ? (ssize_t)n
	       : code == CURLE_AGAIN ? UPSTREAM_AGAIN
				     : UPSTREAM_BROKEN;
}

ssize_t upstream_link_write(struct upstream_link *link, struct bytes bytes)
{
	const uint8_t *p = bytes.data;
	CURLcode code = CURLE_OK;
	size_t sent = 0, n;

	CHECK_OBJ(link, LINK_MAGIC);
	while (!code && sent < bytes.size) {
		n = 0;
		code = curl_easy_send(link->easy, p + sent, bytes.size - sent, &n);
		sent += n;
	}
	return code && code != CURLE_AGAIN ? UPSTREAM_BROKEN : (ssize_t)sent;
}

void upstream_link_close(struct upstream_link **link, bool reusable)
{
	struct upstream_link *l = TAKE(*link);

	if (!l)
		return;
	CHECK_OBJ(l, LINK_MAGIC);
	CHAIN_REMOVE(l);
	l->ready = NULL;
	if (reusable && l->state == UPSTREAM_OPEN)
		link_rest(l);
	else
		link_discard(l);
}

/* ---- begin and end ------------------------------------------------------ */

int upstream_links_new(
	struct serve_worker *worker, int runtime_fd, struct upstream_links **ret_links)
{
	CLEANUP(upstream_links_free) struct upstream_links *links = calloc(1, sizeof(*links));

	if (!links)
		return err_set(-ENOMEM, "setting up connections to the API server");
	links->runtime_fd = runtime_fd;
	links->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (links->epoll < 0)
		return err_set(-errno, "setting up connections to the API server");
	int r = serve_timer_init(worker, &links->timer, link_timer, links);
	if (r == 0)
		r = serve_timer_init(worker, &links->idle_timer, link_idle_timer, links);
	if (r < 0)
		return r;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) || !(links->multi = curl_multi_init()) ||
		curl_multi_setopt(links->multi, CURLMOPT_SOCKETFUNCTION, link_on_socket) ||
		curl_multi_setopt(links->multi, CURLMOPT_SOCKETDATA, links) ||
		curl_multi_setopt(links->multi, CURLMOPT_TIMERFUNCTION, link_on_timer) ||
		curl_multi_setopt(links->multi, CURLMOPT_TIMERDATA, links))
		return err_set(-ENOMEM, "setting up connections to the API server");
	*ret_links = TAKE(links);
	return 0;
}

void upstream_links_free(struct upstream_links **links)
{
	struct upstream_links *l = TAKE(*links);

	if (!l)
		return;
	for (struct upstream_link *link; (link = l->used);) {
		REQUIRE(!link->ready);
		CHAIN_REMOVE(link);
		link_discard(link);
	}
	while (l->idle)
		link_drop_idle(l->idle);
	if (l->multi)
		(void)curl_multi_cleanup(l->multi);
	serve_timer_release(&l->timer);
	serve_timer_release(&l->idle_timer);
	cleanup_fd(&l->epoll);
	upstream_server_release(&l->server);
	free(l);
}

int upstream_links_fd(const struct upstream_links *links)
{
	return links->epoll;
}

void upstream_links_server(
	const struct upstream_links *links, struct bytes *ret_host, struct bytes *ret_base)
{
	upstream_server_split(&links->server, ret_host, ret_base);
}
