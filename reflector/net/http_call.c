/* SPDX-License-Identifier: Apache-2.0 */
/* A call: its limits and their clock, its place in the lists of calls, the bytes of
 * its answer, its failure. */
#include "reflector/net/http_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/err.h"
#include "common/proc.h"

#define WAIT_SLACK_NS SECOND_NS
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

void limit_heard(struct limit *limit, uint64_t now_ns, uint64_t size)
{
	limit->bytes += size;
	if (limit->answered && limit->bytes < limit->idle_ns / SECOND_NS * LIMIT_RATE)
		return;
	limit->heard_ns = now_ns;
	limit->bytes = 0;
}

uint64_t limit_deadline(const struct limit *limit, uint64_t *ret_limit_ns, const char **ret_words)
{
	uint64_t silence = !limit->answered ? limit->first_byte_ns
			   : limit->idle_ns ? limit->idle_ns
					    : limit->silence_ns;
	uint64_t from = limit->answered ? limit->heard_ns : limit->start_ns;
	uint64_t at = silence ? from + silence : UINT64_MAX;

	*ret_limit_ns = silence;
	*ret_words = !limit->answered  ? "no answer"
		     : !limit->idle_ns ? NULL
		     : limit->bytes    ? "too little heard"
				       : "nothing more heard";
	if (limit->total_ns && limit->start_ns + limit->total_ns < at) {
		at = limit->start_ns + limit->total_ns;
		*ret_limit_ns = limit->total_ns;
		*ret_words = "not finished";
	}
	return at;
}

int http_wait_ms(const struct http *http, int timeout_ms)
{
	uint64_t most = timeout_ms < 0 ? INT_MAX : (uint64_t)timeout_ms, ms = 0;

	if (http->deadline_ns > http->clock_ns)
		ms = (http->deadline_ns - http->clock_ns - 1) / NS_PER_MS + 1;
	return (int)(ms < most ? ms : most);
}

/* ---- the lists of calls ------------------------------------------------- */

void http_call_link(struct http_call *call)
{
	struct call_list *list = &call->http->calls[call->state];

	call->next = NULL;
	call->link = list->end;
	*list->end = call;
	list->end = &call->next;
}

void http_call_unlink(struct http_call *call)
{
	struct http *http = call->http;

	if (!call->link)
		return;
	*call->link = call->next;
	if (call->next)
		call->next->link = call->link;
	else
		http->calls[call->state].end = call->link;
	if (http->opener == call)
		http->opener = NULL;
}

void http_call_set_state(struct http_call *call, enum call_state state)
{
	http_call_unlink(call);
	call->state = state;
	http_call_link(call);
}

struct http_call *http_oldest_waiting(const struct http *http)
{
	struct http_call *call = http->calls[CALL_WAITING].first;

	while (call && call->cancelled)
		call = call->next;
	return call;
}

/* ---- bytes of an answer ------------------------------------------------- */

/* Makes libcurl end CALL with R. Keeps R's sentence until on_done. */
static bool call_stop(struct http_call *call, int r)
{
	call->stop = r;
	call->sentence = r < 0 ? strdup(err_text(r)) : NULL;
	return false;
}

/* Returns the answer's header NAME of INDEX, until the next call; NULL: there is none. */
static const char *call_header(const struct http_call *call, const char *name, size_t index)
{
	struct curl_header *header;
	CURLHcode code = curl_easy_header(call->easy, name, index, CURLH_HEADER, -1, &header);

	return code ? NULL : header->value;
}

/* Reads seconds, the API servers' form. A date is ignored: comparing it needs the server's
 * clock. */
static uint64_t call_retry_after_ns(const struct http_call *call)
{
	const char *text = call_header(call, "Retry-After", 0);
	uint64_t seconds = 0;

	if (!text || text[strspn(text, "0123456789")])
		return 0;
	for (; *text && seconds < UINT32_MAX; text++)
		seconds = 10 * seconds + (uint64_t)(*text - '0');
	return (seconds < UINT32_MAX ? seconds : UINT32_MAX) * SECOND_NS;
}

