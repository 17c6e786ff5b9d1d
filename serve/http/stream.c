/* SPDX-License-Identifier: Apache-2.0 */
/* One exchange of a connection, from either protocol: the promises of exchange.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "common/value/json.h"
#include "serve/chain.h"
#include "serve/http/connection.h"
#include "serve/metrics.h"

#define STREAM_MAGIC 0x7374726du

static struct stream *stream_of(struct exchange *x)
{
	CHECK_OBJ(x, STREAM_MAGIC);
	return (struct stream *)x;
}

static void stream_wake(struct stream *s)
{
	if (s->connection->protocol->wake)
		s->connection->protocol->wake(s->connection, s);
	connection_ready(s->connection);
}

/* ---- begin and end ------------------------------------------------------ */

struct stream *stream_new(struct http_connection *c, struct bytes text, size_t n_headers)
{
	size_t head = sizeof(struct stream) + n_headers * sizeof(struct exchange_header);
	struct stream *s = calloc(1, head + text.size);

	if (!s)
		return NULL;
	s->x.labels = calloc(1, sizeof(*s->x.labels));
	if (!s->x.labels) {
		free(s);
		return NULL;
	}
	s->text = (uint8_t *)s + head;
	if (text.size)
		memcpy(s->text, text.data, text.size);
	s->connection = c;
	s->x.magic = STREAM_MAGIC;
	s->x.worker = c->worker;
	s->x.peer = &c->peer;
	s->x.headers = s->headers;
	s->x.began_ns = s->progress_ns = c->worker->now_ns;
	s->source.size = -1;
	CHAIN_ADD(&c->streams, s);
	s->text_size = text.size;
	c->heads += text.size;
	c->worker->heads += text.size;
	return s;
}

/* Returns the metric cell of the stream's labels; CODE NULL: without it. */
static struct metric_cell *stream_cell(const struct stream *s, enum metric metric, const char *code)
{
	const struct exchange_labels *l = s->x.labels;
	const char *values[] = {
		l->verb, l->group, l->version, l->resource, l->subresource, l->scope, code};

	return metrics_cell(s->connection->worker->shared->metrics, metric, values);
}

static void stream_report(struct stream *s, enum exchange_end why)
{
	static const char *const ends[] = {[EXCHANGE_DONE] = "done",
		[EXCHANGE_CUT] = "cut",
		[EXCHANGE_CLOSED] = "closed",
		[EXCHANGE_SLOW] = "slow",
		[EXCHANGE_STOPPED] = "stopped"};
	uint64_t took_ns = proc_monotonic_ns() - s->x.began_ns;
	char method[16], path[512], agent[128];

	if (s->requests)
		metric_add(s->requests, 1);
	if (s->counted)
		metric_sub(s->running, 1);
	else if (s->seconds)
		metric_observe_ns(s->seconds, took_ns);
	struct bytes from = exchange_header(&s->x, "user-agent");
	(void)snprintf(method, sizeof(method), "%.*s", BYTES_ARG(s->x.method));
	(void)snprintf(path, sizeof(path), "%.*s%s%.*s", BYTES_ARG(s->x.path),
		s->x.query.size ? "?" : "", BYTES_ARG(s->x.query));
	(void)snprintf(agent, sizeof(agent), "%.*s", BYTES_ARG(from));
	LOG(request_served, .method = method, .path = path, .status = (uint64_t)s->status,
		.source = s->connection->peer.address, .user = s->user ? s->user : "",
		.agent = agent, .bytes = s->sent, .seconds = took_ns, .end = ends[why]);
}

void stream_end(struct stream *s, enum exchange_end why)
{
	struct http_connection *c = s->connection;
	bool asked = s->state >= STREAM_ASKED;

	CHECK_OBJ(&s->x, STREAM_MAGIC);
	if (s->state == STREAM_SOURCE)
		s->source.end(s->source.context, why);
	else if (s->state == STREAM_ASKED && s->gone)
		s->gone(s->gone_context);
	if (asked)
		stream_report(s, why);
	CHAIN_REMOVE(s);
	c->heads -= s->text_size;
	c->worker->heads -= s->text_size;
	buf_release(&s->answer);
	c->worker->held -= s->whole.size;
	buf_release(&s->whole);
	buf_release(&s->body);
	free(s->user);
	free(s->x.labels);
	s->x.magic = 0;
	free(s);
}

void stream_ask(struct stream *s)
{
	s->state = STREAM_ASKED;
	s->x.head = bytes_equal(s->x.method, BYTES_LIT("HEAD"));
	s->connection->worker->shared->ask(s->connection->worker, s->connection->listener, &s->x);
}

