/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forwards writes, and reads beyond the cache. The API server decides on them by the client's own
 * credentials. A write raises the floor of its resource's feeds (floor.h) before the client has the
 * answer, so that its next read sees the write.
 */
#include "serve/answer/verbs.h"
#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/hash.h"
#include "common/proc.h"
#include "common/value/selector.h"
#include "serve/answer/state.h"
#include "serve/api/api_version.h"
#include "serve/http/forward.h"

#define FORWARD_FEEDS_MAX 4 /* of one resource */

struct forwarding {
	struct answer_request *request;
	struct forward *forward;
	bool writes; /* a write: its answer may raise the floor */
	bool lists;  /* a list: its RV belongs to no change */
	bool is_dry; /* the API server changes nothing */
	bool succeeded;
	struct api_version version;
	struct {
		struct catalog_feed *feed;
		uint64_t before, uid; /* of the object: seq, hash; 0: none */
		bool terminating;
	} feeds[FORWARD_FEEDS_MAX];
	size_t n_feeds;
	bool raised, touched; /* the floor: by the answer's RV, for the object */
};

static void forward_free_stage(void *stage)
{
	struct forwarding *f = stage;

	forward_free(&f->forward);
	for (size_t i = 0; i < f->n_feeds; i++)
		catalog_release(&f->feeds[i].feed);
	api_version_release(&f->version);
	free(f);
}

/* ---- floors ------------------------------------------------------------- */

/* Keeps the feeds of the path. */
static void forward_keep_feeds(struct forwarding *f)
{
	struct catalog *catalog = f->request->worker->answer->catalog;
	const struct api_path *path = &f->request->path;
	struct catalog_feed *feed;
	size_t at = 0;

	catalog_lock(catalog);
	while (f->n_feeds < FORWARD_FEEDS_MAX && (feed = catalog_next_feed(catalog, &at))) {
		const struct feed_definition *d = &feed->definition;

		/* Versions of a resource share their RVs. */
		if (strcmp(d->resource, path->resource) != 0 ||
			strcmp(d->group, path->group) != 0 ||
			(*d->namespace_ && *path->namespace_ &&
				strcmp(d->namespace_, path->namespace_) != 0))
			continue;
		(void)__atomic_add_fetch(&feed->references, 1, __ATOMIC_ACQ_REL);
		f->feeds[f->n_feeds++].feed = feed;
	}
	catalog_unlock(catalog);
}

/* Notes each feed's version of the object. */
static int forward_note_versions(struct forwarding *f)
{
	CLEANUP(buf_release) struct buf key = BUF_INIT;
	CLEANUP(selector_free) struct selector *terminating = NULL;
	struct answer_worker *worker = f->request->worker;
	struct record record;
	int r = api_path_put_key(&f->request->path, &key);

	if (r == 0)
		r = selector_parse_fields("metadata.deletionTimestamp!=", &terminating);
	if (r == 0)
		r = answer_take_snapshot(worker);
	for (size_t i = 0; r == 0 && i < f->n_feeds; i++) {
		int found = snapshot_get(
			worker->snapshot, f->feeds[i].feed->id, buf_bytes(&key), &record);

		r = found < 0 ? found : 0;
		if (found != FOUND)
			continue;
		f->feeds[i].before = record.seq;
		f->feeds[i].uid = record.uid.size ? hash_bytes(record.uid, 0) : 0;
		f->feeds[i].terminating = selector_match(terminating, record.body) == 1;
	}
	answer_release_snapshot(worker);
	return r == AGAIN ? 0 : r;
}

static int forward_find_feeds(struct forwarding *f)
{
	struct answer_request *request = f->request;
	const struct api_path *path = &request->path;
	const char *sub = path->subresource;

	f->writes = !answer_is_read(request) && !request->x->upgrade && strcmp(sub, "token") != 0 &&
		    strcmp(sub, "proxy") != 0;
	f->lists = request->verb == ANSWER_LIST;
	/* A stale feed may never come to the RV of the answer: other reads would wait in vain. */
	if (path->kind != API_PATH_RESOURCE || request->cache_answers ||
		(!f->writes && (*sub || request->verb == ANSWER_WATCH)))
		return 0;
	forward_keep_feeds(f);
	return f->writes && f->n_feeds && *path->name ? forward_note_versions(f) : 0;
}

/* Makes reads wait for the object, because the answer has no newer RV. LAST: its RV before it went;
 * 0: unknown. */
