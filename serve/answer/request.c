/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/answer/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "common/text/timestamp.h"
#include "serve/api/api_pretty.h"
#include "serve/api/api_protobuf.h"
#include "serve/chain.h"
#include "serve/http/forward.h"
#include "serve/http/gzip.h"

/* ---- the snapshot of a turn ---------------------------------------------- */

int answer_take_snapshot(struct answer_worker *worker)
{
	return worker->snapshot
		       ? snapshot_renew(worker->snapshot)
		       : snapshot_open(catalog_store(worker->answer->catalog), &worker->snapshot);
}

int answer_take_log(struct answer_worker *worker)
{
	return worker->snapshot ? snapshot_renew_log(worker->snapshot)
				: snapshot_open_log(catalog_store(worker->answer->catalog),
					  &worker->snapshot);
}

void answer_release_snapshot(struct answer_worker *worker)
{
	int r = worker->snapshot ? snapshot_reset(worker->snapshot) : 0;

	err_ignore(r < 0 ? r : 0, "what was read of it was checked before it was given out");
}

/* ---- its life ------------------------------------------------------------ */

static void answer_unpark(struct answer_request *request)
{
	if (request->is_waiting) {
		CHAIN_REMOVE(request);
	}
	request->is_waiting = false;
	serve_timer_set(&request->timer, UINT64_MAX);
}

void answer_set_stage(struct answer_request *request, void *stage, void (*free_stage)(void *stage))
{
	if (request->stage)
		request->free_stage(request->stage);
	request->stage = stage;
	request->free_stage = free_stage;
}

void answer_request_free(struct answer_request **request)
{
	struct answer_request *q = TAKE(*request);

	if (!q)
		return;
	CHECK_OBJ(q, ANSWER_REQUEST_MAGIC);
	auth_cancel(&q->pending);
	if (q->is_waiting)
		answer_unpark(q);
	serve_timer_release(&q->timer);
	answer_set_stage(q, NULL, NULL);
	printer_free(&q->printer);
	if (q->feed)
		catalog_release(&q->feed);
	buf_release(&q->key);
	buf_release(&q->body);
	buf_release(&q->deprecation);
	free(q->user);
	api_status_release(&q->status);
	api_options_release(&q->options);
	api_path_release(&q->path);
	q->magic = 0;
	free(q);
}

static void answer_gone(void *context)
{
	struct answer_request *request = context;

	answer_request_free(&request);
}

static void answer_timer(void *context)
{
	struct answer_request *request = context;

	if (request->is_waiting)
		answer_unpark(request);
	request->resume(request);
}

int answer_timer_init(struct answer_request *request)
{
	return request->timer.worker ? 0
				     : serve_timer_init(request->worker->worker, &request->timer,
					       answer_timer, request);
}

void answer_park(struct answer_request *request)
{
	if (!request->is_parked)
		exchange_park(request->x, answer_gone, request);
	request->is_parked = true;
}

void answer_wait(struct answer_request *request, bool soon)
{
	struct answer_worker *worker = request->worker;
	uint64_t now = proc_monotonic_ns();
	int r = answer_timer_init(request);

	if (r < 0) {
		answer_refuse(request, r);
		return;
	}
	answer_park(request);
	request->is_waiting = true;
	CHAIN_ADD(&worker->waiting, request);
	serve_timer_set(&request->timer, soon ? now : now + ANSWER_RETRY_NS);
}

static void answer_body_came(void *context)
{
	struct answer_request *request = context;
	bool end;
	struct bytes body = exchange_body(request->x, &end);

	buf_bytes_put(&request->body, body);
	exchange_body_take(request->x, body.size);
	int r = buf_error(&request->body);
	if (r == 0 && request->body.size > request->body_max)
		r = api_status_set(&request->status, 413, "RequestEntityTooLarge",
			"Request entity too large: limit is %zu", request->body_max);
	if (r == 0 && !end)
		return;
	exchange_on_body(request->x, NULL, NULL);
	if (r == 0)
		request->resume(request);
	else
		answer_refuse(request, r);
}

void answer_take_body(struct answer_request *request, size_t max)
{
	request->body_max = max;
	answer_park(request);
	exchange_on_body(request->x, answer_body_came, request);
	answer_body_came(request);
}

/* ---- its questions ------------------------------------------------------- */

int answer_matches(const struct answer_request *request, struct bytes body)
{
	const struct api_options *o = &request->options;
	int r = o->labels ? selector_match(o->labels, body) : 1;

	return r == 1 && o->fields ? selector_match(o->fields, body) : r;
}

