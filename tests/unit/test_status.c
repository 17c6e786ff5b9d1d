/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "reflector/net/status.h"

#define SECOND 1000000000ull

static struct status read_one(int code, uint64_t retry_after_ns, const char *body)
{
	struct status status;

	status_read(code, retry_after_ns, bytes_str(body), &status);
	return status;
}

Test(status, the_reason_comes_before_the_number)
{
	struct status s = read_one(0, 0,
		"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
		"\"status\":\"Failure\",\"message\":\"too old resource version: 7 (42)\","
		"\"reason\":\"Expired\",\"code\":410}");

	cr_assert_eq(s.kind, FAILURE_EXPIRED);
	cr_assert_eq(s.code, 410);
	cr_assert_str_eq(s.text, "410 Expired: too old resource version: 7 (42)");
	cr_assert_eq(read_one(500, 0, "{\"kind\":\"Status\",\"reason\":\"Gone\"}").kind,
		FAILURE_EXPIRED);
	cr_assert_eq(
		read_one(410, 0, "{\"kind\":\"Status\",\"reason\":\"Odd\"}").kind, FAILURE_EXPIRED);
	cr_assert_eq(read_one(429, 0, "{\"kind\":\"Status\",\"reason\":\"Expired\"}").kind,
		FAILURE_BUSY);
}

Test(status, a_message_is_shown_without_its_escapes)
{
	struct status s = read_one(403, 0,
		"{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":"
		"\"User \\\"viewer\\\" cannot list \\\\x\\n\\u003c\\u00e4\\u003e\"}");

	cr_assert_str_eq(s.text, "403 Forbidden: User \"viewer\" cannot list \\x <\u00e4>");
}

Test(status, a_long_message_loses_its_middle)
{
	char body[4096], filler[2001];

	memset(filler, 'x', sizeof(filler) - 1);
	filler[sizeof(filler) - 1] = '\0';
	(void)snprintf(body, sizeof(body),
		"{\"kind\":\"Status\",\"message\":\"hooks can't be read \\u003c%s\\u003e: "
		"service \\\"nohook\\\" not found\",\"reason\":\"StorageReadError\"}",
		filler);
	struct status s = read_one(500, 0, body);

	cr_assert_eq(strlen(s.text), STATUS_TEXT - 1);
	cr_assert(!strncmp(s.text, "500 StorageReadError: hooks can't be read <xxx", 46), "%s",
		s.text);
	cr_assert(strstr(s.text, "xxx ... xxx"), "%s", s.text);
	cr_assert(strstr(s.text, "xxx>: service \"nohook\" not found"), "%s", s.text);

	(void)snprintf(body, sizeof(body),
		"{\"kind\":\"Status\",\"message\":\"the cause\",\"reason\":\"%s\"}", filler);
	cr_assert(strstr(read_one(500, 0, body).text, "xxx: the cause"));
}

Test(status, c13_c14_a_resource_version_from_the_future_is_known_by_cause_and_by_words)
{
	cr_assert_eq(read_one(504, 0,
			     "{\"kind\":\"Status\",\"reason\":\"Timeout\",\"message\":\"Timeout\","
			     "\"details\":{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\"}],"
			     "\"retryAfterSeconds\":1}}")
			     .kind,
		FAILURE_RV_AHEAD);
	cr_assert_eq(read_one(504, 0,
			     "{\"kind\":\"Status\",\"message\":\"Timeout: Too large resource "
			     "version: 9, current: 5\",\"reason\":\"Timeout\"}")
			     .kind,
		FAILURE_RV_AHEAD);
	cr_assert_eq(read_one(504, 0, "{\"kind\":\"Status\",\"reason\":\"Timeout\"}").kind,
		FAILURE_BUSY);
}

Test(status, retry_after_is_taken_from_header_or_details_and_bounded)
{
	const char *body = "{\"kind\":\"Status\",\"reason\":\"ServerTimeout\",\"details\":{"
			   "\"retryAfterSeconds\":2}}";

	cr_assert_eq(read_one(500, 0, body).retry_after_ns, 2 * SECOND);
	cr_assert_eq(read_one(500, 7 * SECOND, body).retry_after_ns, 7 * SECOND);
	cr_assert_eq(read_one(503, 1000000 * SECOND, "").retry_after_ns, 300 * SECOND);
	cr_assert_eq(
		read_one(503, 0, "{\"kind\":\"Status\",\"details\":{\"retryAfterSeconds\":-3}}")
			.retry_after_ns,
		0);
}

Test(status, every_number_has_a_kind_without_a_status_body)
{
	static const struct {
		int code;
		enum failure_kind kind;
	} cases[] = {{400, FAILURE_REQUEST}, {401, FAILURE_UNAUTHORIZED}, {403, FAILURE_FORBIDDEN},
		{404, FAILURE_ABSENT}, {405, FAILURE_REQUEST}, {410, FAILURE_EXPIRED},
		{422, FAILURE_REQUEST}, {429, FAILURE_BUSY}, {500, FAILURE_SERVER},
		{502, FAILURE_BUSY}, {503, FAILURE_BUSY}, {301, FAILURE_SERVER}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_assert_eq(
			read_one(cases[i].code, 0, "").kind, cases[i].kind, "%d", cases[i].code);
}

Test(status, c64_text_that_is_no_status_is_shown_printable_and_short)
{
	char page[2000];

	memset(page, '\n', sizeof(page) - 1);
	memcpy(page, "<html>bad\x1b gateway", 18);
	page[sizeof(page) - 1] = '\0';
	struct status s = read_one(502, 0, page);
	cr_assert_str_eq(s.text, "502: " STATUS_WEB_PAGE " <html>bad  gateway");
	s = read_one(200, 0, "no page <html>");
	cr_assert_str_eq(s.text, "200 no page <html>");
	cr_assert(strstr(read_one(302, 0, "").text, "302: a redirect, which is not followed"));
	cr_assert_str_eq(read_one(404, 0, "404 page not found\n").text,
		"404: the server has no such resource: 404 page not found");
	cr_assert_str_eq(read_one(404, 0, "").text, "404: the server has no such resource");
	cr_assert_str_eq(read_one(500, 0, " ").text, "500: the answer gives no reason");
	cr_assert(strstr(
		read_one(401, 0, "{\"kind\":\"Status\",\"reason\":\"Unauthorized\",\"code\":401}")
			.text,
		"401 Unauthorized (the kubeconfig's credentials are not accepted"));
	s = read_one(502, 0, "{\"kind\":\"Status\",\"reason\":");
	cr_assert_eq(s.kind, FAILURE_BUSY);
	status_set(FAILURE_NETWORK, "connection refused", &s);
	cr_assert_str_eq(s.text, "connection refused");
	cr_assert_eq(s.kind, FAILURE_NETWORK);
}
