/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/status.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "tests/simulator/jsontext.h"

static const struct status too_large = {.code = 504,
	.reason = "Timeout",
	.details = "{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\","
		   "\"message\":\"Too large resource version\"}],\"retryAfterSeconds\":1}",
	.retry_after = 1};

#define TOO_LARGE_TEXT "Timeout: Too large resource version: %" PRIu64 ", current: %" PRIu64

void status_put(struct buf *out, const struct status *status, const char *message)
{
	buf_str(out, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{");
	if (status->continuation)
		buf_printf(out, "\"continue\":\"%s\"", status->continuation);
	buf_str(out, "},\"status\":\"Failure\",\"message\":");
	jsontext_put_string(out, bytes_str(message));
	if (status->reason[0])
		buf_printf(out, ",\"reason\":\"%s\"", status->reason);
	if (status->details)
		buf_printf(out, ",\"details\":%s", status->details);
	buf_printf(out, ",\"code\":%u}", status->code);
}

static void status_answer_text(struct http_answer *answer, const struct status *status,
	const char *format, va_list arguments)
{
	char message[2048];

	(void)vsnprintf(message, sizeof(message), format, arguments); /* cut if ever too long */
	answer->status = status->code;
	buf_reset(&answer->body);
	status_put(&answer->body, status, message);
	buf_byte(&answer->body, '\n');
	http_answer_header(answer, "Content-Type", "application/json");
	if (status->retry_after) {
		char seconds[16];

		(void)snprintf(seconds, sizeof(seconds), "%u", status->retry_after); /* it fits */
		http_answer_header(answer, "Retry-After", seconds);
	}
}

void status_answer(struct http_answer *answer, const struct status *status, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	status_answer_text(answer, status, format, arguments);
	va_end(arguments);
}

void status_bad_request(struct http_answer *answer, const char *format, ...)
{
	static const struct status status = {.code = 400, .reason = "BadRequest"};
	va_list arguments;

	va_start(arguments, format);
	status_answer_text(answer, &status, format, arguments);
	va_end(arguments);
}

void status_no_resource(struct http_answer *answer)
{
	static const struct status status = {.code = 404, .reason = "NotFound", .details = "{}"};

	status_answer(answer, &status, "the server could not find the requested resource");
}

void status_too_large(struct http_answer *answer, uint64_t rv, uint64_t current)
{
	status_answer(answer, &too_large, TOO_LARGE_TEXT, rv, current);
}

void status_put_too_large(struct buf *out, uint64_t rv, uint64_t current)
{
	char message[120];

	(void)snprintf(message, sizeof(message), TOO_LARGE_TEXT, rv, current); /* it fits */
	status_put(out, &too_large, message);
}
