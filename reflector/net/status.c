/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/status.h"

#include <stdio.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "common/text/text.h"
#include "common/value/json.h"
#include "reflector/net/scan.h"

#define RETRY_AFTER_MAX_S 300 /* longer requests for a pause are cut to this */
#define REASON_MAX        100

static const char *const kind_names[FAILURE_KIND_MAX] = {
	[FAILURE_NETWORK] = "network",
	[FAILURE_PROTOCOL] = "protocol",
	[FAILURE_UNREADABLE] = "unreadable",
	[FAILURE_EXPIRED] = "expired",
	[FAILURE_RV_AHEAD] = "rv-ahead",
	[FAILURE_BUSY] = "busy",
	[FAILURE_UNAUTHORIZED] = "refused",
	[FAILURE_FORBIDDEN] = "forbidden",
	[FAILURE_ABSENT] = "absent",
	[FAILURE_REQUEST] = "request",
	[FAILURE_SERVER] = "server",
};

/* "": without a reason of its own. */
static const struct {
	const char *reason;
	int code;
	enum failure_kind kind;
} refusals[] = {
	{"Expired", 410, FAILURE_EXPIRED},
	{"Gone", 410, FAILURE_EXPIRED},
	{"TooManyRequests", 429, FAILURE_BUSY},
	{"", 502, FAILURE_BUSY},
	{"ServiceUnavailable", 503, FAILURE_BUSY},
	{"ServerTimeout", 504, FAILURE_BUSY},
	{"Timeout", 504, FAILURE_BUSY},
	{"Unauthorized", 401, FAILURE_UNAUTHORIZED},
	{"Forbidden", 403, FAILURE_FORBIDDEN},
	{"NotFound", 404, FAILURE_ABSENT},
	{"BadRequest", 400, FAILURE_REQUEST},
	{"MethodNotAllowed", 405, FAILURE_REQUEST},
	{"NotAcceptable", 406, FAILURE_REQUEST},
	{"UnsupportedMediaType", 415, FAILURE_REQUEST},
	{"Invalid", 422, FAILURE_REQUEST},
	{"InternalError", 500, FAILURE_SERVER},
	{"StorageReadError", 500, FAILURE_SERVER},
};

const char *failure_kind_name(enum failure_kind kind)
{
	return kind < FAILURE_KIND_MAX ? kind_names[kind] : "?";
}

/* REASON, if it is known, counts more than CODE; 429 decides always. */
static enum failure_kind status_kind(int code, struct bytes reason)
{
	enum failure_kind kind = FAILURE_SERVER;

	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		if (code != 429 && reason.size &&
			bytes_equal(reason, bytes_str(refusals[i].reason)))
			return refusals[i].kind;
		if (code == refusals[i].code)
			kind = refusals[i].kind;
	}
	return kind;
}

static uint64_t status_number(struct bytes value)
{
	const char *p = value.data;
	uint64_t n = 0;

	for (size_t i = 0; i < value.size && i < 9; i++) {
		if (p[i] < '0' || p[i] > '9')
			return 0;
		n = n * 10 + (uint64_t)(p[i] - '0');
	}
	return n;
}

/* Returns: the text of string member KEY, still escaped; empty when there is no such string. */
static struct bytes status_member(struct bytes object, const char *key)
{
	struct bytes value;

	if (scan_find(object, key, &value) != FOUND || value.size < 2 ||
		*(const char *)value.data != '"')
		return BYTES_LIT("");
	return BYTES((const char *)value.data + 1, value.size - 2);
}

static bool status_contains(struct bytes text, const char *what)
{
	return text.size && memmem(text.data, text.size, what, strlen(what));
}

/* Appends TEXT, control bytes as blanks. */
static void status_add_text(struct status *status, struct bytes text)
{
	size_t at = strlen(status->text);
	const unsigned char *p = text.data;

	for (size_t i = 0; i < text.size && at + 1 < sizeof(status->text); i++)
		status->text[at++] = p[i] < 0x20 || p[i] == 0x7f ? ' ' : (char)p[i];
	status->text[at] = '\0';
}

