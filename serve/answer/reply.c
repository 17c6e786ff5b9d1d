/* SPDX-License-Identifier: Apache-2.0 */
/* Whole answers: headers, Status objects, indented and compressed bodies. */
#include "serve/answer/answer_internal.h"

#include <stdio.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "common/timestamp.h"
#include "serve/api/api_protobuf.h"
#include "serve/http/gzip.h"

void answer_head_put(struct answer_head *head, const char *name, const char *value)
{
	REQUIRE(head->n < sizeof(head->headers) / sizeof(*head->headers));
	head->headers[head->n++] = (struct exchange_header){bytes_str(name), bytes_str(value)};
}

bool answer_is_stale(const struct answer_request *request, double *ret_age, char why[200])
{
	struct answer *answer = request->worker->answer;
	const struct catalog_feed *feed = request->feed;

	catalog_lock(answer->catalog);
	/* A feed that was never listed has nothing to be stale. The state may be a second old. */
	bool live = strcmp(feed->state, "live") == 0 || strcmp(feed->state, "listing") == 0 ||
		    !*feed->state || feed->timeline.visible == 0;
	*ret_age = feed->age_seconds;
	(void)snprintf(why, 200, "%.190s", *feed->why ? feed->why : feed->state);
	catalog_unlock(answer->catalog);
	for (char *p = why; *p; p++) /* characters that a header or a plain string can't quote */
		if (*p == '"' || *p == '\\' || (unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e)
			*p = '\'';
	return !live;
}

void answer_head_stale(const struct answer_request *request, struct answer_head *head)
{
	char since[TIMESTAMP_SIZE] = "an unknown time", why[200];
	double age;

	if (!request->feed || !answer_is_stale(request, &age, why))
		return;
	if (age >= 0) {
		uint64_t now = proc_realtime_ns(), ago = (uint64_t)age * 1000000000;

		timestamp_seconds(now > ago ? now - ago : 0, since);
		(void)snprintf(head->age, sizeof(head->age), "%.0f", age);
		answer_head_put(head, "age", head->age);
	}
	(void)snprintf(head->warning, sizeof(head->warning), "299 - \"%.100s: stale since %s: %s\"",
		request->feed->definition.name, since, why);
	answer_head_put(head, "warning", head->warning);
}

void answer_head(const struct answer_request *request, const char *type, bool gzip,
	struct answer_head *ret_head)
{
	const struct api_path *path = &request->path;

	ret_head->n = 0;
	answer_head_put(ret_head, "content-type", type);
	if (gzip) {
		answer_head_put(ret_head, "content-encoding", "gzip");
		answer_head_put(ret_head, "vary", "Accept-Encoding");
	}
	/* Also with a refusal. */
	if (path->kind == API_PATH_RESOURCE && !*path->group &&
		strcmp(path->resource, "endpoints") == 0)
		answer_head_put(ret_head, "warning",
			"299 - \"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 "
			"EndpointSlice\"");
	answer_head_stale(request, ret_head);
}

/* Sends BODY under HEAD and frees the request. */
static void answer_send_body(
	struct answer_request *request, int code, struct bytes body, struct answer_head *head)
{
	struct exchange *x = request->x;

	exchange_begin(x, code, head->headers, head->n);
	exchange_send(x, body);
	answer_request_free(&request);
}

const char *answer_type(const struct answer_request *request)
{
	if (!request->accept.protobuf)
		return "application/json";
	return request->verb == ANSWER_WATCH ? API_PROTOBUF_WATCH_TYPE : API_PROTOBUF_TYPE;
}

/* Makes the body of an answer from JSON: indented, in INDENTED, or with a line break at its end.
 * IS_BINARY: it is none. Without memory the request is answered with 500 and freed. Returns
 * whether there is a body. */
static bool answer_make_body(struct answer_request *request, bool is_binary, bool is_pretty,
	struct buf *json, struct buf *indented, struct bytes *ret_body)
{
	struct buf *body = is_pretty ? indented : json;
	struct api_pretty pretty = {0};

	if (is_pretty)
		api_pretty_put(&pretty, buf_bytes(json), indented);
	else if (!is_binary)
		buf_byte(json, '\n');
	int r = buf_error(json);
	if (r == 0)
		r = buf_error(body);
	if (r < 0) {
		exchange_refuse(request->x, 500, "InternalError", err_text(r), 1);
		answer_request_free(&request);
		return false;
	}
	*ret_body = buf_bytes(body);
	return true;
}

void answer_send(struct answer_request *request, struct buf *json)
{
	CLEANUP(buf_release) struct buf indented = BUF_INIT, packed = BUF_INIT;
	struct answer_head head;
	struct bytes body;
	bool gzip = false;

	if (!answer_make_body(request, request->accept.protobuf, answer_is_pretty(request), json,
		    &indented, &body))
		return;
	if (request->gzip && body.size > ANSWER_GZIP_BYTES) {
		int r = gzip_all(body, &packed);

		gzip = r == 0;
		err_ignore(r, "it is sent as it is");
	}
	answer_head(request, answer_type(request), gzip, &head);
	answer_send_body(request, 200, gzip ? buf_bytes(&packed) : body, &head);
}

int answer_refusal_form(struct answer_request *request, int r)
{
	CLEANUP(api_status_release) struct api_status unused = API_STATUS_INIT;
	bool replaces = r > 0 && request->path.kind == API_PATH_RESOURCE;
	struct api_accept accept;
	int found = api_accept_parse(exchange_header(request->x, "accept"), false, &accept,
		replaces ? &request->status : &unused);

	request->accept.plain_errors = accept.plain_errors;
	return replaces && found ? found : r;
}

void answer_refuse(struct answer_request *request, int r)
{
	CLEANUP(buf_release) struct buf json = BUF_INIT, indented = BUF_INIT;
	struct api_status *status = &request->status;
	struct answer_head head;
	struct bytes body;

	if (r < 0 || status->code == 0)
		api_status_internal(status, r);
	r = api_status_write(status, &json);
	err_ignore(r, "the buffer keeps the error");
	bool is_pretty = !request->accept.plain_errors || answer_is_pretty(request);

	/* Clients that read a watch by lines (kube-rs) would take each line for an error of its
	 * own, and wait longer after each. The API server says nothing while it is away. */
	if (request->verb == ANSWER_WATCH && (status->retry_after || status->code == 503))
		is_pretty = false;
	if (!answer_make_body(request, false, is_pretty, &json, &indented, &body))
		return;
	if (request->feed && status->code == 410)
		metric_add(answer_cell(request, METRIC_GONE), 1);
	answer_head(request, "application/json", false, &head);
	if (status->retry_after) {
		(void)snprintf(head.retry, sizeof(head.retry), "%d", status->retry_after);
		answer_head_put(&head, "retry-after", head.retry);
	}
	if (status->code == 403)
		answer_head_put(&head, "x-content-type-options", "nosniff");
	if (status->code == 405)
		answer_head_put(&head, "allow", "GET, HEAD");
	answer_send_body(request, status->code, body, &head);
}