const char *answer_verb_name(const struct answer_request *request)
{
	static const struct {
		const char *method, *verb;
	} verbs[] = {
		{"POST", "create"}, {"PUT", "update"}, {"PATCH", "patch"}, {"DELETE", "delete"}};
	static const char *const reads[] = {
		[ANSWER_GET] = "get", [ANSWER_LIST] = "list", [ANSWER_WATCH] = "watch"};

	for (size_t i = 0; !request->is_message && i < ARRAY_SIZE(verbs); i++)
		if (bytes_equal(request->x->method, bytes_str(verbs[i].method)))
			return strcmp(verbs[i].verb, "delete") == 0 && !*request->path.name
				       ? "deletecollection"
				       : verbs[i].verb;
	return reads[request->verb];
}

bool answer_is_read(const struct answer_request *request)
{
	return bytes_equal(request->x->method, BYTES_LIT("GET")) ||
	       bytes_equal(request->x->method, BYTES_LIT("HEAD"));
}

bool answer_is_of_feeds(const struct answer_request *request)
{
	return request->path.kind >= API_PATH_API && request->path.kind <= API_PATH_RESOURCES;
}

bool answer_takes_messages(const struct answer_request *request)
{
	const struct exchange *x = request->x;
	struct bytes protocol = exchange_header(x, "upgrade");

	bool is_socket = protocol.size == strlen("websocket") &&
			 strncasecmp(protocol.data, "websocket", protocol.size) == 0;
	/* A browser has its token among the protocols: only the API server reads it. */
	bool has_other_token =
		!exchange_header(x, "authorization").size && forward_has_credentials(x);

	return request->verb == ANSWER_WATCH && x->upgrade && is_socket && !has_other_token;
}

bool answer_may_forward(const struct answer_request *request)
{
	return request->worker->answer->forward && !request->unreachable &&
	       request->x->peer->auth != CONFIG_AUTH_OPEN;
}

bool answer_can_forward(const struct answer_request *request)
{
	return answer_may_forward(request) && forward_has_credentials(request->x);
}

struct metric_cell *answer_cell(const struct answer_request *request, enum metric metric)
{
	const struct feed_definition *d = &request->feed->definition;

	return metrics_cell(
		request->worker->answer->metrics, metric, (const char *[]){d->group, d->resource});
}

/* ---- its answer ---------------------------------------------------------- */

void answer_head_put(struct answer_head *head, const char *name, const char *value)
{
	REQUIRE(head->n < ARRAY_SIZE(head->headers));
	head->headers[head->n++] = (struct exchange_header){bytes_str(name), bytes_str(value)};
}

