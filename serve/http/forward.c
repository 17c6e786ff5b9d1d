/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/forward.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "serve/http/chunks.h"
#include "serve/http/head.h"
#include "serve/http/upstream_link.h"
#include "serve/metrics.h"
#include "serve/worker_internal.h"

#define FORWARD_MAGIC 0x66777264u
#define CHECK_NS      (5 * SECOND_NS)
/* kube-apiserver ends ordinary requests after 60 s */
#define ANSWER_NS  (90 * SECOND_NS)
#define STALLED_NS (60 * SECOND_NS) /* the server takes nothing of a request's body */
#define PIECE      ((size_t)16 << 10)

/* How the end of the answer's body is told. */
struct forward_body {
	bool chunked, until_end; /* of the connection */
	uint64_t left;           /* without both of these */
	struct chunks chunks;
};

struct forward {
	uint32_t magic;
	struct exchange *x;
	struct forward_options options;
	struct upstream_link *link;
	struct serve_timer timer;
	uint64_t progress_ns; /* when the server last took a byte, or had the whole request */
	/* To the server. */
	struct buf out;
	size_t out_sent;
	bool any_sent, all_sent; /* of the request */
	bool send_broken;        /* the server takes no more; its answer may come all the same */
	/* From the server. */
	struct buf in;
	size_t in_used, searched;
	struct forward_body body;
	bool begun, tunnel, reusable, cut;
	bool finishing, at_line_end;
};

static unsigned forward_counts[2]; /* atomic; [1]: of those that may run long */

static void forward_turn(void *context);

/* Logs and watches must not keep writes out. */
static unsigned *forward_count(const struct forward_options *options)
{
	return &forward_counts[options->lines || options->no_limit];
}

/* ---- heads --------------------------------------------------------------- */

/* Headers of one connection stay behind: the fixed ones of RFC 9110, 7.6.1, and those named by
 * Connection. A tunnel gets Upgrade and Connection of its own. */

static bool head_is_one_of(struct bytes name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes_equal(name, bytes_str(names[i])))
			return true;
	return false;
}

static bool head_is_hop_by_hop(struct bytes name)
{
	static const char *const names[] = {"connection", "keep-alive", "proxy-connection",
		"proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding",
		"upgrade", "content-length", "http2-settings"};

	return head_is_one_of(name, names, ARRAY_SIZE(names));
}

/* Returns whether a Connection header among the N FIELDS names NAME. */
static bool head_is_of_connection(const struct exchange_header *fields, size_t n, struct bytes name)
{
	for (size_t i = 0; i < n; i++) {
		struct bytes rest = fields[i].value;

		if (!bytes_equal(fields[i].name, BYTES_LIT("connection")))
			continue;
		for (struct bytes word; (word = head_next_word(&rest)).size;)
			if (word.size == name.size &&
				strncasecmp(word.data, name.data, name.size) == 0)
				return true;
	}
	return false;
}

/* HTTP/2 allows other bytes in headers. */
static bool head_is_clean(struct bytes text, bool blanks)
{
	const uint8_t *p = text.data;

	for (size_t i = 0; i < text.size; i++)
		if (p[i] == 0x7f || p[i] < 0x20 ? !(blanks && p[i] == '\t')
						: p[i] == ' ' && !blanks)
			return false;
	return true;
}

static bool head_is_name(struct bytes name)
{
	const char *p = name.data;

	for (size_t i = 0; i < name.size; i++)
		if (!p[i] || !strchr("abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~", p[i]))
			return false;
	return name.size != 0;
}

/* Returns whether the body is sent in chunks, because its length is not known. */
static bool forward_head_is_chunked(const struct exchange *x)
{
	return x->has_body && !exchange_header(x, "content-length").data;
}

/* Appends the client's address to the known ones, for the API server's audit log. */
static void head_put_address(const struct exchange *x, struct buf *out)
{
	struct bytes before = exchange_header(x, "x-forwarded-for");
	const char *address = x->peer->address, *colon = strrchr(address, ':');
	bool brackets = *address == '[';

	if (x->peer->local || !colon)
		return;
	buf_printf(out, "x-forwarded-for: %.*s%s%.*s\r\n", BYTES_ARG(before),
		before.size ? ", " : "", (int)(colon - address) - 2 * brackets, address + brackets);
}