/* Appends at most MAX bytes of the text of a JSON string, as far as it makes sense. */
static void status_add_escaped(struct status *status, struct bytes text, size_t max)
{
	CLEANUP(buf_release) struct buf plain = BUF_INIT;
	char room[STATUS_TEXT];
	size_t size;

	void *to = buf_grow(&plain, text.size);
	if (!to)
		return; /* no memory: the number has to do */
	(void)json_unescape(text, to, text.size, &size);
	size = text_shorten(BYTES(to, size), room, max + 1);
	status_add_text(status, BYTES(room, size));
}

/* Reads {"kind":"Status", reason, message, details, code}. */
static void status_read_object(struct bytes body, struct status *status)
{
	struct bytes reason = status_member(body, "reason"),
		     message = status_member(body, "message");
	struct bytes code, details = BYTES_LIT("{}"), seconds;

	if (!status->code && scan_find(body, "code", &code) == FOUND)
		status->code = (int)status_number(code);
	(void)scan_find(body, "details", &details); /* absent: stays empty */
	if (!status->retry_after_ns && scan_find(details, "retryAfterSeconds", &seconds) == FOUND)
		status->retry_after_ns = status_number(seconds) * SECOND_NS;

	status->kind = status_kind(status->code, reason);
	/* Newer servers send the cause, older ones only the words. */
	if (status->kind == FAILURE_BUSY &&
		(status_contains(details, "ResourceVersionTooLarge") ||
			status_contains(message, "Too large resource version") ||
			status_contains(details, "Too large resource version")))
		status->kind = FAILURE_RV_AHEAD;
	snprintf(status->text, sizeof(status->text), "%d ", status->code);
	status_add_escaped(status, reason, REASON_MAX);
	status_add_text(status, reason.size && message.size ? BYTES_LIT(": ") : BYTES_LIT(""));
	status_add_escaped(status, message, STATUS_TEXT - 1 - strlen(status->text));
}

bool status_is_web_page(struct bytes body)
{
	const char *p = body.data;
	size_t i = 0;

	while (i < body.size && scan_is_space((uint8_t)p[i]))
		i++;
	return i < body.size && p[i] == '<';
}

/* Guesses the reason of a refusal with CODE and without a Status. */
static const char *status_hint(int code, struct bytes body)
{
	if (code >= 300 && code < 400)
		return ": a redirect, which is not followed, because it could carry the "
		       "credentials elsewhere: 'server' in the kubeconfig must be the API server "
		       "itself";
	if (status_is_web_page(body))
		return ": " STATUS_WEB_PAGE;
	if (code == 404)
		return ": the server has no such resource:";
	return body.size ? "" : ": the answer gives no reason";
}

void status_read(int code, uint64_t retry_after_ns, struct bytes body, struct status *ret_status)
{
	struct bytes kind;
	struct status status = {.code = code, .retry_after_ns = retry_after_ns};
	const char *p = body.data;

	while (body.size && scan_is_space((uint8_t)*p))
		body = BYTES(++p, body.size - 1);
	if (scan_find(body, "kind", &kind) == FOUND && bytes_equal(kind, BYTES_LIT("\"Status\""))) {
		status_read_object(body, &status);
	} else {
		status.kind = status_kind(code, BYTES_NONE);
		snprintf(status.text, sizeof(status.text), "%d%s ", code, status_hint(code, body));
		status_add_text(&status, BYTES(body.data, body.size > 200 ? 200 : body.size));
	}
	for (size_t n = strlen(status.text); n && strchr(" :", status.text[n - 1]);)
		status.text[--n] = '\0';
	if (status.kind == FAILURE_UNAUTHORIZED)
		status_add_text(&status,
			BYTES_LIT(" (the kubeconfig's credentials are not accepted: expired, or of "
				  "another cluster? Restart the reflector after correcting it)"));
	if (status.retry_after_ns > RETRY_AFTER_MAX_S * SECOND_NS)
		status.retry_after_ns = RETRY_AFTER_MAX_S * SECOND_NS;
	*ret_status = status;
}

void status_set(enum failure_kind kind, const char *text, struct status *ret_status)
{
	*ret_status = (struct status){.kind = kind};
	status_add_text(ret_status, bytes_str(text));
}