static void forward_touch(struct forwarding *f, bool deletes, timeline_rv last)
{
	const struct api_path *path = &f->request->path;
	CLEANUP(buf_release) struct buf key = BUF_INIT;
	bool named = *path->name && api_path_put_key(path, &key) == 0;
	uint64_t now = proc_monotonic_ns();

	for (size_t i = 0; i < f->n_feeds; i++) {
		struct floor_change change = {.before = f->feeds[i].before,
			.uid = f->feeds[i].uid,
			.deleted = deletes,
			.last = last};

		/* Another deletion of an object that terminates changes it only if it is the end:
		 * then its answer says so. */
		if (named && deletes && !last && f->feeds[i].terminating)
			continue;
		floor_touch(
			&f->feeds[i].feed->forwarded, named ? buf_cstr(&key) : "", &change, now);
		f->touched = true;
	}
}

static void forward_begun(void *context, int status, struct bytes type)
{
	struct forwarding *f = context;
	const struct api_path *path = &f->request->path;
	bool deletes = bytes_equal(f->request->x->method, BYTES_LIT("DELETE"));
	bool evicts = strcmp(path->subresource, "eviction") == 0;
	struct bytes query = f->request->x->query;

	f->request->x->labels->user = "";
	f->is_dry |= query.size && memmem(query.data, query.size, "dryRun=", 7);
	f->succeeded = status >= 200 && status < 300 && f->n_feeds && !f->is_dry;
	f->version.protobuf = bytes_starts(type, BYTES_LIT("application/vnd.kubernetes.protobuf"));
	/* The answer to a deletion of a collection has the RV of a list: the feed need not come to
	 * it. */
	f->raised = deletes && !*path->name;
	if (f->succeeded && f->writes &&
		(deletes || evicts || strcmp(path->subresource, "binding") == 0))
		forward_touch(f, deletes || evicts, 0);
	/* The client's next get is to show the reason. */
	for (size_t i = 0; f->writes && (status == 404 || status == 409) && i < f->n_feeds; i++)
		floor_refuse(&f->feeds[i].feed->forwarded, proc_monotonic_ns());
	bool has_rv = f->version.protobuf || bytes_starts(type, BYTES_LIT("application/json"));
	for (size_t i = 0; f->succeeded && f->writes && !has_rv && i < f->n_feeds; i++)
		floor_touch(&f->feeds[i].feed->forwarded, "", &(struct floor_change){.before = 0},
			proc_monotonic_ns());
}

/* Returns true if the write may remove the last finalizer. The API server then deletes the object
 * and answers with its last RV. A namespace's is in its spec, and goes by the subresource finalize.
 */
static bool forward_may_finalize(const struct forwarding *f)
{
	const struct api_path *path = &f->request->path;
	bool is_namespace = !*path->group && strcmp(path->resource, "namespaces") == 0;

	return f->writes && !f->touched && *path->name &&
	       strcmp(path->subresource, is_namespace ? "finalize" : "") == 0;
}

/* A piece of the request: DeleteOptions have dryRun, also inside of an Eviction. */
static void forward_asked(void *context, struct bytes piece)
{
	struct forwarding *f = context;
	bool has_options = bytes_equal(f->request->x->method, BYTES_LIT("DELETE")) ||
			   strcmp(f->request->path.subresource, "eviction") == 0;

	f->is_dry |= has_options && memmem(piece.data, piece.size, "\"dryRun\"", 8);
}

static void forward_body(void *context, struct bytes piece)
{
	struct forwarding *f = context;

	if (!f->succeeded || (f->raised && f->touched))
		return;
	api_version_put(&f->version, piece);
	const char *rv = api_version_get(&f->version);
	timeline_rv last;
	if (forward_may_finalize(f) && api_version_is_gone(&f->version) &&
		timeline_rv_parse(bytes_str(rv), &last))
		forward_touch(f, true, last);
	if (f->raised || !*rv)
		return;
	f->raised = true;
	for (size_t i = 0; i < f->n_feeds; i++)
		floor_raise(&f->feeds[i].feed->forwarded, rv, !f->lists || f->writes,
			proc_monotonic_ns());
}

/* ---- the request -------------------------------------------------------- */

static void forward_ended(void *context)
{
	struct forwarding *f = context;
	struct answer_request *request = f->request;

	f->forward = NULL;
	answer_request_free(&request);
}

