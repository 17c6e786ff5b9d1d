/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/head.h"
#include "tests/unit/unit.h"

static int lines(struct http_head *head, const char *const *line)
{
	int r = 0;

	*head = (struct http_head){0};
	for (; *line && !r; line++)
		r = head_line(head, bytes_str(*line));
	return r;
}

Test(head, of_both_versions_is_read)
{
	struct http_head head;

	cr_assert_eq(lines(&head, (const char *[]){"HTTP/2 200 \r\n",
					  "CONTENT-type:  application/json;charset=x\r\n",
					  "warning: 299 - \"old\"\r\n",
					  "warning: 299 - \"second\"\r\n", "\r\n", NULL}),
		END);
	cr_assert_eq(head.version, 2);
	cr_assert_eq(head.status, 200);
	cr_assert_str_eq(head.content_type, "application/json;charset=x");
	cr_assert_str_eq(head.warning, "old; second");
	cr_assert_eq(
		lines(&head, (const char *[]){"HTTP/1.1 503 X", "retry-after: 1", "", NULL}), END);
	cr_assert_eq(head.version, 1);
	cr_assert_eq(head.status, 503);
	cr_assert(head.has_retry_after);
}

Test(head, c32_only_a_number_of_seconds_says_when_to_come_again)
{
	static const struct {
		const char *line;
		bool has;
		uint32_t seconds;
	} cases[] = {
		{"Retry-After: 0", true, 0},
		{"Retry-After: 120 \r\n", true, 120},
		{"retry-after:7", true, 7},
		{"Retry-After: 99999999999999999999999999999", true, UINT32_MAX},
		{"Retry-After: soon"},
		{"Retry-After: -1"},
		{"Retry-After: 1.5"},
		{"Retry-After: 1 s"},
		{"Retry-After: "},
		{"Retry-After: Fri, 31 Dec 2100 23:59:59 GMT"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct http_head head;

		lines(&head, (const char *[]){"HTTP/1.1 429 X", cases[i].line, NULL});
		cr_assert_eq(head.has_retry_after, cases[i].has, "%s", cases[i].line);
		cr_assert_eq(head.retry_after_s, cases[i].seconds, "%s", cases[i].line);
	}
}

Test(head, c61_warnings_are_joined_as_far_as_there_is_room)
{
	struct http_head head = {0};
	char line[200];

	snprintf(line, sizeof(line), "Warning: 299 - \"%0150d\"", 7);
	for (int i = 0; i < 5; i++)
		cr_assert_eq(head_line(&head, bytes_str(line)), 0);
	cr_assert_eq(strlen(head.warning), sizeof(head.warning) - 1);
	cr_assert_eq(strncmp(head.warning + 149, "7; 000", 6), 0, "%s", head.warning);
}

Test(head, interim_answer_leaves_nothing_behind)
{
	struct http_head head;

	cr_assert_eq(
		lines(&head, (const char *[]){"HTTP/1.1 100 Continue", "Retry-After: 9", "", NULL}),
		0);
	cr_assert_eq(head_line(&head, BYTES_LIT("HTTP/1.1 200 OK")), 0);
	cr_assert_eq(head_line(&head, BYTES_LIT("")), END);
	cr_assert(!head.has_retry_after);
}

Test(head, nonsense_is_no_status)
{
	struct http_head head;

	cr_assert_eq(lines(&head, (const char *[]){"HTTP/", "", NULL}), 0);
	cr_assert_eq(lines(&head, (const char *[]){"HTTP/2 99999999999999999999", NULL}), 0);
	cr_assert_eq(head.status, 999);
	cr_assert_eq(lines(&head, (const char *[]){"HTTP/2 -5", "", NULL}), 0);
	cr_assert_eq(head.status, 0);
}
