/* SPDX-License-Identifier: Apache-2.0 */
/* Whole answers: headers, Status objects, indented and compressed bodies. */
#include "reader/serve/answer_internal.h"

#include <stdio.h>
#include <time.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "reader/serve/gzip.h"

void answer_head_put(struct answer_head *head, const char *name, const char *value)
{
	REQUIRE(head->n < sizeof(head->headers) / sizeof(*head->headers));
	head->headers[head->n++] = (struct exchange_header){bytes_str(name), bytes_str(value)};
}

/* Says how old the answer is, and why, while the feed is not live. */
static void answer_head_stale(const struct answer_request *request, struct answer_head *head)
{
	struct answer *answer = request->worker->answer;
	const struct catalog_feed *feed = request->feed;
	char since[40] = "an unknown time", why[200];
	double age;

	catalog_lock(answer->catalog);
	bool live = strcmp(feed->state, "live") == 0 || !*feed->state;
	age = feed->age_seconds;
	(void)snprintf(why, sizeof(why), "%.190s", *feed->why ? feed->why : feed->state);
	catalog_unlock(answer->catalog);
	if (live)
		return;
	if (age >= 0) {
		time_t then = time(NULL) - (time_t)age;
		struct tm utc;

		(void)strftime(since, sizeof(since), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&then, &utc));
		(void)snprintf(head->age, sizeof(head->age), "%.0f", age);
		answer_head_put(head, "age", head->age);
	}
	for (char *p = why; *p; p++) /* a header has no such characters */
		if (*p == '"' || *p == '\\' || (unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e)
			*p = '\'';
	(void)snprintf(head->warning, sizeof(head->warning), "299 - \"%.100s: stale since %s: %s\"",
		feed->definition.name, since, why);
	answer_head_put(head, "warning", head->warning);
}

void answer_head(const struct answer_request *request, const char *type, bool gzip,
	struct answer_head *ret_head)
{
	ret_head->n = 0;
	answer_head_put(ret_head, "content-type", type);
	if (gzip) {
		answer_head_put(ret_head, "content-encoding", "gzip");
		answer_head_put(ret_head, "vary", "Accept-Encoding");
	}
	if (request->feed)
		answer_head_stale(request, ret_head);
}

/* Sends BODY, compressed if it is large and the client likes, and frees the request. */
static void answer_send_body(struct answer_request *request, int code, struct bytes body,
	struct answer_head *head)
{
	struct exchange *x = request->x;

	exchange_begin(x, code, head->headers, head->n);
	exchange_send(x, body);
	answer_request_free(&request);
}

void answer_send(struct answer_request *request, int code, struct bytes json, const char *type)
{
	CLEANUP(buf_release) struct buf body = BUF_INIT, packed = BUF_INIT;
	struct api_pretty pretty = {0};
	struct answer_head head;
	bool gzip = false;

	if (request->pretty || request->accept.pretty) {
		api_pretty_put(&pretty, json, &body);
	} else {
		buf_bytes_put(&body, json);
		buf_byte(&body, '\n');
	}
	int r = buf_error(&body);
	if (r == 0 && request->gzip && body.size > ANSWER_GZIP_BYTES) {
		r = gzip_all(buf_bytes(&body), &packed);
		gzip = r == 0;
		err_ignore(r, "it is sent as it is");
		r = 0;
	}
	if (r < 0) {
		exchange_refuse(request->x, 500, "InternalError", err_text(r), 1);
		answer_request_free(&request);
		return;
	}
	answer_head(request, type, gzip, &head);
	answer_send_body(request, code, gzip ? buf_bytes(&packed) : buf_bytes(&body), &head);
}

void answer_send_text(struct answer_request *request, int code, const char *text)
{
	struct answer_head head = {.n = 0};

	answer_head_put(&head, "content-type", "text/plain; charset=utf-8");
	answer_head_put(&head, "x-content-type-options", "nosniff");
	answer_send_body(request, code, bytes_str(text), &head);
}

void answer_refuse(struct answer_request *request, int r)
{
	CLEANUP(buf_release) struct buf json = BUF_INIT, body = BUF_INIT;
	struct api_status *status = &request->status;
	struct api_pretty pretty = {0};
	struct answer_head head;

	if (r < 0 || status->code == 0)
		api_status_internal(status, r);
	r = api_status_write(status, &json);
	if (r == 0 && (status->code == 406 || request->pretty || request->accept.pretty)) {
		api_pretty_put(&pretty, buf_bytes(&json), &body);
	} else {
		buf_bytes_put(&body, buf_bytes(&json));
		buf_byte(&body, '\n');
	}
	if (r == 0)
		r = buf_error(&body);
	if (r < 0) {
		exchange_refuse(request->x, 500, "InternalError", err_text(r), 1);
		answer_request_free(&request);
		return;
	}
	if (request->feed)
		catalog_release(&request->feed);
	answer_head(request, "application/json", false, &head);
	if (status->retry_after) {
		(void)snprintf(head.retry, sizeof(head.retry), "%d", status->retry_after);
		answer_head_put(&head, "retry-after", head.retry);
	}
	if (status->code == 405)
		answer_head_put(&head, "allow", "GET, HEAD");
	answer_send_body(request, status->code, buf_bytes(&body), &head);
}
