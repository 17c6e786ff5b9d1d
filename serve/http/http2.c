/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/2 on one connection, by libnghttp2, in this file only. The library keeps the protocol's
 * state, and asks for a body's bytes (http2_read_body) when the client's windows have room.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "common/err.h"
#include "serve/http/connection.h"

#define HTTP2_STREAMS_MAX 250
#define HTTP2_FIELDS_MAX  HEAD_FIELDS_MAX
/* bytes of requests' bodies in memory */
#define HTTP2_BODIES_WINDOW (256 << 10)
/* bytes of heads for each connection at any time */
#define HTTP2_HEADS_OWN ((size_t)256 << 10)
/* of a worker's connections; beyond it each has only its own */
#define HTTP2_HEADS_ALL    ((size_t)32 << 20)
#define HTTP2_FRAME_ROOM   4096  /* of output is free before a frame is asked for */
#define HTTP2_FRAME_MOST   16384 /* bytes of a DATA frame */
#define HTTP2_LARGE_WINDOW (1 << 20)
/* of one with small windows */
#define HTTP2_PAUSE_NS       UINT64_C(1000000)
#define HTTP2_LARGE_PAUSE_NS (5 * HTTP2_PAUSE_NS)

struct http2 {
	nghttp2_session *session;
	bool draining;
	bool resume_owed;   /* by a stream of the connection */
	bool squeezed;      /* a frame was cut short by a window */
	unsigned late_room; /* late heads, no error */
	/* The request being read; HEADERS frames of streams don't interleave. */
	struct buf text;
	struct {
		size_t name, name_size, value, value_size;
	} fields[HTTP2_FIELDS_MAX];
	size_t n_fields, n_pseudo; /* pseudo-headers, with a colon */
	bool refused;
};

/* ---- requests ----------------------------------------------------------------------------------
 */

/* Ends the connection if a client reuses an ended stream; the library would ignore it. A head on
 * its way while this side reset the stream is no error. */
static int http2_on_begin_frame(
	nghttp2_session *session, const nghttp2_frame_hd *hd, void *user_data)
{
	struct http_connection *c = user_data;

	if (hd->type != NGHTTP2_HEADERS || hd->stream_id % 2 == 0 ||
		hd->stream_id > nghttp2_session_get_last_proc_stream_id(session) ||
		nghttp2_session_find_stream(session, hd->stream_id))
		return 0;
	if (c->http2->late_room) {
		c->http2->late_room--;
		return 0;
	}
	return nghttp2_session_terminate_session(session, NGHTTP2_STREAM_CLOSED) ==
			       NGHTTP2_ERR_NOMEM
		       ? NGHTTP2_ERR_CALLBACK_FAILURE
		       : 0;
}

static int http2_on_send(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
	struct http_connection *c = user_data;

	(void)session;
	if (frame->hd.type == NGHTTP2_RST_STREAM)
		c->http2->late_room++;
	return 0;
}

static int http2_on_begin_headers(
	nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
	struct http_connection *c = user_data;
	struct http2 *h = c->http2;

	(void)session;
	(void)frame;
	buf_reset(&h->text);
	h->n_fields = h->n_pseudo = 0;
	h->refused = false;
	return 0;
}

static int http2_on_header(nghttp2_session *session, const nghttp2_frame *frame,
	const uint8_t *name, size_t name_size, const uint8_t *value, size_t value_size,
	uint8_t flags, void *user_data)
{
	struct http_connection *c = user_data;
	struct http2 *h = c->http2;

	(void)session;
	(void)flags;
	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0; /* trailers */
	if (h->n_fields == HTTP2_FIELDS_MAX ||
		h->text.size + name_size + value_size > EXCHANGE_HEAD_MAX) {
		h->refused = true;
		return 0;
	}
	h->fields[h->n_fields].name = h->text.size;
	h->fields[h->n_fields].name_size = name_size;
	buf_put(&h->text, name, name_size);
	h->fields[h->n_fields].value = h->text.size;
	h->fields[h->n_fields].value_size = value_size;
	buf_put(&h->text, value, value_size);
	h->n_fields++;
	h->n_pseudo += name_size && *name == ':';
	return 0;
}

/* Puts a pseudo-header into its place. Returns whether NAME is one. */
static bool http2_take_pseudo(struct stream *s, struct bytes name, struct bytes value)
{
	if (!name.size || *(const char *)name.data != ':')
		return bytes_equal(name, BYTES_LIT("host")) && s->x.host.size;
	if (bytes_equal(name, BYTES_LIT(":method"))) {
		s->x.method = value;
	} else if (bytes_equal(name, BYTES_LIT(":authority"))) {
		s->x.host = value;
	} else if (bytes_equal(name, BYTES_LIT(":path"))) {
		const char *path = value.data;
		const char *mark = memchr(path, '?', value.size);

		s->x.path = BYTES(path, mark ? (size_t)(mark - path) : value.size);
		s->x.query =
			mark ? BYTES(mark + 1, value.size - (size_t)(mark - path) - 1) : BYTES_NONE;
	}
	return true;
}