bool answer_is_stale(const struct answer_request *request, double *ret_age, char why[200])
{
	struct answer *answer = request->worker->answer;
	const struct catalog_feed *feed = request->feed;

	catalog_lock(answer->catalog);
	/* A feed without a list has nothing to be stale. The state may be a second old. */
	bool live = strcmp(feed->state, "live") == 0 || strcmp(feed->state, "listing") == 0 ||
		    !*feed->state || feed->timeline.visible == 0;
	*ret_age = feed->age_seconds;
	(void)snprintf(why, 200, "%.190s", *feed->why ? feed->why : feed->state);
	catalog_unlock(answer->catalog);
	for (char *p = why; *p; p++) /* no quotes or control characters in a header */
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

/* Puts the warning about a deprecated version of a custom resource. */
static void answer_head_deprecation(const struct answer_request *request, struct answer_head *head)
{
	struct bytes text = buf_bytes(&request->deprecation);
	char *out = head->deprecation;
	const char *end =
		out + sizeof(head->deprecation) - 4; /* an escape and the quotation mark */

	if (!text.size)
		return;
	out += snprintf(out, sizeof(head->deprecation), "299 - \"");
	for (const char *p = text.data; p < (const char *)text.data + text.size && out < end; p++) {
		if (*p == '"' || *p == '\\')
			*out++ = '\\';
		*out++ = *p;
	}
	(void)snprintf(out, 2, "\"");
	answer_head_put(head, "warning", head->deprecation);
}

void answer_head(const struct answer_request *request, const char *type, bool gzip,
	struct answer_head *ret_head)
{
	const struct api_path *path = &request->path;
	bool core = path->kind == API_PATH_RESOURCE && !*path->group;

	ret_head->n = 0;
	answer_head_put(ret_head, "content-type", type);
	if (gzip) {
		answer_head_put(ret_head, "content-encoding", "gzip");
		answer_head_put(ret_head, "vary", "Accept-Encoding");
	}
	/* The API server's warnings of deprecated resources, also with a refusal. */
	if (core && strcmp(path->resource, "endpoints") == 0)
		answer_head_put(ret_head, "warning",
			"299 - \"v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 "
			"EndpointSlice\"");
	else if (core && strcmp(path->resource, "componentstatuses") == 0)
		answer_head_put(ret_head, "warning",
			"299 - \"v1 ComponentStatus is deprecated in v1.19+\"");
	answer_head_deprecation(request, ret_head);
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

bool answer_is_pretty(const struct answer_request *request)
{
	return !request->accept.protobuf && (request->pretty || request->accept.pretty);
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
static bool answer_make_body(struct answer_request *request, bool is_binary, struct buf *json,
	struct buf *indented, struct bytes *ret_body)
{
	bool is_pretty = answer_is_pretty(request);
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

	if (!answer_make_body(request, request->accept.protobuf, json, &indented, &body))
		return;
	if (request->gzip && body.size > ANSWER_GZIP_BYTES) {
		int r = gzip_all(body, &packed);

		gzip = r == 0;
		err_ignore(r, "it is sent as it is");
	}
	answer_head(request, answer_type(request), gzip, &head);
	answer_send_body(request, 200, gzip ? buf_bytes(&packed) : body, &head);
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
	if (!answer_make_body(request, false, &json, &indented, &body))
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
		answer_head_put(&head, "allow", request->is_message ? "POST" : "GET, HEAD");
	answer_send_body(request, status->code, body, &head);
}

/* ---- its head ------------------------------------------------------------ */

/* The labels of metrics and access log. */
static void answer_set_labels(struct answer_request *request)
{
	static const char *const verbs[] = {
		[ANSWER_GET] = "GET", [ANSWER_LIST] = "LIST", [ANSWER_WATCH] = "WATCH"};
	struct exchange_labels *labels = request->x->labels;
	const struct api_path *path = &request->path;

	labels->verb = answer_is_read(request) ? verbs[request->verb] : answer_verb_name(request);
	if (path->kind != API_PATH_RESOURCE)
		return;
	labels->group = path->group;
	labels->version = path->version;
	labels->resource = path->resource;
	labels->subresource = path->subresource;
	labels->scope = *path->name ? "resource" : *path->namespace_ ? "namespace" : "cluster";
}

/* /watch/.../NAME is a watch of fieldSelector metadata.name=NAME. */
static int answer_watch_of_name(struct answer_request *request)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	const char *name = request->path.name;
	struct selector *fields = request->options.fields;

	for (size_t i = 0; fields && i < selector_count(fields); i++) {
		const struct selector_requirement *r = selector_at(fields, i);

		if (bytes_equal(r->key, BYTES_LIT("metadata.name")) &&
			(r->op != SELECTOR_IN || !bytes_equal(r->values[0], bytes_str(name))))
			return api_status_set(&request->status, 400, "BadRequest",
				"fieldSelector metadata.name doesn't match requested name");
	}
	buf_printf(&text, "%s%smetadata.name=%s", fields ? selector_text(fields) : "",
		fields ? "," : "", name);
	int r = buf_error(&text);
	selector_free(&request->options.fields);
	if (r == 0)
		r = selector_parse_fields(buf_cstr(&text), &request->options.fields);
	request->path.name = "";
	return r;
}

int answer_parse(struct answer_request *request)
{
	struct exchange *x = request->x;
	struct bytes agent = exchange_header(x, "user-agent");
	int r = api_path_parse(x->path, &request->path);

	if (r < 0)
		return r;
	request->verb = *request->path.name ? ANSWER_GET : ANSWER_LIST;
	answer_set_labels(request);
	if (request->path.kind == API_PATH_MALFORMED)
		return api_status_set(&request->status, 400, "BadRequest",
			"the path has a percent sign without two hexadecimal digits");
	bool lists = request->path.kind == API_PATH_RESOURCE &&
		     (request->path.is_watch || !*request->path.name);
	r = api_options_parse(x->query, lists, &request->options, &request->status);
	request->verb = request->path.is_watch   ? ANSWER_WATCH
			: *request->path.name    ? ANSWER_GET
			: request->options.watch ? ANSWER_WATCH
						 : ANSWER_LIST;
	if (r == 0 && request->verb == ANSWER_WATCH && *request->path.name)
		r = answer_watch_of_name(request);
	request->gzip = api_accept_gzip(exchange_header(x, "accept-encoding"));
	request->pretty = request->options.pretty_given
				  ? request->options.pretty
				  : bytes_starts(agent, BYTES_LIT("curl")) ||
					    bytes_starts(agent, BYTES_LIT("Wget")) ||
					    bytes_starts(agent, BYTES_LIT("Mozilla/5.0"));
	request->is_leaf = bytes_starts(agent, BYTES_LIT("kinf-reflector/"));
	answer_set_labels(request);
	return r;
}