/* Joins the texts of the headers `299 - "text"` by "; ", cut to SIZE. */
static void call_join_warnings(const struct http_call *call, char *joined, size_t size)
{
	const char *text;
	size_t used = 0;

	joined[0] = '\0';
	for (size_t i = 0; used < size && (text = call_header(call, "Warning", i)); i++) {
		const char *first = strchr(text, '"'), *last = strrchr(text, '"');
		bool is_quoted = first != last;

		used += (size_t)snprintf(joined + used, size - used, "%s%.*s", used ? "; " : "",
			is_quoted ? (int)(last - first - 1) : (int)strlen(text),
			is_quoted ? first + 1 : text);
	}
}

static void call_report(struct http_call *call)
{
	struct http_answer answer = {
		.status = call->status, .retry_after_ns = call_retry_after_ns(call)};
	char warning[256], etag[HTTP_ETAG_SIZE];
	const char *value = call_header(call, "ETag", 0);
	bool is_kept = value && strlen(value) < sizeof(etag);

	(void)snprintf(etag, sizeof(etag), "%s", is_kept ? value : "");
	call_join_warnings(call, warning, sizeof(warning));
	value = call_header(call, "Content-Type", 0);
	answer.content_type = value ? value : "";
	answer.etag = etag;
	answer.warning = warning;
	call->request.on_status(call->request.arg, &answer);
}

