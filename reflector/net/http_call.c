/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a call that do not need libcurl: its limits and their clock, its place in the
 * list of calls, and the bytes of its answer. */
#include "reflector/net/http_internal.h"

#include <limits.h>
#include <string.h>

#include "common/check.h"
#include "common/err.h"
#include "common/proc.h"

#define WAIT_SLACK_NS NS_PER_SECOND
/* libcurl 7.88 bounds the head of an answer, but collects trailers without limit. */
#define HEADER_BYTES_MAX (512u * 1024)

/* ---- the clock of limits ------------------------------------------------ */

void http_move_clock(struct http *http, uint64_t waited_ms)
{
	uint64_t now = proc_monotonic_ns();
	uint64_t most = waited_ms * NS_PER_MS + WAIT_SLACK_NS;
	uint64_t passed = now - http->last_ns;

	http->clock_ns += passed < most ? passed : most;
	http->last_ns = now;
}

void http_call_note_deadline(struct http_call *call)
{
	uint64_t limit_ns;
	const char *words;
	uint64_t at = limit_deadline(&call->limit, &limit_ns, &words);

	if (at < call->http->deadline_ns)
		call->http->deadline_ns = at;
}

void http_note_silence(struct http *http)
{
	uint64_t silence_ns = http->connections.silence_ns;

	if (silence_ns && http->clock_ns + silence_ns < http->deadline_ns)
		http->deadline_ns = http->clock_ns + silence_ns;
}

int http_wait_ms(const struct http *http, int timeout_ms)
{
	uint64_t first = http->deadline_ns, ms;

	if (first == UINT64_MAX)
		return timeout_ms < 0 ? INT_MAX : timeout_ms;
	ms = first > http->clock_ns ? (first - http->clock_ns + NS_PER_MS - 1) / NS_PER_MS : 0;
	if (ms > INT_MAX)
		ms = INT_MAX;
	return timeout_ms >= 0 && (uint64_t)timeout_ms < ms ? timeout_ms : (int)ms;
}

/* ---- the list of calls -------------------------------------------------- */

void http_call_link(struct http *http, struct http_call *call)
{
	call->next = http->calls;
	call->link = &http->calls;
	if (call->next)
		call->next->link = &call->next;
	http->calls = call;
	http->waiting += call->state == CALL_WAITING;
	http_call_note_deadline(call);
}

void http_call_unlink(struct http_call *call)
{
	if (!call->link)
		return;
	*call->link = call->next;
	if (call->next)
		call->next->link = call->link;
	call->http->waiting -= call->state == CALL_WAITING;
	call->http->ended -= call->state == CALL_ENDED;
	call->http->cancelled -= call->cancelled;
}

void http_call_set_state(struct http_call *call, enum call_state state)
{
	struct http *http = call->http;

	http->waiting -= call->state == CALL_WAITING;
	http->ended -= call->state == CALL_ENDED;
	call->state = state;
	http->waiting += state == CALL_WAITING;
	http->ended += state == CALL_ENDED;
}

struct http_call *http_oldest_waiting(const struct http *http)
{
	struct http_call *oldest = NULL;
	size_t left = http->waiting;

	/* They are among the newest: thousands of watches come behind. */
	for (struct http_call *call = http->calls; call && left; call = call->next) {
		if (call->state != CALL_WAITING)
			continue;
		left--;
		if (!call->cancelled)
			oldest = call;
	}
	return oldest;
}

struct http_call *http_next_ended(const struct http *http)
{
	struct http_call *call = http->ended ? http->calls : NULL;

	while (call && call->state != CALL_ENDED)
		call = call->next;
	return call;
}

/* ---- bytes of an answer ------------------------------------------------- */

/* Makes libcurl end CALL with R. Keeps R's sentence, which would not live until on_done. */
static bool call_stop(struct http_call *call, int r)
{
	call->stop = r;
	call->sentence = r < 0 ? strdup(err_text(r)) : NULL;
	return false;
}

bool http_call_take_header(struct http_call *call, struct bytes line)
{
	struct http *http = call->http;

	call->header_bytes += line.size;
	if (call->header_bytes > HEADER_BYTES_MAX)
		return call_stop(
			call, err_say(ERR_PROTOCOL, "%s: headers without end", http->name));
	/* A line after the end of the head is a trailer. */
	if (!call->limit.answered && head_line(&call->head, line) == END) {
		const struct http_head *head = &call->head;

		call->limit.answered = http->answered = true;
		if (head->status != 200)
			limit_refusal(&call->limit);
		http_call_note_deadline(call);
		if (head->status == 401) {
			/* The next call checks whether there are newer credentials. */
			credential_refused(http->credential, call->credential_version);
			certificates_doubt(http->certificates);
		}
		if (call->request.on_status)
			call->request.on_status(call->request.arg,
				&(struct http_answer){
					.status = head->status,
					.content_type = head->content_type,
					.warning = head->warning,
					.etag = head->etag,
					.has_retry_after = head->has_retry_after,
					.retry_after_ns = head->retry_after_s * NS_PER_SECOND,
				});
	}
	http->http1 = call->head.version == 1;
	return !call->cancelled;
}

bool http_call_take_body(struct http_call *call, struct bytes bytes)
{
	int r = 0;

	http_count(call->http, STAT_BYTES_READ, bytes.size);
	if (!call->limit.answered) /* a 101 that we did not ask for */
		r = err_say(ERR_PROTOCOL, "%s: the answer is not HTTP (status %d)",
			call->http->name, call->head.status);
	else if (call->request.on_body && bytes.size > 0)
		r = call->request.on_body(call->request.arg, bytes);
	if (call->request.bulk)
		call->http->bulk_bytes += bytes.size;
	if (r && !call->cancelled)
		return call_stop(call, r);
	return !call->cancelled;
}