static void forward_refuse(struct answer_request *request, int code, const char *why)
{
	const char *reason = code == 503   ? "ServiceUnavailable"
			     : code == 504 ? "Timeout"
			     : code == 429 ? "TooManyRequests"
					   : "InternalError";

	api_status_set(&request->status, code, reason, "the request was not forwarded: %s", why);
	/* The API server may be away for long. */
	request->status.retry_after = code == 429 ? 1 : 0;
	answer_refuse(request, code);
}

static void forward_failed(void *context, int status, const char *why, bool sent)
{
	struct forwarding *f = context;
	struct answer_request *request = f->request;
	bool reads = answer_is_read(request);

	f->forward = NULL;
	answer_set_stage(request, NULL, NULL);
	request->unreachable = true;
	if (request->cache_answers || (request->is_message && !sent)) {
		request->dispatch(request); /* it was allowed, or is for everybody */
		return;
	}
	if (reads && request->path.kind != API_PATH_RESOURCE &&
		request->path.kind != API_PATH_OTHER) {
		answer_authorize(request); /* discovery, made of the feeds */
		return;
	}
	if (!sent || reads) {
		forward_refuse(request, status, why);
		return;
	}
	/* Without Retry-After: clients would repeat a write after it took effect. */
	api_status_set(&request->status, status, status == 503 ? "ServiceUnavailable" : "Timeout",
		"%s; it is not known whether the request had an effect", why);
	answer_refuse(request, status);
}

static int forward_make(struct answer_request *request, struct forwarding **ret_forward)
{
	const char *sub = request->path.subresource;
	struct forwarding *f = calloc(1, sizeof(*f));

	if (!f)
		return err_set(-ENOMEM, "forwarding a request");
	f->request = request;
	answer_set_stage(request, f, forward_free_stage);
	int r = forward_find_feeds(f);
	const struct forward_options options = {.metrics = request->worker->answer->metrics,
		.no_limit =
			strcmp(sub, "log") == 0 || strcmp(sub, "proxy") == 0 || request->x->upgrade,
		.answer_ns = request->cache_answers ? ANSWER_WAIT_NS : 0,
		.lines = request->verb == ANSWER_WATCH && !*sub,
		.whole = f->n_feeds != 0,
		.failed = forward_failed,
		.begun = forward_begun,
		.asked = forward_asked,
		.body = f->n_feeds ? forward_body : NULL,
		.ended = forward_ended,
		.context = f};
	if (r == 0) {
		*ret_forward = f;
		r = forward_start(request->x, &options, &f->forward);
	}
	return r;
}

void answer_forward(struct answer_request *request)
{
	const struct exchange_peer *peer = request->x->peer;
	struct forwarding *f = NULL;

	if (!forward_has_credentials(request->x)) {
		bool certificate = peer->n_organizations || *peer->common_name;

		if (certificate)
			api_status_set(&request->status, 403, "Forbidden",
				"kinf-serve can't forward a request with a client certificate to "
				"the API server; use a token");
		else
			api_status_set(&request->status, 401, "Unauthorized", "Unauthorized");
		answer_refuse(request, certificate ? 403 : 401);
		return;
	}
	/* They are made again if the cache answers after all. */
	if (request->feed)
		catalog_release(&request->feed);
	printer_free(&request->printer);
	buf_reset(&request->key);
	answer_park(request);
	int r = forward_make(request, &f);
	if (r == 0)
		return;
	if (f && request->cache_answers)
		forward_failed(f, 503, "", false);
	else if (r == 429)
		forward_refuse(request, 429, "too many requests are being forwarded");
	else if (r == 400)
		forward_refuse(request, 400, "it has bytes that can't be passed on");
	else if (f)
		forward_failed(f, 503, err_text(r), false);
	else
		answer_refuse(request, r);
}

/* ---- waiting ------------------------------------------------------------- */

void answer_wait_for_state(struct answer_request *request)
{
	uint64_t now = proc_monotonic_ns();

	if (!request->wait_until_ns)
		request->wait_until_ns = now + ANSWER_WAIT_NS;
	/* A feed that is not live may not come to the state. */
	bool over = request->must_forward || now >= request->wait_until_ns ||
		    answer_feed_may_lack(request);
	if (over && answer_can_forward(request))
		answer_forward(request);
	else if (now < request->wait_until_ns)
		answer_wait(request, false);
	else
		answer_refuse(request, answer_wait_is_over(request));
}
