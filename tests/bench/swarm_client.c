/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/swarm_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>

#include "common/buf.h"
#include "tests/bench/measure.h"

#define INPUT_SIZE ((size_t)256 << 10)
#define SOURCES    16

enum body_state { BODY_HEAD, BODY_SIZE, BODY_DATA, BODY_GAP, BODY_TRAILER };

struct swarm_connection {
	struct swarm *swarm;
	int fd;
	SSL *ssl;
	bool connected, paused, lost;
	nghttp2_session *session;
	struct swarm_request *requests;
	struct buf out, head;
	/* HTTP/1.1: the state of reading the answer. */
	enum body_state state;
	uint64_t left;
	bool chunked;
	struct swarm_connection *next_lost;
};

/* ---- requests ----------------------------------------------------------- */

static void end_request(struct swarm_connection *c, struct swarm_request *request, bool complete)
{
	struct swarm_request **at = &c->requests;

	while (*at && *at != request)
		at = &(*at)->next;
	must_true(*at != NULL, "a request that is not the connection's");
	*at = request->next;
	request->connection = NULL;
	c->swarm->calls.ended(request, complete);
}

static void add_request(struct swarm_connection *c, struct swarm_request *request)
{
	request->connection = c;
	request->status = 0;
	request->bytes = 0;
	request->tail_size = 0;
	request->next = c->requests;
	c->requests = request;
}

static void begin_answer(struct swarm_request *request, int status)
{
	const struct swarm_calls *calls = &request->connection->swarm->calls;

	request->status = status;
	if (calls->begun)
		calls->begun(request);
}

static void pass_data(struct swarm_request *request, const uint8_t *bytes, size_t size)
{
	request->bytes += size;
	request->connection->swarm->calls.data(request, bytes, size);
}

/* ---- HTTP/2 ------------------------------------------------------------- */

static struct swarm_request *by_stream(nghttp2_session *session, int32_t stream)
{
	return nghttp2_session_get_stream_user_data(session, stream);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
	size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags, void *user)
{
	struct swarm_request *request = by_stream(session, frame->hd.stream_id);

	(void)flags;
	(void)user;
	if (request && name_size == 7 && memcmp(name, ":status", 7) == 0 && value_size == 3)
		begin_answer(
			request, (value[0] - '0') * 100 + (value[1] - '0') * 10 + value[2] - '0');
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes,
	size_t size, void *user)
{
	struct swarm_request *request = by_stream(session, stream);

	(void)flags;
	(void)user;
	if (request)
		pass_data(request, bytes, size);
	return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *user)
{
	struct swarm_request *request = by_stream(session, stream);

	if (request)
		end_request(user, request, code == 0);
	return 0;
}

static void start_http2(struct swarm_connection *c)
{
	static const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 4 << 20}};
	nghttp2_session_callbacks *callbacks;

	must_true(nghttp2_session_callbacks_new(&callbacks) == 0, "no memory");
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	must_true(nghttp2_session_client_new(&c->session, callbacks, c) == 0, "no memory");
	nghttp2_session_callbacks_del(callbacks);
	must_true(nghttp2_submit_settings(c->session, 0, settings, 1) == 0 &&
			  nghttp2_session_set_local_window_size(c->session, 0, 0, 1 << 30) == 0,
		"HTTP/2");
}

static nghttp2_nv header(const char *name, const char *value)
{
	return (nghttp2_nv){.name = (uint8_t *)name,
		.namelen = strlen(name),
		.value = (uint8_t *)value,
		.valuelen = strlen(value)};
}

static void get_http2(struct swarm_connection *c, struct swarm_request *request, const char *path)
{
	const char *authorization = c->swarm->target.authorization;
	nghttp2_nv fields[] = {header(":method", "GET"), header(":scheme", "https"),
		header(":authority", "localhost"), header(":path", path),
		header("accept", "application/json"), header("user-agent", "swarm"),
		header("authorization", authorization ? authorization : "")};

	request->stream = nghttp2_submit_request(
		c->session, NULL, fields, authorization ? 7 : 6, NULL, request);
	must_true(request->stream > 0, "HTTP/2");
}