static void http2_refuse(struct stream *s, int status, const char *reason, const char *why)
{
	s->state = STREAM_ASKED;
	exchange_refuse(&s->x, status, reason, why, 0);
}

static int http2_begin_request(struct http_connection *c, const nghttp2_frame *frame)
{
	struct http2 *h = c->http2;
	int32_t id = frame->hd.stream_id;
	struct stream *s = NULL;

	/* A head is kept as long as its stream, and HPACK makes 64 KiB of some 20 bytes. Clients
	 * ask again later, or elsewhere. */
	if (c->heads + h->text.size > HTTP2_HEADS_OWN &&
		c->worker->heads + h->text.size > HTTP2_HEADS_ALL)
		return nghttp2_submit_rst_stream(
			h->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
	if (buf_error(&h->text) == 0)
		s = stream_new(c, buf_bytes(&h->text), h->n_fields - h->n_pseudo);

	if (!s)
		return nghttp2_submit_rst_stream(
			h->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_INTERNAL_ERROR);
	s->id = id;
	s->x.version = EXCHANGE_HTTP_2;
	for (size_t i = 0; i < h->n_fields; i++) {
		struct bytes name = BYTES(s->text + h->fields[i].name, h->fields[i].name_size);
		struct bytes value = BYTES(s->text + h->fields[i].value, h->fields[i].value_size);

		if (http2_take_pseudo(s, name, value))
			continue;
		if (bytes_equal(name, BYTES_LIT("host")))
			s->x.host = value;
		else
			s->headers[s->x.n_headers++] = (struct exchange_header){name, value};
	}
	s->body_ended = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
	s->x.has_body = !s->body_ended;
	int r = nghttp2_session_set_stream_user_data(h->session, id, s);
	if (r) {
		stream_end(s, EXCHANGE_CLOSED);
		return r;
	}
	c->began_ns = 0;
	if (h->refused)
		http2_refuse(s, 431, "RequestHeaderFieldsTooLarge",
			"the request's head is larger than 64 KiB");
	else if (!s->x.path.size || *(const char *)s->x.path.data != '/')
		http2_refuse(
			s, 400, "BadRequest", "the request's target does not begin with a slash");
	return 0;
}

static int http2_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
	struct http_connection *c = user_data;

	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
		int r = http2_begin_request(c, frame);
		if (r)
			return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
		return 0;
	struct stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	bool end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

	if (s && s->state == STREAM_REQUEST) { /* it is complete */
		s->x.began_ns = c->worker->now_ns;
		stream_ask(s);
	}
	if (s && end && !s->body_ended) {
		s->body_ended = true;
		stream_body_came(s);
	}
	return 0;
}

static int http2_on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
	size_t size, void *user_data)
{
	struct http_connection *c = user_data;
	struct stream *s = nghttp2_session_get_stream_user_data(session, id);

	(void)flags;
	if (s && s->state < STREAM_BEGUN)
		s->progress_ns = c->worker->now_ns;
	if (s) {
		/* The client's windows limit it. */
		buf_put(&s->body, data, size);
		if (buf_error(&s->body) < 0)
			return NGHTTP2_ERR_CALLBACK_FAILURE;
		stream_body_came(s);
	} else {
		(void)nghttp2_session_consume_connection(session, size);
	}
	return 0;
}

/* Opens the client's windows by the bytes taken of a body. */
static void http2_body_taken(struct http_connection *c, struct stream *s, size_t size)
{
	if (nghttp2_session_consume(c->http2->session, s->id, size) == NGHTTP2_ERR_NOMEM)
		c->dead = true;
}

/* The stream ends: the rest of its body no longer counts against the connection. */
static void http2_forget_body(struct http_connection *c, const struct stream *s)
{
	if (s->body.size)
		(void)nghttp2_session_consume_connection(c->http2->session, s->body.size);
}

static int http2_on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user_data)
{
	struct stream *s = nghttp2_session_get_stream_user_data(session, id);

	if (!s)
		return 0;
	http2_forget_body(user_data, s);
	(void)nghttp2_session_set_stream_user_data(session, id, NULL);
	/* A complete body has taken its stream away already. */
	stream_end(s, code == NGHTTP2_NO_ERROR ? EXCHANGE_DONE : EXCHANGE_CLOSED);
	return 0;
}