/* Writes the request's head. HOST, BASE: of the API server's URL. Returns: 0; 400: a header or the
 * path can't be passed on; errors. */
static int forward_head_write(const struct exchange *x, struct bytes host, struct bytes base,
	bool uncompressed, struct buf *out)
{
	static const char *const ours[] = {"host", "expect", "x-forwarded-for"};

	if (!head_is_clean(x->method, false) || !head_is_clean(x->path, false) ||
		!head_is_clean(x->query, false))
		return 400;
	buf_bytes_put(out, x->method);
	buf_byte(out, ' ');
	buf_bytes_put(out, base);
	buf_bytes_put(out, x->path);
	if (x->query.data)
		buf_byte(out, '?');
	buf_bytes_put(out, x->query);
	buf_printf(out, " HTTP/1.1\r\nhost: %.*s\r\n", BYTES_ARG(host));
	for (size_t i = 0; i < x->n_headers; i++) {
		const struct exchange_header *h = &x->headers[i];

		/* Without its Impersonate-User a request would have more rights, so a client of a
		 * front proxy can't remove it by naming it in Connection. */
		bool is_credential = bytes_equal(h->name, BYTES_LIT("authorization")) ||
				     bytes_starts(h->name, BYTES_LIT("impersonate-"));

		/* A front proxy names the user by X-Remote-*; from a client they are a lie. */
		if (head_is_hop_by_hop(h->name) || bytes_starts(h->name, BYTES_LIT("x-remote-")) ||
			head_is_one_of(h->name, ours, ARRAY_SIZE(ours)) ||
			(uncompressed && bytes_equal(h->name, BYTES_LIT("accept-encoding"))) ||
			(!is_credential &&
				head_is_of_connection(x->headers, x->n_headers, h->name)))
			continue;
		if (!head_is_name(h->name) || !head_is_clean(h->value, true))
			return 400;
		buf_bytes_put(out, h->name);
		buf_str(out, ": ");
		buf_bytes_put(out, h->value);
		buf_str(out, "\r\n");
	}
	head_put_address(x, out);
	if (x->upgrade)
		buf_printf(out, "connection: Upgrade\r\nupgrade: %.*s\r\n",
			BYTES_ARG(exchange_header(x, "upgrade")));
	if (forward_head_is_chunked(x))
		buf_str(out, "transfer-encoding: chunked\r\n");
	else if (exchange_header(x, "content-length").data)
		buf_printf(out, "content-length: %.*s\r\n",
			BYTES_ARG(exchange_header(x, "content-length")));
	buf_str(out, "\r\n");
	return buf_error(out);
}

/* Chooses the headers for the client. Returns how many: HEAD has one less than the most. */
static size_t forward_head_answer(const struct request_head *head, bool tunnel,
	struct exchange_header ret_headers[HEAD_FIELDS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < head->n_fields; i++) {
		const struct exchange_header *h = &head->fields[i];

		if (!head_is_hop_by_hop(h->name) &&
			!head_is_of_connection(head->fields, head->n_fields, h->name))
			ret_headers[n++] = *h;
		else if (tunnel && bytes_equal(h->name, BYTES_LIT("upgrade")))
			ret_headers[n++] = *h;
	}
	if (tunnel)
		ret_headers[n++] =
			(struct exchange_header){BYTES_LIT("connection"), BYTES_LIT("Upgrade")};
	return n;
}

/* ---- the end of the answer's body --------------------------------------- */

/* Takes bytes of the answer. Returns how many, SIZE_MAX if they are malformed. RET_DATA (an offset)
 * and RET_SIZE: a run of the body. */
static size_t forward_body_take(struct forward_body *body, const uint8_t *bytes, size_t size,
	size_t *ret_data, size_t *ret_size)
{
	if (body->chunked)
		return chunks_take(&body->chunks, bytes, size, ret_data, ret_size);
	*ret_data = 0;
	*ret_size = body->until_end || size < body->left ? size : (size_t)body->left;
	body->left -= *ret_size; /* modulo 2^64 */
	return *ret_size;
}

static bool forward_body_ended(const struct forward_body *body)
{
	return body->chunked ? chunks_ended(&body->chunks) : !body->until_end && body->left == 0;
}

/* ---- begin and end ------------------------------------------------------ */

