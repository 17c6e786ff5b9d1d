/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api/api_status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/utf8.h"
#include "common/value/json.h"

void api_status_release(struct api_status *status)
{
	free(status->causes);
	buf_release(&status->message);
	buf_release(&status->object);
	buf_release(&status->token);
	*status = API_STATUS_INIT;
}

int api_status_set(struct api_status *status, int code, const char *reason, const char *format, ...)
{
	va_list arguments;

	status->code = code;
	status->reason = reason;
	status->has_details = false;
	status->n_causes = 0;
	status->retry_after = 0;
	buf_reset(&status->object);
	buf_reset(&status->token);
	buf_reset(&status->message);
	va_start(arguments, format);
	buf_vprintf(&status->message, format, arguments);
	va_end(arguments);
	return code;
}

void api_status_details(
	struct api_status *status, const char *group, const char *kind, const char *name)
{
	const char *const texts[] = {name, group, kind};

	status->has_details = true;
	buf_reset(&status->object);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		buf_str(&status->object, texts[i] ? texts[i] : "");
		buf_byte(&status->object, '\0');
	}
}

void api_status_cause(
	struct api_status *status, const char *reason, const char *field, const char *format, ...)
{
	va_list arguments;

	if (!status->causes)
		status->causes = calloc(API_STATUS_CAUSES, sizeof(*status->causes));
	if (!status->causes || status->n_causes == API_STATUS_CAUSES)
		return; /* the message says the same */
	struct api_status_cause *cause = &status->causes[status->n_causes++];

	status->has_details = true;
	cause->reason = reason;
	cause->field = field;
	va_start(arguments, format);
	(void)vsnprintf(cause->message, sizeof(cause->message), format, arguments);
	va_end(arguments);
}

/* ---- common refusals ---------------------------------------------------- */

int api_status_starting(struct api_status *status)
{
	api_status_set(status, 503, "ServiceUnavailable",
		"the request has been made before all known HTTP paths have been installed, please "
		"try again: nothing is watched yet");
	status->retry_after = 1;
	return 503;
}

int api_status_no_method(struct api_status *status)
{
	api_status_set(status, 405, "MethodNotAllowed",
		"the server does not allow this method on the requested resource");
	status->has_details = true;
	return 405;
}

int api_status_unknown_path(struct api_status *status)
{
	api_status_set(status, 404, "NotFound", "the server could not find the requested resource");
	status->has_details = true;
	return 404;
}

void api_status_quote(struct buf *out, const char *name)
{
	static const char letters[] = "abtnvfr"; /* from 0x07 on */

	buf_byte(out, '"');
	for (size_t n; *name; name += n) {
		size_t valid = utf8_length(bytes_str(name));
		uint8_t c = (uint8_t)*name;

		n = valid ? valid : 1;
		if (c == '"' || c == '\\')
			buf_printf(out, "\\%c", c);
		else if (c >= 0x07 && c <= 0x0d)
			buf_printf(out, "\\%c", letters[c - 0x07]);
		else if (c < ' ' || c == 0x7f || !valid)
			buf_printf(out, "\\x%02x", c);
		else
			buf_put(out, name, n);
	}
	buf_byte(out, '"');
}

int api_status_no_object(
	struct api_status *status, const char *group, const char *resource, const char *name)
{
	api_status_set(status, 404, "NotFound", "%s%s%s ", resource, *group ? "." : "", group);
	api_status_quote(&status->message, name);
	buf_str(&status->message, " not found");
	api_status_details(status, group, resource, name);
	return 404;
}

int api_status_expired(struct api_status *status, const char *format, ...)
{
	va_list arguments;

	api_status_set(status, 410, "Expired", "%s", "");
	va_start(arguments, format);
	buf_vprintf(&status->message, format, arguments);
	va_end(arguments);
	return 410;
}

int api_status_too_old(struct api_status *status)
{
	return api_status_expired(status, "The resourceVersion for the provided list is too old.");
}

int api_status_initializing(struct api_status *status, const char *why)
{
	api_status_set(status, 429, "TooManyRequests", "storage is (re)initializing%s%s",
		*why ? ": " : "", why);
	status->retry_after = 1;
	return 429;
}

