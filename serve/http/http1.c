/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 on one connection: one request after the other. Pipelined requests stay in c->in, a
 * bounded buffer, until the answer before them is done.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/err.h"
#include "common/text/utf8.h"
#include "serve/http/connection.h"

#define HTTP1_IN_MAX    (EXCHANGE_HEAD_MAX + 4)
#define HTTP1_CHUNK_MAX 0xffff /* four hexadecimal digits */

/* ---- requests ----------------------------------------------------------- */

/* Answers a malformed request, and closes the connection afterwards. */
static int http1_refuse(struct http_connection *c, int status, const char *why)
{
	struct http1 *h = &c->http1;
	const char *reason = status == 413   ? "RequestEntityTooLarge"
			     : status >= 500 ? "InternalError"
					     : "BadRequest";

	if (!h->stream)
		h->stream = stream_new(c, BYTES_LIT(""), 0);
	if (!h->stream)
		return err_set(-ENOMEM, "refusing a request");
	h->state = HTTP1_ANSWER;
	h->close = true;
	h->head_written = h->answer_chunked = h->answer_bodiless = false;
	c->began_ns = 0;
	h->stream->state = STREAM_ASKED;
	exchange_refuse(&h->stream->x, status, reason, why, 0);
	return 0;
}

static struct bytes http1_moved(struct bytes part, const uint8_t *from, const uint8_t *to)
{
	return part.data ? BYTES(to + ((const uint8_t *)part.data - from), part.size) : BYTES_NONE;
}

/* Makes the stream of a request from its head, the first SIZE bytes of c->in. */
static int http1_begin_request(
	struct http_connection *c, const struct request_head *head, size_t size)
{
	struct http1 *h = &c->http1;
	const uint8_t *from = c->in.data;
	struct stream *s = stream_new(c, BYTES(from, size), head->n_fields);

	if (!s)
		return err_set(-ENOMEM, "taking a request");
	s->x.version = head->version;
	s->x.method = http1_moved(head->method, from, s->text);
	s->x.path = http1_moved(head->path, from, s->text);
	s->x.query = http1_moved(head->query, from, s->text);
	s->x.host = http1_moved(head->host, from, s->text);
	for (size_t i = 0; i < head->n_fields; i++)
		s->headers[i] =
			(struct exchange_header){http1_moved(head->fields[i].name, from, s->text),
				http1_moved(head->fields[i].value, from, s->text)};
	s->x.n_headers = head->n_fields;
	h->stream = s;
	h->close = head->close || c->draining;
	h->head_written = h->answer_chunked = h->answer_bodiless = false;
	h->body_chunked = head->chunked;
	h->body_left = head->length;
	h->chunks = (struct chunks){0};
	s->x.has_body = head->chunked || head->length;
	h->continue_owed = head->expects_continue && s->x.has_body;
	h->tunnel = false;
	h->body_open = s->x.has_body;
	h->state = HTTP1_ANSWER;
	s->body_ended = !s->x.has_body;
	struct bytes protocol = exchange_header(&s->x, "upgrade");
	/* An offer of HTTP/2 may be ignored (RFC 9110, 7.8), and kube-apiserver does. */
	s->x.upgrade = head->upgrade && !s->x.has_body && head->version == EXCHANGE_HTTP_1_1 &&
		       protocol.data && !ascii_equal(protocol, BYTES_LIT("h2c"));
	return 0;
}

/* Returns: 0, more bytes are needed; 1, there is a request; a negative error. */
static int http1_take_head(struct http_connection *c)
{
	struct http1 *h = &c->http1;
	struct request_head head;
	struct head_error error;

	size_t size = head_find_end(c->in.data, c->in.size, &h->searched);
	if (size == SIZE_MAX)
		return http1_refuse(c, 400, "a line of the request does not end with CR LF");
	if (size > EXCHANGE_HEAD_MAX || (!size && c->in.size >= EXCHANGE_HEAD_MAX))
		return http1_refuse(c, 431, "the request's head is larger than 64 KiB");
	if (!size)
		return 0;
	h->searched = 0;
	if (!head_parse(c->in.data, size, &head, NULL, &error))
		return http1_refuse(c, error.status, error.why);
	int r = http1_begin_request(c, &head, size);
	if (r < 0)
		return r;
	buf_consume(&c->in, size);
	c->began_ns = 0;
	return 1;
}