void stream_finish(struct stream *s)
{
	if (s->state == STREAM_SOURCE && s->source.finish && !s->finish_asked) {
		s->finish_asked = true;
		s->source.finish(s->source.context);
		exchange_wake(&s->x);
	}
}

/* ---- the request's body ------------------------------------------------- */

struct bytes exchange_body(const struct exchange *x, bool *ret_end)
{
	const struct stream *s = (const struct stream *)x;

	CHECK_OBJ(x, STREAM_MAGIC);
	*ret_end = s->body_ended;
	return buf_bytes(&s->body);
}

void exchange_body_take(struct exchange *x, size_t size)
{
	struct stream *s = stream_of(x);

	buf_consume(&s->body, size);
	if (!s->body.size)
		buf_trim(&s->body, 0);
	if (s->connection->protocol->body_taken)
		s->connection->protocol->body_taken(s->connection, s, size);
	connection_ready(s->connection);
}

void exchange_on_body(struct exchange *x, void (*fn)(void *context), void *context)
{
	struct stream *s = stream_of(x);

	s->on_body = fn;
	s->body_context = context;
	if (fn)
		connection_ready(s->connection); /* a client may wait for 100 Continue */
}

void stream_body_came(struct stream *s)
{
	if (s->on_body)
		s->on_body(s->body_context);
	else if (s->state >= STREAM_BEGUN && s->body.size)
		exchange_body_take(&s->x, s->body.size);
}

/* ---- the body ----------------------------------------------------------- */

ssize_t stream_pull(struct stream *s, uint8_t *out, size_t room)
{
	size_t left = s->whole.size - s->whole_sent;
	ssize_t n;

	s->progress_ns = s->connection->worker->now_ns;
	if (s->state == STREAM_WHOLE) {
		n = (ssize_t)(left < room ? left : room);
		if (n)
			memcpy(out, s->whole.data + s->whole_sent, (size_t)n);
		s->whole_sent += (size_t)n;
	} else {
		s->woken = false;
		n = s->source.read(s->source.context, out, room);
		REQUIRE(n <= (ssize_t)room);
		s->waiting = n == -EAGAIN && !s->woken;
		/* More may be there already: the next turn reads again. */
		if (n == -EAGAIN && s->woken)
			connection_ready(s->connection);
	}
	if (n > 0)
		s->sent += (uint64_t)n;
	return n;
}

/* ---- exchange.h --------------------------------------------------------- */

struct bytes exchange_header(const struct exchange *x, const char *name)
{
	struct bytes wanted = bytes_str(name);

	for (size_t i = 0; i < x->n_headers; i++)
		if (bytes_equal(x->headers[i].name, wanted))
			return x->headers[i].value;
	return BYTES_NONE;
}

/* Appends a header. Its value comes from an object's name, a message or the request at times. */
static void stream_put_header(struct stream *s, struct bytes name, struct bytes value)
{
	const uint8_t *p = value.data;

	buf_bytes_put(&s->answer, name);
	buf_str(&s->answer, ": ");
	for (size_t i = 0; i < value.size; i++)
		buf_byte(&s->answer, p[i] < 0x20 || p[i] == 0x7f ? ' ' : p[i]);
	buf_str(&s->answer, "\r\n");
}

void exchange_begin(struct exchange *x, int status, const struct exchange_header *headers, size_t n)
{
	struct stream *s = stream_of(x);
	struct http_connection *c = s->connection;
	bool cache_control = true;
	char code[8], date[32];
	time_t seconds = (time_t)(proc_realtime_ns() / 1000000000u);
	struct tm tm = {0};

	REQUIRE(s->state == STREAM_ASKED && (status == 101 || status >= 200) && status <= 599);
	s->state = STREAM_BEGUN;
	s->status = status;
	(void)snprintf(code, sizeof(code), "%d", status);
	/* Without memory the log lacks it. */
	s->user = x->labels->user && *x->labels->user ? strdup(x->labels->user) : NULL;
	s->requests = stream_cell(s, METRIC_REQUESTS, code);
	s->seconds = stream_cell(s, METRIC_REQUEST_SECONDS, NULL);
	s->running = x->long_running ? stream_cell(s, METRIC_LONG_RUNNING, NULL) : NULL;
	free(x->labels);
	x->labels = NULL;
	for (size_t i = 0; i < n; i++) {
		stream_put_header(s, headers[i].name, headers[i].value);
		cache_control &= !bytes_equal(headers[i].name, BYTES_LIT("cache-control"));
	}
	if (!x->relayed && cache_control)
		buf_str(&s->answer, "cache-control: no-cache, private\r\n");
	if (!x->relayed &&
		strftime(date, sizeof(date), "%a, %d %b %Y %T GMT", gmtime_r(&seconds, &tm)))
		buf_printf(&s->answer, "date: %s\r\n", date);
	/* A certificate of a replaced CA: the client may have a new one by now, or a chain for a
	 * new handshake. */
	if (status == 401 && c->peer.certificate && !c->draining &&
		!tls_session_is_trusted(c->peer.certificate))
		connection_drain(c, c->finish_ns);
	/* The bytes that came before: a client may fill its window before it reads. */
	if (!s->on_body && s->body.size && status != 101)
		exchange_body_take(x, s->body.size);
}