/* ---- HTTP/1.1 ----------------------------------------------------------- */

/* Takes the head of an answer. Returns how many bytes were used. */
static size_t take_head(struct swarm_connection *c, const uint8_t *bytes, size_t size)
{
	size_t before = c->head.size;

	buf_put(&c->head, bytes, size);
	const char *text = buf_cstr(&c->head), *end = strstr(text, "\r\n\r\n");
	if (!end)
		return size;
	const char *length = strcasestr(text, "\r\ncontent-length:");

	int status = (int)strtol(text + strlen("HTTP/1.1 "), NULL, 10);
	c->chunked = strcasestr(text, "\r\ntransfer-encoding: chunked") != NULL;
	c->left = length && length < end ? strtoull(length + 17, NULL, 10) : 0;
	c->state = c->chunked ? BODY_SIZE : BODY_DATA;
	size_t used = (size_t)(end + 4 - text) - before;
	buf_reset(&c->head);
	begin_answer(c->requests, status);
	return used;
}

/* Takes the line of a chunk's size. */
static size_t take_size(struct swarm_connection *c, const uint8_t *bytes, size_t size)
{
	const uint8_t *lf = memchr(bytes, '\n', size);
	size_t used = lf ? (size_t)(lf - bytes) + 1 : size;

	buf_put(&c->head, bytes, used);
	if (!lf)
		return used;
	c->left = strtoull(buf_cstr(&c->head), NULL, 16);
	c->state = c->left ? BODY_DATA : BODY_TRAILER;
	buf_reset(&c->head);
	if (c->state == BODY_TRAILER)
		c->left = 2;
	return used;
}

/* Goes on after the last byte of a part of the answer. */
static void end_part(struct swarm_connection *c)
{
	if (c->state == BODY_DATA && c->chunked) {
		c->state = BODY_GAP;
		c->left = 2;
	} else if (c->state == BODY_GAP) {
		c->state = BODY_SIZE;
	} else if (c->state == BODY_DATA || c->state == BODY_TRAILER) {
		c->state = BODY_HEAD;
		end_request(c, c->requests, true);
	}
}

static void input_http1(struct swarm_connection *c, const uint8_t *bytes, size_t size)
{
	while (size && c->requests && !c->lost) {
		size_t used;

		if (c->state == BODY_HEAD) {
			used = take_head(c, bytes, size);
		} else if (c->state == BODY_SIZE) {
			used = take_size(c, bytes, size);
		} else {
			used = size < c->left ? size : (size_t)c->left;
			if (c->state == BODY_DATA)
				pass_data(c->requests, bytes, used);
			c->left -= used;
		}
		bytes += used;
		size -= used;
		if (c->state >= BODY_DATA && c->left == 0 && !c->lost)
			end_part(c);
	}
}

static void send_http1(struct swarm_connection *c, struct swarm_request *request,
	const char *method, const char *path, const char *body)
{
	const char *authorization = c->swarm->target.authorization;

	must_true(!request->next && c->requests == request, "one request at a time");
	c->state = BODY_HEAD;
	buf_printf(&c->out,
		"%s %s HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n"
		"User-Agent: swarm\r\n",
		method, path);
	if (authorization)
		buf_printf(&c->out, "Authorization: %s\r\n", authorization);
	if (body)
		buf_printf(&c->out,
			"Content-Type: application/merge-patch+json\r\n"
			"Content-Length: %zu\r\n",
			strlen(body));
	buf_printf(&c->out, "\r\n%s", body ? body : "");
}

/* ---- sockets ------------------------------------------------------------ */

