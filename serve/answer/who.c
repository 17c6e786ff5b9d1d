/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /kinf/who/WHAT[?when=now|last|all]: the pods behind an address, a container, a uid or a
 * process of this machine (kinf_who), for clients that may list all pods.
 *
 * With `last` and `all` the retained history is read, as long as that takes: other clients of the
 * worker wait meanwhile.
 */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "print/who.h"
#include "reader/past.h"
#include "serve/answer/verbs.h"

static const struct bytes who_path = BYTES_LIT("/kinf/who/");

bool answer_is_who(const struct answer_request *request)
{
	return answer_is_read(request) && !request->x->upgrade &&
	       bytes_starts(request->x->path, who_path);
}

/* Reads the path and the query. Returns the moment that is asked for, or below 0: it is none. */
static int who_parse(struct answer_request *request)
{
	static const char *const moments[] = {[KINF_WHO_NOW] = "when=now",
		[KINF_WHO_LAST] = "when=last",
		[KINF_WHO_ALL] = "when=all"};
	struct bytes path = request->x->path, query = request->x->query;
	struct bytes what =
		BYTES((const char *)path.data + who_path.size, path.size - who_path.size);

	if (!api_path_unescape(what, false, &request->key) ||
		strlen(buf_cstr(&request->key)) != request->key.size)
		return -1;
	for (int i = 0; i <= KINF_WHO_ALL; i++)
		if (bytes_equal(query, bytes_str(moments[i])))
			return i;
	return query.size ? -1 : KINF_WHO_NOW;
}

static int who_find(struct answer_request *request, int when, struct buf *out)
{
	struct catalog *catalog = request->worker->answer->catalog;
	CLEANUP(kinf_snapshot_close) struct kinf_snapshot *snapshot = NULL;
	struct kinf *kinf = catalog_kinf(catalog);
	struct past past = {.event = catalog_at(catalog)};
	struct who_answer answer = {.out = out, .form = WHO_LIST};
	int r = kinf_snapshot_open(kinf, &snapshot);

	if (r == 0 && past.event != UINT64_MAX)
		r = past_enter(snapshot, &past);
	answer.snapshot = snapshot;
	buf_str(out, "{\"pods\":[");
	if (r == 0)
		r = kinf_who(snapshot, buf_cstr(&request->key), when, who_answer_put, &answer);
	if (r == 0)
		r = kinf_snapshot_check(snapshot);
	buf_str(out, "]}");
	if (r == 0)
		return buf_error(out);
	const char *why = kinf_error(kinf);

	if (r == KINF_NOT_FOUND || r == KINF_NO_FEED)
		return api_status_set(&request->status, 404, "NotFound", "%s", why);
	if (r == KINF_SYNTAX)
		return api_status_set(&request->status, 400, "BadRequest", "%s", why);
	return api_status_set(&request->status, 503, "ServiceUnavailable", "%s", why);
}

static void who_dispatch(struct answer_request *request)
{
	CLEANUP(buf_release) struct buf json = BUF_INIT;
	int when = who_parse(request);
	int r = when < 0 ? api_status_set(&request->status, 400, "BadRequest",
				   "write /kinf/who/IP, CONTAINER-ID, UID or [NODE/]PID, and "
				   "?when=now, last or all")
			 : who_find(request, when, &json);

	if (r == 0)
		answer_send(request, &json);
	else
		answer_refuse(request, r);
}

void answer_who(struct answer_request *request)
{
	struct api_path *path = &request->path;

	path->kind = API_PATH_RESOURCE;
	path->group = path->namespace_ = path->name = path->subresource = "";
	path->version = "v1";
	path->resource = "pods";
	request->verb = ANSWER_LIST;
	request->dispatch = who_dispatch;
}
