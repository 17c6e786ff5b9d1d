/* SPDX-License-Identifier: Apache-2.0 */
/* GET of one object. */
#include "common/cleanup.h"
#include "common/err.h"
#include "serve/answer/answer_internal.h"

static int read_not_found(struct answer_request *request)
{
	const struct api_path *path = &request->path;

	if (request->coverage == COVERAGE_WHOLE)
		return api_status_no_object(
			&request->status, path->group, path->resource, path->name);
	api_status_unknown_path(&request->status);
	buf_printf(&request->status.message,
		": the feed '%s' of kinf-serve holds a part of %s only, and this object is not in "
		"it",
		request->feed->definition.name, path->resource);
	return 404;
}

/* Puts the object into OUT. Returns: 0; AGAIN; HTTP statuses; errors. */
static int read_object(struct answer_request *request, struct buf *out)
{
	struct snapshot *snapshot = request->worker->snapshot;
	struct answer_encoder encoder = {.request = request};
	struct answer_state state;
	struct record record;
	int r = answer_find_state(request, 0, &state);

	if (r != 0)
		return r;
	r = snapshot_get(snapshot, request->feed->id, buf_bytes(&request->key), &record);
	if (r == NOT_FOUND)
		return read_not_found(request);
	r = r == FOUND ? answer_form_check(request) : r;
	if (r == 0)
		r = answer_encode_object(&encoder, record.body, out);
	return snapshot_made(snapshot, r);
}

/* Returns whether the API server may have the object that the cache lacks. */
static bool read_is_elsewhere(struct answer_request *request)
{
	bool may_lack = answer_feed_may_lack(request);

	if ((request->coverage == COVERAGE_WHOLE && !may_lack) || !answer_can_forward(request))
		return false;
	request->cache_answers = request->coverage == COVERAGE_WHOLE;
	return true;
}

void answer_read(struct answer_request *request)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	int r = answer_hold(request->worker);

	request->resume = answer_read;
	if (r == 0)
		r = read_object(request, &out);
	answer_rest(request->worker);
	if (r == AGAIN)
		answer_later(request);
	else if (r == 404 && read_is_elsewhere(request))
		answer_forward(request);
	else if (r != 0)
		answer_refuse(request, r);
	else
		answer_send(request, &out);
}