bool forward_has_credentials(const struct exchange *x)
{
	/* A browser can't set headers of a WebSocket. */
	static const char prefix[] = "base64url.bearer.authorization.k8s.io.";
	struct bytes rest = exchange_header(x, "sec-websocket-protocol");

	if (exchange_header(x, "authorization").size)
		return true;
	for (struct bytes word; (word = head_next_word(&rest)).size;)
		if (bytes_starts(word, BYTES_LIT(prefix)))
			return true;
	return false;
}

void forward_free(struct forward **forward)
{
	struct forward *f = TAKE(*forward);

	if (!f)
		return;
	CHECK_OBJ(f, FORWARD_MAGIC);
	bool whole = f->begun && f->all_sent && !f->out.size && f->reusable && !f->in.size &&
		     forward_body_ended(&f->body);
	exchange_on_body(f->x, NULL, NULL);
	upstream_link_close(&f->link, whole);
	serve_timer_release(&f->timer);
	buf_release(&f->out);
	buf_release(&f->in);
	__atomic_sub_fetch(forward_count(&f->options), 1, __ATOMIC_RELAXED);
	f->magic = 0;
	free(f);
}

/* Gives up before an answer has begun. */
static void forward_fail(struct forward *f, int status, const char *what, const char *why)
{
	const struct forward_options options = f->options;
	bool sent = f->any_sent;
	char text[300];

	(void)snprintf(text, sizeof(text), "%s%.200s", what, why);
	forward_free(&f);
	options.failed(options.context, status, text, sent);
}

static int forward_open(struct forward *f, bool fresh)
{
	struct bytes host, base;
	struct upstream_links *links = f->x->worker->links;
	int r = upstream_link_open(links, fresh, forward_turn, f, &f->link);

	if (r < 0)
		return r;
	upstream_links_server(links, &host, &base);
	buf_reset(&f->out);
	f->out_sent = 0;
	return forward_head_write(f->x, host, base, f->options.whole, &f->out);
}

/* The connection has ended before the answer. */
static void forward_lost(struct forward *f, const char *why)
{
	bool safe = bytes_equal(f->x->method, BYTES_LIT("GET")) ||
		    bytes_equal(f->x->method, BYTES_LIT("HEAD"));

	/* The server may have closed an idle connection at this moment. */
	if (safe && !f->x->has_body && !f->in.size && upstream_link_was_idle(f->link)) {
		upstream_link_close(&f->link, false);
		f->any_sent = f->all_sent = f->send_broken = false;
		if (forward_open(f, true) == 0)
			return;
		err_forget();
	}
	forward_fail(f, 503,
		f->any_sent ? "the API server closed the connection before it answered: "
			    : "the API server can't be reached: ",
		why);
}

/* ---- to the server ------------------------------------------------------ */

/* Puts the next piece of the request's body into f->out. Returns whether there is one. */
static bool forward_take_body(struct forward *f)
{
	bool chunked = forward_head_is_chunked(f->x) && !f->tunnel, end;
	struct bytes bytes = exchange_body(f->x, &end);
	size_t size = bytes.size < PIECE ? bytes.size : PIECE;

	if (size) {
		if (f->options.asked)
			f->options.asked(f->options.context, BYTES(bytes.data, size));
		if (chunked)
			buf_printf(&f->out, "%zx\r\n", size);
		buf_put(&f->out, bytes.data, size);
		if (chunked)
			buf_str(&f->out, "\r\n");
		exchange_body_take(f->x, size);
		return true;
	}
	if (!end || f->all_sent)
		return false;
	f->all_sent = true;
	f->progress_ns = proc_monotonic_ns();
	if (chunked)
		buf_str(&f->out, "0\r\n\r\n");
	return chunked;
}

/* Sends until the server takes no more. */
static void forward_send(struct forward *f)
{
	while (!f->send_broken) {
		ssize_t n = upstream_link_write(
			f->link, BYTES(f->out.data + f->out_sent, f->out.size - f->out_sent));

		f->send_broken = n < 0 || buf_error(&f->out) < 0;
		if (n > 0) {
			f->progress_ns = proc_monotonic_ns();
			f->any_sent = true;
			f->out_sent += (size_t)n;
		}
		if (n < 0 || f->out_sent < f->out.size)
			break;
		buf_trim(&f->out, 0);
		f->out_sent = 0;
		/* Bytes after a request for a tunnel are for the tunnel. */
		if ((f->x->upgrade && !f->begun) || !forward_take_body(f))
			break;
	}
	if (f->send_broken) {
		err_forget();
		f->cut |= f->tunnel;
		exchange_on_body(f->x, NULL, NULL); /* the rest is dropped */
	}
}