/* Moves bytes of c->in to the body of the stream, as far as it has room. */
static int http1_move_body(struct http_connection *c)
{
	struct http1 *h = &c->http1;
	struct stream *s = h->stream;
	size_t room = EXCHANGE_ROOM - s->body.size, data = 0, size;
	size_t used = c->in.size < room ? c->in.size : room;

	if (h->tunnel) {
		size = used;
	} else if (h->body_chunked) {
		used = chunks_take(&h->chunks, c->in.data, used, &data, &size);
		if (used == SIZE_MAX) {
			if (s->state != STREAM_ASKED && s->on_body)
				return err_say(-EPROTO, "a chunk is malformed");
			if (s->state != STREAM_ASKED) { /* the answer is on its way */
				h->close = s->body_ended = true;
				h->body_open = false;
				buf_reset(&c->in);
				return 0;
			}
			if (s->gone)
				s->gone(s->gone_context);
			s->gone = NULL;
			s->on_body = NULL;
			/* The texts were the answerer's. */
			*s->x.labels = (struct exchange_labels){0};
			h->body_open = false;
			return http1_refuse(c, 400, "a chunk of the request's body is malformed");
		}
		h->body_open = !chunks_ended(&h->chunks);
	} else {
		used = size = used < h->body_left ? used : (size_t)h->body_left;
		h->body_left -= size;
		h->body_open = h->body_left != 0;
	}
	buf_put(&s->body, c->in.data + data, size);
	buf_consume(&c->in, used);
	s->body_ended = !h->body_open;
	return buf_error(&s->body);
}

/* Passes the body on while the answer is made. */
static int http1_pass_body(struct http_connection *c)
{
	struct http1 *h = &c->http1;
	int r = 0;

	while (r == 0 && h->body_open && c->in.size && h->stream->body.size < EXCHANGE_ROOM) {
		r = http1_move_body(c);
		if (r == 0)
			stream_body_came(h->stream);
	}
	return r;
}

/* Leaves a request without an end. */
static void http1_check_end(struct http_connection *c)
{
	struct http1 *h = &c->http1;

	if (!c->read_ended)
		return;
	if (h->state == HTTP1_ANSWER && h->body_open && h->tunnel) {
		if (c->in.size)
			return; /* the tunnel has not taken it yet */
		h->body_open = false;
		h->stream->body_ended = true;
		stream_body_came(h->stream);
		return;
	}
	if (h->state > HTTP1_ANSWER || (h->state == HTTP1_ANSWER && (!h->body_open || c->in.size)))
		return;
	if (h->stream)
		stream_end(h->stream, EXCHANGE_CLOSED);
	h->stream = NULL;
	h->body_open = false;
	h->state = HTTP1_LAST;
}

/* Reads a request from c->in, as far as it has come. */
static int http1_advance(struct http_connection *c)
{
	struct http1 *h = &c->http1;
	int r = 0;

	if (h->state == HTTP1_HEAD) {
		if (c->in.size == 0)
			c->began_ns = 0;
		else if (!c->began_ns)
			c->began_ns = c->worker->now_ns;
		r = c->in.size ? http1_take_head(c) : 0;
		if (r > 0)
			stream_ask(h->stream);
	}
	if (r >= 0 && h->state == HTTP1_ANSWER)
		r = http1_pass_body(c);
	http1_check_end(c);
	return r < 0 ? r : 0;
}

static int http1_input(struct http_connection *c, const uint8_t *bytes, size_t size)
{
	buf_put(&c->in, bytes, size);
	int r = buf_error(&c->in);
	if (r < 0)
		return r;
	return http1_advance(c);
}

static bool http1_hungry(const struct http_connection *c)
{
	return c->http1.state != HTTP1_LAST && c->in.size < HTTP1_IN_MAX;
}

/* ---- answers ------------------------------------------------------------ */

static void http1_write_head(struct http_connection *c, struct buf *out)
{
	struct http1 *h = &c->http1;
	struct stream *s = h->stream;
	bool no_length = s->status == 204 || s->status == 304;

	h->answer_bodiless = s->x.head || no_length;
	h->head_written = true;
	if (s->status == 101) {
		h->tunnel = h->body_open = h->close = true;
		connection_ready(c); /* bytes in c->in belong to the tunnel */
		s->body_ended = false;
		buf_str(out, "HTTP/1.1 101 Switching Protocols\r\n");
		buf_bytes_put(out, buf_bytes(&s->answer));
		buf_str(out, "\r\n");
		buf_release(&s->answer);
		return;
	}
	buf_printf(out, "HTTP/1.1 %d %s\r\n", s->status, stream_phrase(s->status));
	buf_bytes_put(out, buf_bytes(&s->answer));
	if (s->source.size >= 0 && !no_length) {
		buf_printf(out, "content-length: %lld\r\n", (long long)s->source.size);
	} else if (!h->answer_bodiless) {
		h->answer_chunked = s->x.version == EXCHANGE_HTTP_1_1;
		h->close |= !h->answer_chunked; /* HTTP/1.0: the connection's end is the body's */
		if (h->answer_chunked)
			buf_str(out, "transfer-encoding: chunked\r\n");
	}
	if (h->close)
		buf_str(out, "connection: close\r\n");
	else if (s->x.version == EXCHANGE_HTTP_1_0) /* a client ends it by default */
		buf_str(out, "connection: keep-alive\r\n");
	buf_str(out, "\r\n");
	buf_release(&s->answer);
}