/* Takes the end of a head: of an interim (1xx) answer, or of the answer. */
static void call_end_head(struct http_call *call)
{
	struct http *http = call->http;
	long status = 0, version = 0;

	(void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
	(void)curl_easy_getinfo(call->easy, CURLINFO_HTTP_VERSION, &version);
	http->http1 = version == CURL_HTTP_VERSION_1_0 || version == CURL_HTTP_VERSION_1_1;
	call->status = (int)status;
	if (status < 200)
		return;
	call->limit.answered = true;
	/* A watch may be silent and a list may take long, but the rest of a refusal may not. */
	uint64_t first_byte_ns = call->limit.first_byte_ns;
	uint64_t total_ns = call->limit.heard_ns - call->limit.start_ns + first_byte_ns;
	if (status != 200 && first_byte_ns &&
		(!call->limit.total_ns || total_ns < call->limit.total_ns))
		call->limit.total_ns = total_ns;
	http_call_note_deadline(call);
	if (status == 401) {
		/* The next call checks whether there are newer credentials. */
		credential_refused(http->credential, call->credential_version);
		certificates_expire(http->certificates);
	}
	if (call->request.on_status)
		call_report(call);
}

bool http_call_take_header(struct http_call *call, struct bytes line)
{
	bool is_empty = bytes_starts(line, BYTES_LIT("\r")) || bytes_starts(line, BYTES_LIT("\n"));

	call->header_bytes += line.size;
	if (call->header_bytes > HEADER_BYTES_MAX)
		return call_stop(
			call, err_say(ERR_PROTOCOL, "%s: headers without end", call->http->name));
	/* A line after the end of the head is a trailer. */
	if (!call->limit.answered && is_empty)
		call_end_head(call);
	return !call->cancelled;
}

bool http_call_take_body(struct http_call *call, struct bytes bytes)
{
	int r = 0;

	http_count(call->http, STAT_BYTES_READ, bytes.size);
	if (!call->limit.answered) /* a 101 without our asking */
		r = err_say(ERR_PROTOCOL, "%s: the answer is not HTTP (status %d)",
			call->http->name, call->status);
	else if (call->request.on_body && bytes.size > 0)
		r = call->request.on_body(call->request.arg, bytes);
	if (call->request.bulk)
		call->http->bulk_bytes += bytes.size;
	if (r && !call->cancelled)
		return call_stop(call, r);
	return !call->cancelled;
}

/* ---- failures ----------------------------------------------------------- */

/* Converts libcurl's result codes to error codes and sentences about server and reason. Other codes
 * are ERR_NETWORK, "no answer" or "answer cut off". */
static const struct failure {
	CURLcode code;
	int error;
	const char *words; /* NULL: as for other codes */
} failures[] = {
	{CURLE_OUT_OF_MEMORY, -ENOMEM, NULL},
	{CURLE_OPERATION_TIMEDOUT, ERR_TIMEOUT, "connecting took too long"},
	{CURLE_WEIRD_SERVER_REPLY, ERR_PROTOCOL, NULL},
	{CURLE_BAD_CONTENT_ENCODING, ERR_PROTOCOL, "the answer's Content-Encoding can't be read"},
	{CURLE_UNSUPPORTED_PROTOCOL, ERR_PROTOCOL, NULL},
	{CURLE_COULDNT_RESOLVE_HOST, ERR_NETWORK, "name not found"},
	{CURLE_COULDNT_RESOLVE_PROXY, ERR_NETWORK, "the proxy's name was not found"},
	{CURLE_COULDNT_CONNECT, ERR_NETWORK, "no connection"},
	{CURLE_PROXY, ERR_NETWORK, "the proxy could not connect to the server"},
	{CURLE_SSL_CONNECT_ERROR, ERR_TLS, "TLS"},
	{CURLE_SSL_CERTPROBLEM, ERR_TLS, "TLS"},
	{CURLE_PEER_FAILED_VERIFICATION, ERR_TLS, "TLS"},
	{CURLE_SSL_CACERT_BADFILE, ERR_TLS, "TLS"},
	{CURLE_SSL_CLIENTCERT, ERR_TLS, "TLS"},
};

int http_call_failure(const struct http_call *call, CURLcode code)
{
	const char *reason = call->reason[0] ? call->reason : curl_easy_strerror(code);
	struct failure failure = {.error = ERR_NETWORK};
	long os_error = 0, tunnel = 0, proxy_error = 0;
	const char *hint = "";

	(void)curl_easy_getinfo(call->easy, CURLINFO_HTTP_CONNECTCODE, &tunnel);
	(void)curl_easy_getinfo(call->easy, CURLINFO_PROXY_ERROR, &proxy_error);
	/* Over plain http a proxy's 407 looks like the server's answer; an API server never sends
	 * it. */
	if (call->status == 407 || tunnel == 407 || proxy_error == CURLPX_USER_REJECTED ||
		proxy_error == CURLPX_NO_AUTH)
		return err_say(ERR_NETWORK,
			"%s: the proxy wants a user and a password, or different ones",
			call->http->name);
	if (!code)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(failures); i++)
		if (failures[i].code == code)
			failure = failures[i];
	if (!failure.words)
		failure.words = call->limit.answered ? "answer cut off" : "no answer";
	/* For a refused connection the system's text says more than libcurl's. It is 0 when
	 * unknown. */
	(void)curl_easy_getinfo(call->easy, CURLINFO_OS_ERRNO, &os_error);
	if (code == CURLE_COULDNT_CONNECT && os_error)
		reason = err_name(-(int)os_error);
	if (code == CURLE_PEER_FAILED_VERIFICATION)
		hint = " (the certificate-authority of the kubeconfig must have signed the "
		       "server's certificate, for this name and time)";
	else if (strstr(reason, "wrong version number"))
		hint = " (no TLS is spoken there: is 'server' in the kubeconfig an http:// "
		       "address?)";
	else if (strstr(reason, "SSL_ERROR_SYSCALL") || strstr(reason, "unexpected eof"))
		hint = " (the connection was closed; perhaps no TLS is spoken there: is 'server' "
		       "in the kubeconfig an http:// address?)";
	return err_say(
		failure.error, "%s: %s: %s%s", call->http->name, failure.words, reason, hint);
}