void exchange_send(struct exchange *x, struct bytes body)
{
	struct stream *s = stream_of(x);

	REQUIRE(s->state == STREAM_BEGUN);
	buf_bytes_put(&s->whole, body);
	s->connection->worker->held += s->whole.size;
	s->state = STREAM_WHOLE;
	s->source.size = (int64_t)body.size;
	stream_wake(s);
}

void exchange_stream(struct exchange *x, const struct exchange_source *source)
{
	struct stream *s = stream_of(x);

	REQUIRE(s->state == STREAM_BEGUN && source->read && source->end);
	s->source = *source;
	s->state = STREAM_SOURCE;
	if (s->running) {
		s->counted = true;
		metric_add(s->running, 1);
	}
	stream_wake(s);
}

void exchange_wake(struct exchange *x)
{
	struct stream *s = stream_of(x);

	s->woken = true;
	if (!s->waiting)
		return;
	s->waiting = false;
	s->progress_ns = s->connection->worker->now_ns;
	stream_wake(s);
}

void exchange_park(struct exchange *x, void (*gone)(void *context), void *context)
{
	struct stream *s = stream_of(x);

	REQUIRE(s->state == STREAM_ASKED);
	s->gone = gone;
	s->gone_context = context;
}

void exchange_refuse(struct exchange *x, int status, const char *reason, const char *message,
	unsigned retry_after)
{
	CLEANUP(buf_release) struct buf body = BUF_INIT;
	struct exchange_header headers[2] = {
		{BYTES_LIT("content-type"), BYTES_LIT("application/json")}};
	char seconds[16];

	buf_str(&body, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"
		       "\"Failure\",\"message\":");
	json_write_string(bytes_str(message), &body);
	buf_str(&body, ",\"reason\":");
	json_write_string(bytes_str(reason), &body);
	if (retry_after)
		buf_printf(&body, ",\"details\":{\"retryAfterSeconds\":%u}", retry_after);
	buf_printf(&body, ",\"code\":%d}\n", status);
	(void)snprintf(seconds, sizeof(seconds), "%u", retry_after);
	headers[1] = (struct exchange_header){BYTES_LIT("retry-after"), bytes_str(seconds)};
	exchange_begin(x, status, headers, retry_after ? 2 : 1);
	exchange_send(x, buf_bytes(&body));
}

const char *stream_phrase(int status)
{
	static const struct {
		int status;
		const char *phrase;
	} phrases[] = {{101, "Switching Protocols"}, {200, "OK"}, {201, "Created"},
		{202, "Accepted"}, {204, "No Content"}, {206, "Partial Content"},
		{301, "Moved Permanently"}, {302, "Found"}, {304, "Not Modified"},
		{307, "Temporary Redirect"}, {308, "Permanent Redirect"}, {400, "Bad Request"},
		{401, "Unauthorized"}, {403, "Forbidden"}, {404, "Not Found"},
		{405, "Method Not Allowed"}, {406, "Not Acceptable"}, {408, "Request Timeout"},
		{409, "Conflict"}, {410, "Gone"}, {413, "Request Entity Too Large"},
		{415, "Unsupported Media Type"}, {417, "Expectation Failed"},
		{421, "Misdirected Request"}, {422, "Unprocessable Entity"},
		{429, "Too Many Requests"}, {431, "Request Header Fields Too Large"},
		{500, "Internal Server Error"}, {501, "Not Implemented"}, {502, "Bad Gateway"},
		{503, "Service Unavailable"}, {504, "Gateway Timeout"},
		{505, "HTTP Version Not Supported"}};

	for (size_t i = 0; i < ARRAY_SIZE(phrases); i++)
		if (phrases[i].status == status)
			return phrases[i].phrase;
	return "Unknown";
}