/* ---- the answer's body -------------------------------------------------- */

/* Gives the client a run of the body. Returns its size, 0 if these bytes had none. */
static ssize_t forward_decode(struct forward *f, uint8_t *out, size_t room)
{
	const uint8_t *p = f->in.data + f->in_used;
	size_t left = f->in.size - f->in_used, data, size;
	size_t used = forward_body_take(&f->body, p, left < room ? left : room, &data, &size);

	if (used == SIZE_MAX)
		return err_say(-EPROTO, "the API server's answer is malformed");
	if (size) {
		memcpy(out, p + data, size);
		f->at_line_end = out[size - 1] == '\n';
		if (f->options.body)
			f->options.body(f->options.context, BYTES(out, size));
	}
	f->in_used += used;
	if (f->in_used == f->in.size) {
		buf_reset(&f->in);
		f->in_used = 0;
	}
	return (ssize_t)size;
}

static ssize_t forward_read(void *context, uint8_t *out, size_t room)
{
	struct forward *f = context;

	while (!forward_body_ended(&f->body)) {
		if (f->in.size) {
			ssize_t n = forward_decode(f, out, room);

			if (n != 0)
				return n;
			continue;
		}
		if (f->finishing && f->at_line_end)
			return 0;
		uint8_t *p = buf_grow(&f->in, PIECE);
		if (!p)
			return buf_error(&f->in);
		ssize_t n = f->cut ? UPSTREAM_BROKEN : upstream_link_read(f->link, p, PIECE);
		buf_truncate(&f->in, n > 0 ? (size_t)n : 0);
		if (n > 0)
			continue;
		buf_trim(&f->in, 0);
		if (n == UPSTREAM_AGAIN && f->tunnel && f->all_sent)
			return 0; /* the client has ended the tunnel */
		if (n == UPSTREAM_AGAIN)
			return n;
		if (n == 0 && f->body.until_end)
			return 0;
		return err_say(-EPIPE, "the API server's answer was cut");
	}
	return 0;
}

static void forward_end(void *context, enum exchange_end why)
{
	struct forward *f = context;
	const struct forward_options options = f->options;

	(void)why;
	forward_free(&f);
	options.ended(options.context);
}

static void forward_finish(void *context)
{
	struct forward *f = context;

	f->finishing = true;
}

/* ---- the answer's head -------------------------------------------------- */

static void forward_begin(struct forward *f, const struct request_head *head, int status)
{
	struct exchange_header headers[HEAD_FIELDS_MAX];
	struct exchange_source source = {.read = forward_read,
		.end = forward_end,
		.finish = f->options.lines ? forward_finish : NULL,
		.context = f,
		.size = head->has_length ? (int64_t)head->length : -1};
	struct bytes type = BYTES_NONE;
	char code[8];

	f->begun = f->at_line_end = true;
	f->tunnel = status == 101;
	bool bodiless = f->x->head || status == 204 || status == 304;
	f->body.chunked = !bodiless && !f->tunnel && head->chunked;
	f->body.until_end = !bodiless && (f->tunnel || (!head->chunked && !head->has_length));
	f->body.left = bodiless ? 0 : head->length;
	f->reusable = !head->close && !f->body.until_end;
	if (f->tunnel) {
		source.size = -1;
		f->all_sent = false;
	}
	size_t n = forward_head_answer(head, f->tunnel, headers);
	for (size_t i = 0; i < n; i++)
		if (bytes_equal(headers[i].name, BYTES_LIT("content-type")))
			type = headers[i].value;
	(void)snprintf(code, sizeof(code), "%d", status);
	metric_add(metrics_cell(f->options.metrics, METRIC_FORWARDED, (const char *[]){code}), 1);
	if (f->options.begun)
		f->options.begun(f->options.context, status, type);
	f->x->relayed = true;
	f->x->long_running = f->tunnel || f->options.lines || f->options.no_limit;
	exchange_begin(f->x, status, headers, n);
	exchange_stream(f->x, &source);
}