static int http1_end_answer(struct http_connection *c, enum exchange_end why)
{
	struct http1 *h = &c->http1;

	stream_end(h->stream, why);
	h->stream = NULL;
	h->close |= h->body_open;
	h->body_open = false;
	h->state = h->close || why != EXCHANGE_DONE ? HTTP1_LAST : HTTP1_HEAD;
	return h->state == HTTP1_HEAD ? http1_advance(c) : 0;
}

/* Pulls once. Returns: 1, there may be more now; 0, nothing now. */
static int http1_write_body(struct http_connection *c, struct buf *out)
{
	struct http1 *h = &c->http1;
	size_t head = h->answer_chunked ? 6 : 0, tail = h->answer_chunked ? 2 : 0;
	size_t start = out->size, room = EXCHANGE_ROOM - start - head - tail;
	char digits[24];

	uint8_t *p = buf_grow(out, head + room + tail);
	if (!p)
		return buf_error(out);
	ssize_t n =
		stream_pull(h->stream, p + head, room < HTTP1_CHUNK_MAX ? room : HTTP1_CHUNK_MAX);
	buf_truncate(out, start);
	if (n > 0) {
		(void)snprintf(digits, sizeof(digits), "%04zx\r\n", (size_t)n);
		memcpy(p, digits, head);
		memcpy(p + head + n, "\r\n", tail);
		out->size = start + head + (size_t)n + tail;
		return 1;
	}
	if (n == -EAGAIN)
		return 0;
	if (n == 0 && h->answer_chunked)
		buf_str(out, "0\r\n\r\n");
	/* A body shorter than its content-length is cut, as one with an error. */
	bool cut = n < 0 || (h->stream->source.size >= 0 &&
				    h->stream->sent != (uint64_t)h->stream->source.size);
	int r = http1_end_answer(c, cut ? EXCHANGE_CUT : EXCHANGE_DONE);
	return r < 0 ? r : 1;
}

static int http1_output(struct http_connection *c, struct buf *out)
{
	struct http1 *h = &c->http1;
	int r = 1;

	/* A client ending its side of a watch has left. Other answers it may still read. */
	if (h->state == HTTP1_ANSWER && c->read_ended && h->stream->x.long_running &&
		h->stream->state == STREAM_SOURCE && !h->tunnel)
		return http1_end_answer(c, EXCHANGE_CLOSED);
	if (h->state == HTTP1_ANSWER && h->body_open) {
		r = http1_pass_body(c);
		if (r < 0)
			return r;
		http1_check_end(c);
		r = 1;
	}
	if (h->continue_owed && h->state == HTTP1_ANSWER && h->stream->on_body &&
		h->stream->state == STREAM_ASKED) {
		buf_str(out, "HTTP/1.1 100 Continue\r\n\r\n");
		h->continue_owed = false;
	}
	while (r > 0 && out->size + 4096 + 8 <= EXCHANGE_ROOM && h->state == HTTP1_ANSWER &&
		h->stream->state >= STREAM_WHOLE) {
		if (buf_error(&h->stream->answer) < 0 || buf_error(&h->stream->whole) < 0)
			return err_set(-ENOMEM, "making an answer");
		if (!h->head_written) {
			http1_write_head(c, out);
		} else if (h->answer_bodiless) {
			r = http1_end_answer(c, EXCHANGE_DONE);
			r = r < 0 ? r : 1;
		} else if (h->stream->waiting) {
			break;
		} else {
			r = http1_write_body(c, out);
		}
	}
	return r < 0 ? r : buf_error(out);
}

static bool http1_over(const struct http_connection *c)
{
	return c->http1.state == HTTP1_LAST;
}

static void http1_drain(struct http_connection *c)
{
	c->http1.close = true;
	if (c->http1.state == HTTP1_HEAD)
		c->http1.state = HTTP1_LAST;
}

static void http1_release(struct http_connection *c)
{
	c->http1.stream = NULL;
}

const struct protocol http1_protocol = {
	.name = "http1",
	.input = http1_input,
	.output = http1_output,
	.hungry = http1_hungry,
	.over = http1_over,
	.hear_end = http1_check_end,
	.drain = http1_drain,
	.release = http1_release,
};
