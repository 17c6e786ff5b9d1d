/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the authorizer whether the client may make the request, and refuses it if not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "reader/serve/answer_internal.h"

static int answer_denied(struct answer_request *request)
{
	const struct api_path *path = &request->path;
	const char *why = request->reason ? request->reason : "";
	const char *user = request->user ? request->user : "";
	char where[160];

	if (request->decision == AUTH_UNAUTHENTICATED)
		return api_status_set(&request->status, 401, "Unauthorized", "Unauthorized");
	if (request->decision == AUTH_UNAVAILABLE) {
		api_status_set(&request->status, 503, "ServiceUnavailable", "%s",
			*why ? why : "the API server can't be asked who you are");
		request->status.retry_after = 1;
		return 503;
	}
	if (path->kind != API_PATH_RESOURCE) {
		api_status_set(&request->status, 403, "Forbidden",
			"forbidden: User \"%s\" cannot %s path \"%.*s\"%s%s", user,
			"get", BYTES_ARG(request->x->path), *why ? ": " : "", why);
		request->status.has_details = true;
		return 403;
	}
	(void)snprintf(where, sizeof(where), *path->namespace_ ? "in the namespace \"%.100s\""
							       : "at the cluster scope",
		path->namespace_);
	api_status_set(&request->status, 403, "Forbidden",
		"%s%s%s%s%s%s is forbidden: User \"%s\" cannot %s resource \"%s\" in API group "
		"\"%s\" "
		"%s%s%s",
		path->resource, *path->group ? "." : "", path->group, *path->name ? " \"" : "",
		path->name, *path->name ? "\"" : "", user, answer_verb_name(request),
		path->resource, path->group, where, *why ? ": " : "", why);
	api_status_details(&request->status, path->group, path->resource, path->name);
	return 403;
}

void answer_go_on(struct answer_request *request)
{
	if (request->decision == AUTH_ALLOWED)
		answer_dispatch(request);
	else
		answer_refuse(request, answer_denied(request));
}

void answer_decided(void *context, const struct auth_decision *decision)
{
	struct answer_request *request = context;

	CHECK_OBJ(request, ANSWER_REQUEST_MAGIC);
	request->decided = true;
	request->pending = NULL;
	request->decision = decision->answer;
	/* They are for messages and the log. It is decided again if forwarding fails. */
	free(request->user);
	free(request->reason);
	request->user = strdup(decision->user);
	request->reason = *decision->reason ? strdup(decision->reason) : NULL;
	request->x->labels->user = request->user ? request->user : "";
	if (!request->deciding)
		answer_go_on(request);
}

void answer_decide(struct answer_request *request, auth_decided_fn *fn)
{
	struct answer *answer = request->worker->answer;
	const struct api_path *path = &request->path;
	bool is_resource = path->kind == API_PATH_RESOURCE;
	CLEANUP(buf_release) struct buf whole = BUF_INIT;
	struct selector *labels = request->options.labels, *fields = request->options.fields;

	if (!is_resource)
		buf_bytes_put(&whole, request->x->path);
	const struct auth_attributes attributes = {
		.verb = is_resource ? answer_verb_name(request) : "get",
		.group = path->group,
		.version = path->version,
		.resource = is_resource ? path->resource : "",
		.subresource = is_resource ? path->subresource : "",
		.namespace_ = path->namespace_,
		.name = is_resource ? path->name : "",
		.path = is_resource ? "" : buf_cstr(&whole),
		.label_selector = labels ? selector_text(labels) : "",
		.field_selector = fields ? selector_text(fields) : "",
	};
	request->pending = NULL;
	auth_decide(answer->auth, request->x, &attributes, fn, request, &request->pending);
}
