/* SPDX-License-Identifier: Apache-2.0 */
/* One socket: reading, writing, time limits, the choice of the protocol. */
#include "serve/http/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "serve/chain.h"
#include "serve/http/listener.h"
#include "serve/metrics.h"

#define CONNECTION_MAGIC 0x636f6e6eu
#define HEAD_NS          (10 * SECOND_NS) /* for a head, and for a TLS handshake */
#define IDLE_NS          (90 * SECOND_NS) /* between two requests */
#define SLOT_NS          (SECOND_NS / 4)  /* then a handshake leaves its slot to another */
/* without progress in either direction */
#define SLOW_NS           (60 * SECOND_NS)
#define LINGER_NS         (2 * SECOND_NS)
#define INPUT_SIZE        ((size_t)64 << 10)
#define TURN_BYTES        ((size_t)256 << 10) /* then other connections have their turn */
#define CONNECTION_EVENTS (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)
#define PREFACE           "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

static void connection_expired(void *context);

/* ---- begin and end ------------------------------------------------------ */

/* Takes a slot for the handshake, whose time begins. */
static void connection_take_slot(struct http_connection *c)
{
	c->worker->n_handshakes += !c->has_slot;
	c->has_slot = true;
	c->began_ns = c->worker->now_ns;
}

static void connection_release_slot(struct http_connection *c)
{
	c->worker->n_handshakes -= c->has_slot;
	c->worker->slot_freed |= c->has_slot;
	c->has_slot = false;
}

static void connection_count(struct http_connection *c, bool more)
{
	const char *name = c->protocol ? c->protocol->name : "unknown";
	struct metric_cell *cell =
		metrics_cell(c->worker->shared->metrics, METRIC_CONNECTIONS, &name);

	if (more)
		metric_add(cell, 1);
	else
		metric_sub(cell, 1);
}

static void connection_set_protocol(struct http_connection *c, const struct protocol *protocol)
{
	connection_count(c, false);
	c->protocol = protocol;
	connection_count(c, true);
}

