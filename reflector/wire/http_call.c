/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/wire/http_parts.h"

#include <limits.h>
#include <string.h>

#include "common/check.h"
#include "common/err.h"
#include "common/proc.h"

/* More time than asked for in one wait was not spent listening. */
#define WAIT_SLACK_NS 1000000000ull
/* libcurl 7.88 bounds a head, but keeps trailers without end. */
#define HEADER_BYTES  (512u * 1024)

/* ---- time ---- */

void http_move_clock(struct http *http, uint64_t waited_ms)
{
	uint64_t now = proc_monotonic_ns();
	uint64_t most = waited_ms * NS_PER_MS + WAIT_SLACK_NS;
	uint64_t passed = now - http->last_ns;

	http->clock_ns += passed < most ? passed : most;
	http->last_ns = now;
}

int http_wait_ms(const struct http *http, int timeout_ms)
{
	uint64_t first = connections_ask_at(&http->connections), limit_ns, ms;
	const char *what;

	for (const struct http_call *call = http->calls; call; call = call->next) {
		uint64_t at = limit_deadline(&call->limit, &limit_ns, &what);

		first = at < first ? at : first;
	}
	if (first == UINT64_MAX)
		return timeout_ms < 0 ? INT_MAX : timeout_ms;
	ms = first > http->clock_ns ? (first - http->clock_ns + NS_PER_MS - 1) / NS_PER_MS : 0;
	if (ms > INT_MAX)
		ms = INT_MAX;
	return timeout_ms >= 0 && (uint64_t)timeout_ms < ms ? timeout_ms : (int)ms;
}

/* ---- which there are ---- */

void call_link(struct http *http, struct http_call *call)
{
	call->next = http->calls;
	call->link = &http->calls;
	if (call->next)
		call->next->link = &call->next;
	http->calls = call;
}

void call_unlink(struct http_call *call)
{
	if (!call->link)
		return;
	*call->link = call->next;
	if (call->next)
		call->next->link = call->link;
}

struct http_call *http_last_waiting(const struct http *http)
{
	struct http_call *last = NULL;

	for (struct http_call *call = http->calls; call; call = call->next)
		if (call->state == CALL_WAITING && !call->cancelled)
			last = call; /* new calls stand in front */
	return last;
}

void http_hold_waiting(struct http *http)
{
	for (struct http_call *call = http->calls; call; call = call->next)
		if (call->state == CALL_WAITING)
			call->limit.start_ns = http->clock_ns;
}

struct http_call *http_next_ended(const struct http *http)
{
	struct http_call *call = http->calls;

	while (call && call->state != CALL_ENDED)
		call = call->next;
	return call;
}

/* ---- what comes in ---- */

/* The next call looks whether there is something newer to show. */
static void refused(struct http_call *call)
{
	credential_refused(call->http->credential, call->shown);
	certificates_doubt(call->http->certificates);
}

static void headers_complete(struct http_call *call)
{
	struct http_answer answer = {
		.status = call->head.status,
		.content_type = call->head.content_type,
		.warning = call->head.warning,
		.etag = call->head.etag,
		.has_retry_after = call->head.has_retry_after,
		.retry_after_ns = call->head.retry_after_s * NS_PER_SECOND,
	};

	call->limit.answered = true;
	if (call->head.status != 200)
		limit_refusal(&call->limit);
	if (call->head.status == 401)
		refused(call);
	if (call->request.on_status)
		call->request.on_status(call->request.arg, &answer);
}

/* R ends the call; its sentence would not live until on_done. */
static bool stop(struct http_call *call, int r)
{
	call->stop = r;
	call->sentence = r < 0 ? strdup(err_text(r)) : NULL;
	return false;
}

bool call_take_header(struct http_call *call, struct bytes line)
{
	call->header_bytes += line.size;
	if (call->header_bytes > HEADER_BYTES)
		return stop(call, err_say(ERR_PROTOCOL, "%s: headers without end", call->http->name));
	/* What comes after the end is a trailer. */
	if (!call->limit.answered && head_line(&call->head, line) == END)
		headers_complete(call);
	call->http->single = call->head.version == 1;
	return !call->cancelled;
}

bool call_take_body(struct http_call *call, struct bytes bytes)
{
	int r = 0;

	call->http->counts.bytes += bytes.size;
	if (!call->limit.answered) /* 101, which nobody asked for */
		r = err_say(ERR_PROTOCOL, "%s: what answers does not speak HTTP (status %d)",
			call->http->name, call->head.status);
	else if (call->request.on_body && bytes.size > 0)
		r = call->request.on_body(call->request.arg, bytes);
	if (call->request.bulk)
		call->http->bulk_bytes += bytes.size;
	if (r && !call->cancelled)
		return stop(call, r);
	return !call->cancelled;
}

/* ---- public ---- */

void http_set_quiet(struct http_call *call)
{
	CHECK_OBJ(call, CALL_MAGIC);
	call->limit.idle_ns = 0;
	call->request.renewable = true;
	call->request.bulk = false;
}

const char *http_server(const struct http *http)
{
	CHECK_OBJ(http, HTTP_MAGIC);
	return http->config->server;
}

void http_counts(const struct http *http, struct http_counts *ret_counts)
{
	CHECK_OBJ(http, HTTP_MAGIC);
	*ret_counts = http->counts;
	ret_counts->connections = http->connections.opened;
}