/* ---- answers -----------------------------------------------------------------------------------
 */

static ssize_t http2_read_body(nghttp2_session *session, int32_t id, uint8_t *out, size_t room,
	uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
	/* NULL after the stream was cut, while its RST_STREAM is on its way. */
	struct stream *s = nghttp2_session_get_stream_user_data(session, id);

	(void)source;
	(void)user_data;
	if (!s)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	ssize_t n = stream_pull(s, out, room);
	s->connection->http2->squeezed |= room < HTTP2_FRAME_MOST && n == (ssize_t)room;
	if (n > 0)
		return n;
	if (n == -EAGAIN) {
		/* Resuming works only after this call; http2_output() does it. */
		s->resume_owed = !s->waiting;
		s->connection->http2->resume_owed |= s->resume_owed;
		return NGHTTP2_ERR_DEFERRED;
	}
	bool cut = n < 0 || (s->source.size >= 0 && s->sent != (uint64_t)s->source.size);
	if (cut)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* RST_STREAM */
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	return 0;
}

/* Splits the header lines of S into FIELDS. Returns their number. */
static size_t http2_split_lines(struct stream *s, nghttp2_nv *fields, size_t max)
{
	uint8_t *p = s->answer.data, *end = p + s->answer.size;
	size_t n = 0;

	while (p < end && n < max) {
		uint8_t *colon = memchr(p, ':', (size_t)(end - p));
		uint8_t *cr = colon ? memchr(colon, '\r', (size_t)(end - colon)) : NULL;

		if (!cr)
			break;
		fields[n++] = (nghttp2_nv){.name = p,
			.namelen = (size_t)(colon - p),
			.value = colon + 2,
			.valuelen = (size_t)(cr - colon - 2)};
		p = cr + 2;
	}
	return n;
}

/* Gives the answer's head to the library. */
static int http2_submit(struct http_connection *c, struct stream *s)
{
	nghttp2_nv fields[HTTP2_FIELDS_MAX + 2]; /* :status, content-length */
	nghttp2_data_provider provider = {.read_callback = http2_read_body};
	char status[8], length[24];
	bool bodiless = s->x.head || s->status == 204 || s->status == 304;
	size_t n = 1;

	s->submitted = true;
	if (buf_error(&s->answer) < 0 || buf_error(&s->whole) < 0)
		return nghttp2_submit_rst_stream(
			c->http2->session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_INTERNAL_ERROR);
	(void)snprintf(status, sizeof(status), "%d", s->status);
	fields[0] = (nghttp2_nv){.name = (uint8_t *)":status",
		.namelen = 7,
		.value = (uint8_t *)status,
		.valuelen = strlen(status)};
	n += http2_split_lines(s, fields + 1, HTTP2_FIELDS_MAX);
	if (s->source.size >= 0 && s->status != 204 && s->status != 304) {
		(void)snprintf(length, sizeof(length), "%lld", (long long)s->source.size);
		fields[n++] = (nghttp2_nv){.name = (uint8_t *)"content-length",
			.namelen = 14,
			.value = (uint8_t *)length,
			.valuelen = strlen(length)};
	}
	int r = nghttp2_submit_response(
		c->http2->session, s->id, fields, n, bodiless ? NULL : &provider);
	buf_release(&s->answer);
	return r;
}

static void http2_wake(struct http_connection *c, struct stream *s)
{
	int r = s->submitted ? nghttp2_session_resume_data(c->http2->session, s->id)
			     : http2_submit(c, s);

	/* A running or closed stream needs nothing. */
	if (r == NGHTTP2_ERR_NOMEM)
		c->dead = true;
}

static int http2_output(struct http_connection *c, struct buf *out)
{
	const uint8_t *frame;

	/* Resume the streams woken during the library's reading. */
	for (struct stream *s = c->http2->resume_owed ? c->streams : NULL; s; s = s->next) {
		if (s->resume_owed)
			http2_wake(c, s);
		s->resume_owed = false;
	}
	c->http2->resume_owed = false;
	while (out->size + HTTP2_FRAME_ROOM <= EXCHANGE_ROOM) {
		ssize_t n = nghttp2_session_mem_send(c->http2->session, &frame);

		if (n < 0)
			return err_say(-EPROTO, "HTTP/2: %s", nghttp2_strerror((int)n));
		if (n == 0)
			break;
		buf_put(out, frame, (size_t)n);
	}
	/* Go's client opens a window by 4 KiB as it reads. A frame for each of these would cost
	 * more than making its bytes, so they are gathered for a moment. */
	if (c->http2->squeezed && !c->draining) {
		uint32_t window = nghttp2_session_get_remote_settings(
			c->http2->session, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE);

		connection_pause(
			c, window < HTTP2_LARGE_WINDOW ? HTTP2_PAUSE_NS : HTTP2_LARGE_PAUSE_NS);
	}
	c->http2->squeezed = false;
	return buf_error(out);
}