void connection_close(struct http_connection **connection)
{
	struct http_connection *c = TAKE(*connection);
	struct serve_worker *worker;

	if (!c)
		return;
	CHECK_OBJ(c, CONNECTION_MAGIC);
	worker = c->worker;
	while (c->streams)
		stream_end(c->streams, worker->ended ? EXCHANGE_STOPPED : EXCHANGE_CLOSED);
	if (c->protocol)
		c->protocol->release(c);
	connection_release_slot(c);
	connection_count(c, false);
	serve_timer_release(&c->timer);
	tls_session_free(&c->tls);
	/* Closing is not enough while a process that is being started has a copy (mcp.c). */
	if (c->fd >= 0)
		(void)epoll_ctl(worker->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	cleanup_fd(&c->fd);
	buf_release(&c->in);
	buf_release(&c->out);
	free(c->groups);
	CHAIN_REMOVE(c);
	__atomic_sub_fetch(&worker->n_connections, 1, __ATOMIC_RELAXED);
	c->magic = 0;
	free(c);
}

int connection_new(struct serve_worker *worker, const struct listener *listener, int fd)
{
	struct http_connection *c = calloc(1, sizeof(*c));
	struct epoll_event event = {.events = CONNECTION_EVENTS, .data.ptr = c};

	if (!c) {
		(void)close(fd);
		__atomic_sub_fetch(&worker->n_connections, 1, __ATOMIC_RELAXED);
		return err_set(-ENOMEM, "taking a connection");
	}
	c->magic = CONNECTION_MAGIC;
	c->worker = worker;
	c->listener = listener;
	c->fd = fd;
	c->finish_ns = UINT64_MAX;
	c->began_ns = c->progress_ns = worker->now_ns;
	CHAIN_ADD(&worker->connections, c);
	connection_count(c, true);
	int r = serve_timer_init(worker, &c->timer, connection_expired, c);
	if (r == 0)
		r = peer_of_socket(fd, listener, &c->peer, &c->groups);
	c->in_handshake = listener->tls != NULL;
	if (c->in_handshake)
		connection_take_slot(c);
	if (r == 0 && epoll_ctl(worker->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		r = err_set(-errno, "watching a connection");
	if (r < 0) {
		connection_close(&c);
		return r;
	}
	serve_timer_set(&c->timer, worker->now_ns + (c->has_slot ? SLOT_NS : HEAD_NS));
	return 0;
}

void connection_ready(struct http_connection *c)
{
	if (c->ready)
		return;
	c->ready = true;
	c->ready_next = NULL;
	*c->worker->ready_last = c;
	c->worker->ready_last = &c->ready_next;
}

void connection_events(struct http_connection *c, uint32_t events)
{
	CHECK_OBJ(c, CONNECTION_MAGIC);
	c->readable |= (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
	c->writable |= (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0;
	c->dead |= (events & EPOLLERR) != 0;
	connection_ready(c);
}

/* ---- the socket --------------------------------------------------------- */

/* Codes of the socket and of TLS go no further than this file, so they have no sentence. */

static void connection_handshake(struct http_connection *c)
{
	int r = 0;

	if (!c->tls && !c->readable) { /* a silent client costs nothing but its socket */
		connection_release_slot(c);
		return;
	}
	if (!c->tls) {
		connection_take_slot(c);
		r = tls_session_new(c->listener->tls, c->fd, &c->tls);
	}
	if (r < 0) {
		err_ignore(r, "the client sees a closed connection and tries again");
		c->dead = true;
		return;
	}
	r = tls_session_handshake(c->tls);
	if (r == -EAGAIN) {
		c->readable = c->writable = false;
		return;
	}
	c->in_handshake = false;
	connection_release_slot(c);
	if (r < 0 || tls_session_peer(c->tls, &c->peer) < 0) {
		/* In the words of Go's servers. */
		static const char text[] = "HTTP/1.0 400 Bad Request\r\n\r\n"
					   "Client sent an HTTP request to an HTTPS server.\n";
		const char *why = "tls";

		if (r == TLS_PLAIN) {
			/* Unread bytes would reset the connection before this is read. */
			(void)recv(c->fd, c->worker->input, INPUT_SIZE, MSG_DONTWAIT);
			(void)send(c->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
		}
		metric_add(metrics_cell(c->worker->shared->metrics, METRIC_REFUSED, &why), 1);
		c->dead = true;
		return;
	}
	c->began_ns = 0;
	/* The other direction may have become possible meanwhile without an event. */
	c->readable = c->writable = true;
	if (!tls_session_is_h2(c->tls))
		connection_set_protocol(c, &http1_protocol);
	else if (http2_start(c) < 0)
		c->dead = true;
	else
		connection_set_protocol(c, &http2_protocol);
}

static int connection_take(struct http_connection *c, const uint8_t *bytes, size_t size)
{
	if (c->protocol)
		return c->protocol->input(c, bytes, size);
	buf_put(&c->in, bytes, size);
	int r = buf_error(&c->in);
	if (r < 0)
		return r;
	/* The first bytes tell HTTP/1.1 from HTTP/2 without ALPN. */
	size_t known = c->in.size < strlen(PREFACE) ? c->in.size : strlen(PREFACE);
	if (memcmp(c->in.data, PREFACE, known) != 0)
		connection_set_protocol(c, &http1_protocol);
	else if (known == strlen(PREFACE) && http2_start(c) == 0)
		connection_set_protocol(c, &http2_protocol);
	else if (known == strlen(PREFACE))
		c->dead = true;
	if (!c->protocol)
		return 0;
	CLEANUP(buf_release) struct buf first = c->in;
	c->in = BUF_INIT;
	return c->protocol->input(c, first.data, first.size);
}

static void connection_read(struct http_connection *c)
{
	uint8_t *input = c->worker->input;
	size_t total = 0;

	while (c->readable && !c->dead &&
		(c->lingering || !c->protocol || c->protocol->hungry(c))) {
		ssize_t n = c->tls ? tls_session_read(c->tls, input, INPUT_SIZE)
				   : recv(c->fd, input, INPUT_SIZE, MSG_DONTWAIT);

		if (n < 0 && !c->tls)
			n = -errno;

		if (n == -EAGAIN || n == -EINTR)
			c->readable = n == -EINTR;
		else if (n < 0)
			c->dead = true;
		if (n == 0) {
			c->readable = false;
			c->read_ended = true;
			if (c->protocol)
				c->protocol->hear_end(c);
			else
				c->dead = true;
		}
		if (n <= 0)
			continue;
		c->progress_ns = c->worker->now_ns;
		if (!c->lingering && connection_take(c, input, (size_t)n) < 0) {
			err_forget();
			c->dead = true;
		}
		total += (size_t)n;
		if (total >= TURN_BYTES) {
			connection_ready(c);
			break;
		}
	}
}

/* Writes BYTES. Returns how many the socket took. */
static size_t connection_write_some(struct http_connection *c, const uint8_t *bytes, size_t size)
{
	size_t sent = 0;

	while (sent < size && c->writable && !c->dead) {
		ssize_t n = c->tls ? tls_session_write(c->tls, bytes + sent, size - sent)
				   : send(c->fd, bytes + sent, size - sent,
					     MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && !c->tls)
			n = -errno;

		if (n > 0) {
			sent += (size_t)n;
			c->progress_ns = c->worker->now_ns;
		} else if (n == -EAGAIN) {
			c->writable = false;
		} else if (n != -EINTR) {
			c->dead = true;
		}
	}
	return sent;
}

static void connection_write(struct http_connection *c)
{
	struct buf *output = &c->worker->output;
	size_t total = 0;

	while (!c->dead) {
		if (c->out.size > c->out_sent)
			c->out_sent += connection_write_some(
				c, c->out.data + c->out_sent, c->out.size - c->out_sent);
		if (c->out.size > c->out_sent)
			return;
		buf_release(&c->out);
		c->out_sent = 0;
		if (!c->protocol)
			return;
		buf_reset(output);
		if (c->protocol->output(c, output) < 0) {
			err_forget();
			c->dead = true;
		}
		if (!output->size)
			return;
		size_t sent = connection_write_some(c, output->data, output->size);
		buf_put(&c->out, output->data + sent, output->size - sent);
		c->dead |= buf_error(&c->out) < 0;
		total += sent;
		if (total >= TURN_BYTES) {
			connection_ready(c);
			return;
		}
	}
}

/* ---- turns -------------------------------------------------------------- */

void connection_pause(struct http_connection *c, uint64_t ns)
{
	struct epoll_event event = {.events = EPOLLET, .data.ptr = c};

	/* No packet may wake the worker either. */
	if (epoll_ctl(c->worker->epoll, EPOLL_CTL_MOD, c->fd, &event) == 0)
		c->pause_ns = c->worker->now_ns + ns;
}

/* Returns true if the request needs more of the client. */
static bool connection_awaits_body(const struct http_connection *c)
{
	const struct http1 *h = &c->http1;

	return c->protocol == &http1_protocol && h->body_open && !h->tunnel && h->stream &&
	       !h->stream->body.size;
}

/* Returns when the connection's patience ends. */
static uint64_t connection_deadline(const struct http_connection *c)
{
	uint64_t at = UINT64_MAX;

	if (c->lingering)
		return c->began_ns + LINGER_NS;
	if (c->has_slot)
		return c->began_ns + SLOT_NS;
	if (c->out.size > c->out_sent || connection_awaits_body(c))
		at = c->progress_ns + SLOW_NS;
	else if (c->began_ns)
		at = c->began_ns + HEAD_NS;
	else if (!c->streams)
		at = c->progress_ns + IDLE_NS;
	else if (c->protocol == &http2_protocol) /* also while there is always something to do */
		at = c->checked_ns + SLOW_NS / 6;
	return at < c->finish_ns ? at : c->finish_ns;
}

void connection_turn(struct http_connection *c)
{
	struct epoll_event event = {.events = CONNECTION_EVENTS, .data.ptr = c};

	CHECK_OBJ(c, CONNECTION_MAGIC);
	if (c->worker->now_ns < c->pause_ns && !c->dead) {
		serve_timer_set(&c->timer, c->pause_ns);
		return;
	}
	if (c->pause_ns) {
		c->pause_ns = 0;
		c->readable = c->writable = true;
		c->dead |= epoll_ctl(c->worker->epoll, EPOLL_CTL_MOD, c->fd, &event) < 0;
	}
	if (c->in_handshake && !c->dead)
		connection_handshake(c);
	if (!c->in_handshake) {
		connection_read(c);
		if (!c->lingering)
			connection_write(c);
	}
	bool flushed = c->out.size == c->out_sent;
	if (!c->dead && !c->lingering && c->protocol && c->protocol->over(c) && flushed) {
		/* Ends the sending side, and reads for a moment: closing at once would reset the
		 * connection, and the client might lose the answer. */
		c->lingering = true;
		if (c->tls)
			tls_session_end(c->tls);
		(void)shutdown(c->fd, SHUT_WR); /* a dead connection closes below */
		c->began_ns = c->worker->now_ns;
		connection_read(c);
	}
	if (c->dead || (c->lingering && c->read_ended)) {
		if (!c->ready) /* else its due turn does it */
			connection_close(&c);
		return;
	}
	/* Bytes in the socket can be taken now if there is room. */
	if (c->readable && c->protocol && c->protocol->hungry(c))
		connection_ready(c);
	if (!c->in.size)
		buf_release(&c->in);
	serve_timer_set(&c->timer, c->pause_ns ? c->pause_ns : connection_deadline(c));
}

/* Returns true if S needs a window or the rest of its request. */
static bool stream_awaits_client(const struct stream *s)
{
	if (s->state >= STREAM_WHOLE)
		return !s->waiting;
	return !s->body_ended && !s->body.size && (s->state == STREAM_REQUEST || s->on_body);
}

/* Ends streams of HTTP/2 after a minute's silence of a client they wait for. */
static void connection_check_streams(struct http_connection *c)
{
	uint64_t now = c->worker->now_ns;

	c->checked_ns = now;
	for (struct stream *s = c->streams, *next; s; s = next) {
		next = s->next;
		if (stream_awaits_client(s) && now - s->progress_ns >= SLOW_NS)
			c->protocol->cut_slow(c, s);
	}
}

static void connection_expired(void *context)
{
	struct http_connection *c = context;
	uint64_t now = c->worker->now_ns;
	bool pending = c->out.size > c->out_sent;

	if (c->has_slot && now >= c->began_ns + SLOT_NS)
		connection_release_slot(c);
	if (now >= c->finish_ns) {
		c->finish_ns = UINT64_MAX;
		for (struct stream *s = c->streams, *next; s; s = next) {
			next = s->next;
			stream_finish(s);
		}
	} else if (c->lingering || (c->began_ns && now >= c->began_ns + HEAD_NS)) {
		c->dead = true;
	} else if (!c->streams && now >= c->progress_ns + IDLE_NS) {
		connection_drain(c, UINT64_MAX);
	} else if (now >= c->progress_ns + SLOW_NS && (pending || connection_awaits_body(c))) {
		while (c->streams)
			stream_end(c->streams, EXCHANGE_SLOW);
		c->http1.stream = NULL;
		c->dead = true;
	} else if (c->protocol == &http2_protocol) {
		connection_check_streams(c);
	}
	connection_ready(c);
}

void connection_drain(struct http_connection *c, uint64_t finish_ns)
{
	c->draining = true;
	c->finish_ns = finish_ns;
	if (c->protocol)
		c->protocol->drain(c);
	else
		c->dead = true;
	connection_ready(c);
}
