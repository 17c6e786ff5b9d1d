/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/answer/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"

/* Returns true if the request is a watch by its path, /watch/...: the API server decides on it
 * without its selectors. */
static bool authorize_by_path(const struct answer_request *request)
{
	return request->path.is_watch && !request->path.is_named;
}

/* Appends the name of the object: the path's, or the only one of a list's or watch's field
 * selector. Roles with resourceNames allow such a list. */
static void authorize_put_object(const struct answer_request *request, struct buf *out)
{
	const struct api_path *path = &request->path;
	struct bytes name = bytes_str(path->name);

	if (!name.size && answer_is_read(request) && !authorize_by_path(request))
		name = selector_value(request->options.fields, "metadata.name");
	if (path->kind != API_PATH_RESOURCE || bytes_equal(name, BYTES_LIT(".")) ||
		bytes_equal(name, BYTES_LIT("..")) ||
		(name.size &&
			(memchr(name.data, '/', name.size) || memchr(name.data, '%', name.size))))
		return;
	buf_bytes_put(out, name);
}

/* Returns the namespace of the request. A namespace is in itself: roles there allow to read it. So
 * is, to the API server, any object of a resource of that name, unless the path has a namespace. */
static const char *authorize_scope(const struct answer_request *request, const char *object)
{
	const struct api_path *path = &request->path;
	bool is_list = request->verb != ANSWER_GET && !path->is_watch;

	return strcmp(path->resource, "namespaces") == 0 && !*path->namespace_ && !is_list
		       ? object
		       : path->namespace_;
}

int answer_undecided(struct answer_request *request, enum auth_answer answer, const char *why)
{
	switch (answer) {
	case AUTH_UNAUTHENTICATED:
		return api_status_set(&request->status, 401, "Unauthorized", "Unauthorized");
	case AUTH_BUSY:
		return api_status_overloaded(&request->status, why);
	case AUTH_UNAVAILABLE:
		/* Without Retry-After: clients would repeat it ten times, and the API server may be
		 * away for long. */
		return api_status_set(&request->status, 503, "ServiceUnavailable", "%s",
			*why ? why : "the API server can't be asked who you are");
	default:
		return 0;
	}
}

static int authorize_denied(struct answer_request *request, const char *user, const char *why)
{
	const struct api_path *path = &request->path;
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	char where[160];

	bool is_resource = path->kind == API_PATH_RESOURCE;
	/* The API server has said it all: the client is refused, or whom it impersonates. */
	bool is_quoted =
		*why && request->x->peer->auth == CONFIG_AUTH_SELF && auth_impersonates(request->x);

	authorize_put_object(request, &text);
	const char *object = buf_cstr(&text), *scope = authorize_scope(request, object);

	(void)snprintf(where, sizeof(where),
		*scope ? "in the namespace \"%.100s\"" : "at the cluster scope", scope);
	if (is_quoted)
		api_status_set(&request->status, 403, "Forbidden", "%s", why);
	else if (!is_resource)
		api_status_set(&request->status, 403, "Forbidden",
			"forbidden: User \"%s\" cannot %s path \"%.*s\"%s%s", user, "get",
			BYTES_ARG(request->x->path), *why ? ": " : "", why);
	else
		api_status_set(&request->status, 403, "Forbidden",
			"%s%s%s%s%s%s is forbidden: "
			"User \"%s\" cannot %s resource \"%s%s%s\" in API group \"%s\" %s%s%s",
			path->resource, *path->group ? "." : "", path->group, *object ? " \"" : "",
			object, *object ? "\"" : "", user, answer_verb_name(request),
			path->resource, *path->subresource ? "/" : "", path->subresource,
			path->group, where, *why ? ": " : "", why);
	if (is_resource)
		api_status_details(&request->status, path->group, path->resource, object);
	else
		request->status.has_details = true;
	return 403;
}

static void authorize_decided(void *context, const struct auth_decision *decision)
{
	struct answer_request *request = context;

	CHECK_OBJ(request, ANSWER_REQUEST_MAGIC);
	request->pending = NULL;
	free(request->user); /* it is decided again if forwarding fails */
	request->user = strdup(decision->user);
	request->x->labels->user = request->user ? request->user : "";
	if (decision->answer == AUTH_ALLOWED) {
		request->dispatch(request);
		return;
	}
	int r = answer_undecided(request, decision->answer, decision->reason);
	answer_refuse(request, r ? r : authorize_denied(request, decision->user, decision->reason));
}

void answer_authorize_again(struct answer_request *request, auth_decided_fn *fn)
{
	struct answer *answer = request->worker->answer;
	const struct api_path *path = &request->path;
	bool is_resource = path->kind == API_PATH_RESOURCE;
	CLEANUP(buf_release) struct buf whole = BUF_INIT, text = BUF_INIT;
	bool by_path = authorize_by_path(request);
	struct selector *labels = by_path ? NULL : request->options.labels;
	struct selector *fields = by_path ? NULL : request->options.fields;

	if (!is_resource)
		buf_bytes_put(&whole, request->x->path);
	authorize_put_object(request, &text);
	const char *object = buf_cstr(&text);
	const struct auth_attributes attributes = {
		.verb = is_resource ? answer_verb_name(request) : "get",
		.group = path->group,
		.version = path->version,
		.resource = is_resource ? path->resource : "",
		.subresource = is_resource ? path->subresource : "",
		.namespace_ = authorize_scope(request, object),
		.name = object,
		.path = is_resource ? "" : buf_cstr(&whole),
		.discovery = answer_is_of_feeds(request) || path->kind == API_PATH_VERSION,
		.label_selector = labels ? selector_text(labels) : "",
		.field_selector = fields ? selector_text(fields) : "",
	};
	request->pending = NULL;
	auth_decide(answer->auth, request->x, &attributes, fn, request, &request->pending);
}

void answer_authorize(struct answer_request *request)
{
	answer_park(request);
	answer_authorize_again(request, authorize_decided); /* which may end the request */
}