int api_status_overloaded(struct api_status *status, const char *why)
{
	api_status_set(status, 429, "TooManyRequests", "%s", why);
	status->retry_after = 1;
	return 429;
}

int api_status_too_large(struct api_status *status, const char *n, const char *current)
{
	api_status_set(status, 504, "Timeout",
		"Timeout: Too large resource version: %s, current: %s", n, current);
	api_status_cause(status, "ResourceVersionTooLarge", NULL, "Too large resource version");
	status->retry_after = 1;
	return 504;
}

int api_status_internal(struct api_status *status, int error)
{
	char text[ERR_TEXT_MAX];

	(void)snprintf(text, sizeof(text), "%s", err_text(error));
	api_status_set(status, 500, "InternalError", "Internal error occurred: %s", text);
	api_status_cause(status, NULL, NULL, "%.150s", text);
	return 500;
}

/* ---- JSON --------------------------------------------------------------- */

/* Puts the separator and the key of a member. */
static void api_status_key(struct buf *out, bool *is_first, const char *key)
{
	buf_printf(out, "%s\"%s\":", *is_first ? "" : ",", key);
	*is_first = false;
}

/* Puts a member. A client's text may be no UTF-8: it is written as Go writes it. */
static void api_status_text(struct buf *out, bool *is_first, const char *key, struct bytes text)
{
	CLEANUP(buf_release) struct buf character = BUF_INIT;

	if (!text.size)
		return;
	api_status_key(out, is_first, key);
	if (utf8_is_valid(text)) {
		json_write_string(text, out);
		return;
	}
	buf_byte(out, '"');
	for (size_t n; text.size; text = BYTES((const char *)text.data + n, text.size - n)) {
		size_t valid = utf8_length(text);

		n = valid ? valid : 1;
		buf_reset(&character);
		if (valid)
			json_write_string(BYTES(text.data, valid), &character);
		else
			buf_str(&character, "\"\\ufffd\"");
		if (character.size > 2)
			buf_put(out, character.data + 1, character.size - 2);
	}
	buf_byte(out, '"');
}

static void api_status_put_details(const struct api_status *status, struct buf *out)
{
	static const char *const members[] = {"name", "group", "kind"};
	bool is_first = true;

	buf_byte(out, '{');
	for (size_t i = 0, at = 0; i < 3 && at < status->object.size; i++) {
		struct bytes text = bytes_str((const char *)status->object.data + at);

		api_status_text(out, &is_first, members[i], text);
		at += text.size + 1;
	}
	if (status->n_causes)
		api_status_key(out, &is_first, "causes");
	for (size_t i = 0; i < status->n_causes; i++) {
		const struct api_status_cause *cause = &status->causes[i];
		bool first_member = true;

		buf_str(out, i ? ",{" : "[{");
		api_status_text(out, &first_member, "reason", bytes_str(cause->reason));
		api_status_text(out, &first_member, "message", bytes_str(cause->message));
		api_status_text(out, &first_member, "field", bytes_str(cause->field));
		buf_str(out, i + 1 < status->n_causes ? "}" : "}]");
	}
	if (status->retry_after) {
		api_status_key(out, &is_first, "retryAfterSeconds");
		buf_printf(out, "%d", status->retry_after);
	}
	buf_byte(out, '}');
}

int api_status_write(const struct api_status *status, struct buf *out)
{
	bool is_first = true, no_token = true;

	buf_str(out, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{");
	api_status_text(out, &no_token, "continue", buf_bytes(&status->token));
	buf_str(out, "},\"status\":\"Failure\",");
	api_status_text(out, &is_first, "message", buf_bytes(&status->message));
	api_status_text(out, &is_first, "reason", bytes_str(status->reason));
	if (status->has_details || status->retry_after) {
		api_status_key(out, &is_first, "details");
		api_status_put_details(status, out);
	}
	api_status_key(out, &is_first, "code");
	buf_printf(out, "%d}", status->code);
	return buf_error(out);
}
