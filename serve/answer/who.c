/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /kinf/who/WHAT[?when=now|last|all]: the pods behind an address, a container, a uid or a
 * process of this machine (kinf_who), for clients that may list all pods.
 *
 * With `last` and `all` the retained history is read, in slices between which other clients have
 * their turn.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "print/who.h"
#include "reader/past.h"
#include "reader/who.h"
#include "serve/answer/verbs.h"

#define WHO_SLICE 1000 /* records of the log: about a millisecond */

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

struct who_stage {
	int when;
	struct who *who; /* NULL: not begun */
	struct who_answer answer;
	struct buf json;
};

static void who_stage_free(void *stage)
{
	struct who_stage *s = stage;

	who_free(&s->who);
	buf_release(&s->json);
	free(s);
}

/* Does a slice of the search. Returns: 0: it is over; AGAIN; HTTP statuses; errors. */
static int who_slice(struct answer_request *request, struct who_stage *stage)
{
	struct catalog *catalog = request->worker->answer->catalog;
	CLEANUP(kinf_snapshot_close) struct kinf_snapshot *snapshot = NULL;
	struct kinf *kinf = catalog_kinf(catalog);
	struct past past = {.event = catalog_at(catalog)};
	struct who_answer *answer = &stage->answer;
	int r = kinf_snapshot_open(kinf, &snapshot);

	if (r == 0 && past.event != UINT64_MAX)
		r = past_enter(snapshot, &past);
	answer->snapshot = snapshot;
	answer->out = &stage->json;
	answer->form = WHO_LIST;
	if (r == 0 && !stage->who) {
		buf_str(&stage->json, "{\"pods\":[");
		r = who_new(&stage->who);
		if (r == 0)
			r = who_ask(stage->who, snapshot, buf_cstr(&request->key));
	}
	if (r == 0) {
		r = who_go_on(stage->who, snapshot, stage->when, WHO_SLICE, who_answer_put, answer);
		int checked = kinf_snapshot_check(snapshot);

		if (checked == 0 && r == AGAIN)
			return AGAIN;
		r = checked != 0 ? checked : r;
	}
	buf_str(&stage->json, "]}");
	if (r == 0)
		return buf_error(&stage->json);
	const char *why = kinf_error(kinf);

	if (r == KINF_NOT_FOUND || r == KINF_NO_FEED)
		return api_status_set(&request->status, 404, "NotFound", "%s", why);
	if (r == KINF_SYNTAX)
		return api_status_set(&request->status, 400, "BadRequest", "%s", why);
	return api_status_set(&request->status, 503, "ServiceUnavailable", "%s", why);
}

static void who_go(struct answer_request *request)
{
	struct who_stage *stage = request->stage;
	int r = who_slice(request, stage);

	if (r == 0)
		answer_send(request, &stage->json);
	else if (r == AGAIN)
		answer_wait(request, true);
	else
		answer_refuse(request, r);
}

static void who_dispatch(struct answer_request *request)
{
	int when = who_parse(request);
	struct who_stage *stage = when < 0 ? NULL : calloc(1, sizeof(*stage));

	request->resume = who_go;
	if (stage) {
		stage->when = when;
		answer_set_stage(request, stage, who_stage_free);
		who_go(request);
		return;
	}
	answer_refuse(request,
		when < 0 ? api_status_set(&request->status, 400, "BadRequest",
				   "write /kinf/who/IP, CONTAINER-ID, UID or [NODE/]PID, and "
				   "?when=now, last or all")
			 : err_set(-ENOMEM, "who"));
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