static int open_socket(struct swarm *swarm)
{
	const char *address = swarm->target.address, *colon = strrchr(address, ':');
	struct sockaddr_un local = {.sun_family = AF_UNIX};
	struct sockaddr_in remote = {.sin_family = AF_INET}, source = {.sin_family = AF_INET};
	bool is_local = swarm->target.protocol == SWARM_PLAIN;
	char host[64];
	const int yes = 1;
	int r;

	/* A Unix socket with a full queue would refuse a non-blocking connection. */
	int fd = socket(is_local ? AF_UNIX : AF_INET,
		SOCK_STREAM | SOCK_CLOEXEC | (is_local ? 0 : SOCK_NONBLOCK), 0);
	must_true(fd >= 0, "socket: the limit of descriptors (ulimit -n)");
	if (is_local) {
		(void)snprintf(local.sun_path, sizeof(local.sun_path), "%s", address);
		r = connect(fd, (struct sockaddr *)&local, sizeof(local));
	} else {
		must_true(colon != NULL, "an address is IPV4:PORT");
		(void)snprintf(host, sizeof(host), "%.*s", (int)(colon - address), address);
		remote.sin_port = htons((uint16_t)must_number(colon + 1, 1, "port"));
		must_true(
			inet_pton(AF_INET, host, &remote.sin_addr) == 1, "an address is IPV4:PORT");
		source.sin_addr.s_addr = htonl(INADDR_LOOPBACK + swarm->next_source++ % SOURCES);
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
		r = bind(fd, (struct sockaddr *)&source, sizeof(source));
		if (r == 0)
			r = connect(fd, (struct sockaddr *)&remote, sizeof(remote));
		if (r < 0 && errno == EINPROGRESS)
			r = 0; /* the first write finds out */
	}
	if (r < 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

/* OpenSSL does not resume a cut connection's session, so each has a copy. */
static void resume(SSL *ssl, const SSL_SESSION *session)
{
	SSL_SESSION *copy = SSL_SESSION_dup(session);

	must_true(copy && SSL_set_session(ssl, copy) == 1, "TLS");
	SSL_SESSION_free(copy);
}

struct swarm_connection *swarm_connect(struct swarm *swarm)
{
	int fd = open_socket(swarm);

	if (fd < 0)
		return NULL;
	struct swarm_connection *c = calloc(1, sizeof(*c));
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};

	must_true(c != NULL, "no memory");
	c->swarm = swarm;
	c->fd = fd;
	c->connected = swarm->target.protocol == SWARM_PLAIN;
	must_true(fcntl(fd, F_SETFL, O_NONBLOCK) == 0 &&
			  epoll_ctl(swarm->epoll, EPOLL_CTL_ADD, fd, &event) == 0,
		"epoll");
	if (swarm->target.protocol != SWARM_PLAIN) {
		static const unsigned char h1[] = "\x08http/1.1", h2[] = "\x02h2";
		bool is_h2 = swarm->target.protocol == SWARM_HTTP2;

		c->ssl = SSL_new(swarm->tls);
		must_true(c->ssl && SSL_set_fd(c->ssl, fd) == 1 &&
				  SSL_set_alpn_protos(c->ssl, is_h2 ? h2 : h1,
					  is_h2 ? sizeof(h2) - 1 : sizeof(h1) - 1) == 0,
			"TLS");
		SSL_set_connect_state(c->ssl);
		if (swarm->session)
			resume(c->ssl, swarm->session);
	}
	if (swarm->target.protocol == SWARM_HTTP2)
		start_http2(c);
	return c;
}

void swarm_close(struct swarm_connection *c)
{
	if (c->lost)
		return;
	c->lost = true;
	c->next_lost = c->swarm->lost;
	c->swarm->lost = c;
}

static void free_connection(struct swarm_connection *c)
{
	while (c->requests)
		end_request(c, c->requests, false);
	SSL_free(c->ssl);
	nghttp2_session_del(c->session);
	(void)close(c->fd);
	buf_release(&c->out);
	buf_release(&c->head);
	free(c);
}

void swarm_pause(struct swarm_connection *c, bool pause)
{
	struct epoll_event event = {
		.events = pause ? 0 : EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};

	c->paused = pause;
	must_true(epoll_ctl(c->swarm->epoll, EPOLL_CTL_MOD, c->fd, &event) == 0, "epoll");
}

static void input(struct swarm_connection *c)
{
	uint8_t *bytes = c->swarm->input;

	while (!c->lost && !c->paused) {
		ssize_t n = c->ssl ? SSL_read(c->ssl, bytes, (int)INPUT_SIZE)
				   : recv(c->fd, bytes, INPUT_SIZE, 0);

		if (n <= 0) {
			bool again = c->ssl ? SSL_get_error(c->ssl, (int)n) == SSL_ERROR_WANT_READ
					    : n < 0 && errno == EAGAIN;
			if (!again)
				swarm_close(c);
			return;
		}
		if (!c->session)
			input_http1(c, bytes, (size_t)n);
		else if (nghttp2_session_mem_recv(c->session, bytes, (size_t)n) != n)
			swarm_close(c);
	}
}

static void output(struct swarm_connection *c)
{
	const uint8_t *frame;
	ssize_t n;

	while (c->session && (n = nghttp2_session_mem_send(c->session, &frame)) > 0)
		buf_put(&c->out, frame, (size_t)n);
	while (c->out.size && !c->lost) {
		n = c->ssl ? SSL_write(c->ssl, c->out.data, (int)c->out.size)
			   : send(c->fd, c->out.data, c->out.size, MSG_NOSIGNAL);
		if (n <= 0) {
			bool again = c->ssl ? SSL_get_error(c->ssl, (int)n) == SSL_ERROR_WANT_WRITE
					    : errno == EAGAIN;
			if (!again)
				swarm_close(c);
			return;
		}
		buf_consume(&c->out, (size_t)n);
	}
	buf_release(&c->out);
}

static void turn(struct swarm_connection *c)
{
	if (c->lost)
		return;
	if (!c->connected) {
		int r = SSL_do_handshake(c->ssl), error = SSL_get_error(c->ssl, r);

		c->connected = r == 1;
		c->swarm->connected += c->connected;
		c->swarm->resumed += c->connected && SSL_session_reused(c->ssl);
		if (r != 1 && error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
			swarm_close(c);
		if (r != 1)
			return;
		output(c);
	}
	input(c);
	if (!c->lost)
		output(c);
}

/* ---- the interface ------------------------------------------------------ */

static int keep_session(SSL *ssl, SSL_SESSION *session)
{
	struct swarm *swarm = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

	SSL_SESSION_free(swarm->session);
	swarm->session = SSL_SESSION_dup(session);
	return 0;
}

void swarm_init(struct swarm *swarm, const struct swarm_target *target, struct swarm_calls calls)
{
	*swarm = (struct swarm){.target = *target, .calls = calls};
	swarm->epoll = epoll_create1(EPOLL_CLOEXEC);
	swarm->input = malloc(INPUT_SIZE);
	swarm->tls = SSL_CTX_new(TLS_client_method());
	must_true(swarm->epoll >= 0 && swarm->input && swarm->tls, "no memory");
	SSL_CTX_set_mode(swarm->tls, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
					     SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	if (target->protocol != SWARM_TICKETS)
		return;
	must_true(SSL_CTX_set_app_data(swarm->tls, swarm) == 1, "TLS");
	SSL_CTX_set_session_cache_mode(
		swarm->tls, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(swarm->tls, keep_session);
}

void swarm_get(struct swarm_connection *c, struct swarm_request *request, const char *path)
{
	add_request(c, request);
	if (c->session)
		get_http2(c, request, path);
	else
		send_http1(c, request, "GET", path, NULL);
	if (c->connected)
		output(c);
}

void swarm_patch(struct swarm_connection *c, struct swarm_request *request, const char *path,
	const char *body)
{
	add_request(c, request);
	send_http1(c, request, "PATCH", path, body);
	if (c->connected)
		output(c);
}

void swarm_turn(struct swarm *swarm, int timeout_ms)
{
	struct epoll_event events[512];
	int n = epoll_wait(swarm->epoll, events, 512, timeout_ms);

	for (int i = 0; i < n; i++)
		turn(events[i].data.ptr);
	while (swarm->lost) {
		struct swarm_connection *c = swarm->lost;

		swarm->lost = c->next_lost;
		free_connection(c);
	}
}