/* Reads heads until the one of the answer has come. F may be gone afterwards. */
static void forward_receive_head(struct forward *f)
{
	struct request_head head;
	struct head_error error = {0, ""};
	int status;

	for (;;) {
		size_t size = head_find_end(f->in.data, f->in.size, &f->searched);

		if (size == SIZE_MAX || (!size && f->in.size >= EXCHANGE_HEAD_MAX)) {
			forward_fail(f, 502, "the API server's answer is no HTTP: ",
				size ? "a line does not end with CR LF" : "its head is too large");
			return;
		}
		if (!size) {
			uint8_t *p = buf_grow(&f->in, PIECE);
			ssize_t n = p ? upstream_link_read(f->link, p, PIECE) : UPSTREAM_BROKEN;

			buf_truncate(
				&f->in, f->in.size - (p ? PIECE - (n > 0 ? (size_t)n : 0) : 0));
			if (n == UPSTREAM_AGAIN)
				return;
			if (n > 0)
				continue;
			forward_lost(f, n == 0 ? "it ended" : "it broke");
			return;
		}
		f->searched = 0;
		if (!head_parse(f->in.data, size, &head, &status, &error) ||
			(status == 101 && !f->x->upgrade)) {
			forward_fail(f, 502, "the API server's answer is no HTTP: ",
				*error.why ? error.why : "it changes the protocol");
			return;
		}
		if (status >= 200 || status == 101)
			forward_begin(f, &head, status); /* it copies the texts */
		buf_consume(&f->in, size);
		if (status >= 200 || status == 101)
			return;
	}
}

/* ---- turns -------------------------------------------------------------- */

/* Does all work possible without waiting. May free F. */
static void forward_turn(void *context)
{
	struct forward *f = context;

	CHECK_OBJ(f, FORWARD_MAGIC);
	switch (upstream_link_state(f->link)) {
	case UPSTREAM_CONNECTING:
		return;
	case UPSTREAM_FAILED:
		forward_lost(f, upstream_link_error(f->link));
		return;
	case UPSTREAM_OPEN:
		break;
	}
	forward_send(f);
	if (!f->begun) {
		forward_receive_head(f);
		return;
	}
	exchange_wake(f->x);
}

static void forward_set_timer(struct forward *f, uint64_t now)
{
	uint64_t due = f->progress_ns + f->options.answer_ns, next = now + CHECK_NS;

	serve_timer_set(&f->timer, due > now && due < next ? due : next);
}

static void forward_check(void *context)
{
	struct forward *f = context;
	uint64_t now = proc_monotonic_ns();
	bool sending =
		upstream_link_state(f->link) == UPSTREAM_OPEN && !f->send_broken && f->out.size;

	forward_set_timer(f, now);
	if (sending && now - f->progress_ns >= STALLED_NS) {
		if (!f->begun) {
			forward_fail(f, 504, "the API server does not take the request", "");
			return;
		}
		f->cut = true;
		exchange_wake(f->x);
	} else if (!f->begun && f->all_sent && !f->options.no_limit &&
		   now - f->progress_ns >= f->options.answer_ns) {
		forward_fail(f, 504, "the API server has not answered in time", "");
	}
}

int forward_start(
	struct exchange *x, const struct forward_options *options, struct forward **ret_forward)
{
	unsigned *count = forward_count(options);
	unsigned n = __atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
	struct forward *f = n <= FORWARD_MAX ? calloc(1, sizeof(*f)) : NULL;

	if (!f) {
		__atomic_sub_fetch(count, 1, __ATOMIC_RELAXED);
		return n <= FORWARD_MAX ? err_set(-ENOMEM, "forwarding a request") : 429;
	}
	*f = (struct forward){.magic = FORWARD_MAGIC, .x = x, .options = *options};
	if (!f->options.answer_ns)
		f->options.answer_ns = ANSWER_NS;
	f->progress_ns = proc_monotonic_ns();
	int r = serve_timer_init(x->worker, &f->timer, forward_check, f);
	if (r == 0)
		r = forward_open(f, false);
	if (r != 0) {
		forward_free(&f);
		return r;
	}
	forward_set_timer(f, f->progress_ns);
	exchange_on_body(x, forward_turn, f);
	*ret_forward = f;
	if (upstream_link_state(f->link) == UPSTREAM_OPEN)
		forward_send(f); /* an idle connection: no event will come */
	return 0;
}