/* ---- the connection ----------------------------------------------------- */

static int http2_input(struct http_connection *c, const uint8_t *bytes, size_t size)
{
	ssize_t n = nghttp2_session_mem_recv(c->http2->session, bytes, size);

	if (n < 0)
		return err_say(-EPROTO, "HTTP/2: %s", nghttp2_strerror((int)n));
	return 0;
}

static bool http2_hungry(const struct http_connection *c)
{
	/* A client without reading gets nothing read: its SETTINGS and PINGs make output. */
	return c->out.size == c->out_sent && nghttp2_session_want_read(c->http2->session);
}

static bool http2_over(const struct http_connection *c)
{
	nghttp2_session *session = c->http2->session;

	return (!nghttp2_session_want_read(session) && !nghttp2_session_want_write(session)) ||
	       (c->http2->draining && !c->streams && !nghttp2_session_want_write(session));
}

static void http2_hear_end(struct http_connection *c)
{
	c->dead = true;
}

static void http2_drain(struct http_connection *c)
{
	int32_t last = nghttp2_session_get_last_proc_stream_id(c->http2->session);

	if (c->http2->draining)
		return;
	c->http2->draining = true;
	if (nghttp2_submit_goaway(
		    c->http2->session, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, NULL, 0) < 0)
		c->dead = true;
}

static void http2_cut_slow(struct http_connection *c, struct stream *s)
{
	http2_forget_body(c, s);
	(void)nghttp2_session_set_stream_user_data(c->http2->session, s->id, NULL);
	if (nghttp2_submit_rst_stream(c->http2->session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_CANCEL) <
		0)
		c->dead = true;
	stream_end(s, EXCHANGE_SLOW);
}

static void http2_release(struct http_connection *c)
{
	nghttp2_session_del(c->http2->session);
	buf_release(&c->http2->text);
	free(c->http2);
	c->http2 = NULL;
}

static nghttp2_session *http2_new_session(struct http_connection *c)
{
	nghttp2_session_callbacks *callbacks = NULL;
	nghttp2_session *session = NULL;
	nghttp2_option *option = NULL;

	if (nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0) {
		nghttp2_session_callbacks_set_on_begin_frame_callback(
			callbacks, http2_on_begin_frame);
		nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, http2_on_send);
		nghttp2_session_callbacks_set_on_begin_headers_callback(
			callbacks, http2_on_begin_headers);
		nghttp2_session_callbacks_set_on_header_callback(callbacks, http2_on_header);
		nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, http2_on_frame);
		nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, http2_on_data);
		nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, http2_on_close);
		/* Closed streams are kept for priorities only, and nothing here uses them. */
		nghttp2_option_set_no_closed_streams(option, 1);
		nghttp2_option_set_no_auto_window_update(option, 1);
		if (nghttp2_session_server_new2(&session, callbacks, c, option) != 0)
			session = NULL;
	}
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_option_del(option);
	return session;
}

int http2_start(struct http_connection *c)
{
	static const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, HTTP2_STREAMS_MAX},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, EXCHANGE_HEAD_MAX},
	};

	c->http2 = calloc(1, sizeof(*c->http2));
	if (!c->http2)
		return err_set(-ENOMEM, "beginning HTTP/2");
	c->http2->session = http2_new_session(c);
	if (!c->http2->session ||
		nghttp2_submit_settings(c->http2->session, NGHTTP2_FLAG_NONE, settings, 2) ||
		nghttp2_session_set_local_window_size(
			c->http2->session, NGHTTP2_FLAG_NONE, 0, HTTP2_BODIES_WINDOW)) {
		nghttp2_session_del(c->http2->session);
		free(c->http2);
		c->http2 = NULL;
		return err_set(-ENOMEM, "beginning HTTP/2");
	}
	c->began_ns = c->worker->now_ns;
	return 0;
}

const struct protocol http2_protocol = {
	.name = "http2",
	.input = http2_input,
	.output = http2_output,
	.hungry = http2_hungry,
	.over = http2_over,
	.wake = http2_wake,
	.body_taken = http2_body_taken,
	.hear_end = http2_hear_end,
	.drain = http2_drain,
	.cut_slow = http2_cut_slow,
	.release = http2_release,
};
