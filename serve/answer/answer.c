/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/answer/answer.h"

#include <errno.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "common/text/decimal.h"
#include "common/value/custom.h"
#include "reader/past.h"
#include "serve/answer/encode.h"
#include "serve/answer/group.h"
#include "serve/answer/state.h"
#include "serve/answer/verbs.h"
#include "serve/api/api_kinds.h"
#include "serve/catalog/replay.h"
#include "serve/http/gzip.h"

#define ROUTE_HELD_MAX ((size_t)64 << 20) /* of answers that clients have not taken */

/* ---- the process --------------------------------------------------------- */

static void answer_news(void *argument)
{
	struct answer *answer = argument;

	for (unsigned i = 0; i < answer->n_workers; i++)
		serve_worker_wake(answer->workers[i]);
}

int answer_check(const struct config *config)
{
	const struct config_serve *s = &config->serve;
	struct past when;
	uint64_t speed;
	int r = s->at ? past_parse(s->at, proc_realtime_ns(), &when) : 0;

	if (r == 0 && s->at && s->forward)
		r = err_say(ERR_CONFIG, "serve.at shows the past, and forward: on would mix it "
					"with the present: set one of them only");
	if (r == 0 && s->at && s->mcp)
		r = err_say(ERR_CONFIG, "serve.at shows the past, and mcp: on the present: set one "
					"of them only");
	if (r < 0)
		return config_blame(config, "serve.at", r);
	if (s->replay && !s->at)
		r = err_say(ERR_CONFIG, "a replay needs a moment to begin at: --at, or serve.at");
	else if (s->replay)
		r = replay_parse_speed(s->replay, &speed);
	return r < 0 ? config_blame(config, "serve.replay", r) : 0;
}

int answer_open(const struct answer_options *options, struct answer **ret_answer)
{
	CLEANUP(answer_close) struct answer *answer = calloc(1, sizeof(*answer));

	if (!answer)
		return err_set(-ENOMEM, "serving");
	answer->magic = ANSWER_MAGIC;
	answer->auth = options->auth;
	answer->metrics = options->metrics;
	answer->max_staleness_ns = options->config->serve.max_staleness_ns;
	answer->forward = options->config->serve.forward;
	answer->quorum = options->config->serve.quorum;
	answer->n_workers = options->n_workers;
	answer->workers = options->workers;
	int r = answer_check(options->config);
	if (r == 0 && options->config->serve.mcp)
		r = mcp_open(options->config->store, &answer->mcp);
	if (r < 0)
		return r;
	r = catalog_open(options->config->store, options->config->serve.at,
		options->config->serve.replay, answer_news, answer, &answer->catalog);
	if (r < 0)
		return r;
	*ret_answer = TAKE(answer);
	return 0;
}

void answer_reload(struct answer *answer, const struct config *config)
{
	/* Feeds come from the journal. */
	__atomic_store_n(
		&answer->max_staleness_ns, config->serve.max_staleness_ns, __ATOMIC_RELEASE);
	__atomic_store_n(&answer->quorum, config->serve.quorum, __ATOMIC_RELEASE);
}

int answer_replay(struct answer *answer, const char *command, char *text, size_t size)
{
	struct replay *replay = catalog_replay(answer->catalog);

	if (!replay)
		return err_say(ERR_CONFIG, "it shows no replay: start it with --at and --replay");
	return replay_command(replay, command, text, size);
}

void answer_close(struct answer **answer)
{
	struct answer *a = TAKE(*answer);

	if (!a)
		return;
	CHECK_OBJ(a, ANSWER_MAGIC);
	catalog_close(&a->catalog);
	mcp_close(&a->mcp);
	a->magic = 0;
	free(a);
}

size_t answer_ready(struct answer *answer, struct answer_check ret_checks[ANSWER_CHECKS_MAX])
{
	struct answer_check *index = &ret_checks[0], *feeds = &ret_checks[1];

	CHECK_OBJ(answer, ANSWER_MAGIC);
	*index = (struct answer_check){.name = "index"};
	index->ok = catalog_is_ready(answer->catalog, index->reason);
	*feeds = (struct answer_check){.name = "feeds"};
	feeds->ok = catalog_are_listed(answer->catalog, feeds->reason);
	return 2;
}

struct kinf *answer_kinf(struct answer *answer)
{
	CHECK_OBJ(answer, ANSWER_MAGIC);
	return catalog_kinf(answer->catalog);
}

/* ---- workers ------------------------------------------------------------- */

int answer_worker_open(
	struct answer *answer, struct serve_worker *worker, struct answer_worker **ret_worker)
{
	struct answer_worker *w = calloc(1, sizeof(*w));

	CHECK_OBJ(answer, ANSWER_MAGIC);
	if (!w)
		return err_set(-ENOMEM, "a worker");
	w->answer = answer;
	w->worker = worker;
	int r = answer_groups_open(w);
	if (r < 0)
		free(w);
	else
		*ret_worker = w;
	return r;
}

void answer_worker_close(struct answer_worker **worker)
{
	struct answer_worker *w = TAKE(*worker);

	if (!w)
		return;
	REQUIRE(!w->waiting);
	answer_groups_close(w);
	gzip_free(&w->gzip);
	snapshot_close(&w->snapshot);
	free(w);
}

void answer_worker_woken(struct answer_worker *worker)
{
	struct answer_request *next;

	for (struct answer_request *request = worker->waiting; request; request = next) {
		next = request->next;
		/* The timer resumes it, which may free this request and others of the list. */
		serve_timer_set(&request->timer, serve_worker_now_ns(worker->worker));
	}
	answer_groups_news(worker);
}

/* ---- routes -------------------------------------------------------------- */

static int route_method_refused(struct answer_request *request)
{
	const struct api_path *path = &request->path;
	struct bytes method = request->x->method;
	bool is_named = *path->name, is_delete = bytes_equal(method, BYTES_LIT("DELETE"));
	bool is_write =
		bytes_equal(method, BYTES_LIT("POST")) ? !is_named || *path->subresource
		: bytes_equal(method, BYTES_LIT("PUT")) || bytes_equal(method, BYTES_LIT("PATCH"))
			? is_named
			: is_delete;

	/* The API server has no such method there either. */
	if (!answer_is_read(request) && !is_write)
		return api_status_no_method(&request->status);
	if (*path->subresource)
		api_status_set(&request->status, 405, "MethodNotAllowed",
			"%s is not supported on resources of kind \"%s/%s\": this server answers "
			"from a cache",
			answer_verb_name(request), path->resource, path->subresource);
	else
		api_status_set(&request->status, 405, "MethodNotAllowed",
			"%s is not supported on resources of kind \"%s\": this server answers from "
			"a cache",
			answer_verb_name(request), path->resource);
	api_status_details(&request->status, path->group, path->resource, "");
	return 405;
}

static struct coverage_request route_wanted(const struct answer_request *request)
{
	const struct api_path *path = &request->path;

	return (struct coverage_request){
		.group = path->group,
		.version = path->version,
		.resource = path->resource,
		.namespace_ = path->namespace_,
		.name = path->name,
		.labels = request->options.labels,
		.fields = request->options.fields,
		.metadata_only = request->accept.form == API_FORM_METADATA ||
				 request->accept.form == API_FORM_METADATA_LIST,
	};
}

/* Answers 404: no feed holds the request. KNOWN: one holds a part of it. */
static int route_lacks_feed(struct answer_request *request, bool known)
{
	const struct api_path *path = &request->path;
	bool is_imported = catalog_is_imported(request->worker->answer->catalog);

	api_status_unknown_path(&request->status);
	buf_printf(&request->status.message, ": %s %s%s.%s%s%s%s%s",
		is_imported ? "the imported dump does not have"
			    : "kinf-serve has no feed that holds",
		known ? "all of " : "", path->resource, path->version, *path->group ? "." : "",
		path->group, *path->namespace_ ? " of this namespace" : "",
		is_imported ? "" : "; add it to the feeds in kinf.yaml");
	return 404;
}

/* Finds the feed and the keys of the request. */
static int route_find_feed(struct answer_request *request)
{
	const struct api_path *path = &request->path;
	const struct coverage_request wanted = route_wanted(request);
	bool known;
	int r = catalog_find(request->worker->answer->catalog, &wanted, &request->feed,
		&request->coverage, &known);

	if (r != FOUND && catalog_is_empty(request->worker->answer->catalog))
		return api_status_starting(&request->status);
	if (r != FOUND)
		return route_lacks_feed(request, known);
	const struct feed_definition *d = &request->feed->definition;

	if (!d->namespaced != !*path->namespace_ && (*path->namespace_ || path->is_named))
		return api_status_unknown_path(&request->status); /* S07, S08 */
	(void)api_path_put_key(path, &request->key);
	/* A list of one name: a prefix of the keys. */
	if (!*path->name && (*path->namespace_ || !d->namespaced))
		buf_bytes_put(
			&request->key, selector_value(request->options.fields, "metadata.name"));
	return buf_error(&request->key);
}

/* An aggregated API server decides for itself, and may show each user other objects: with the
 * modes that give clients the API server's rights, the cache does not answer for it. Returns: 0;
 * 404; 503; errors. */
static int route_check_server(struct answer_request *request)
{
	int auth = request->x->peer->auth;
	int r = auth == CONFIG_AUTH_SELF || auth == CONFIG_AUTH_REVIEW
			? answer_is_aggregated(request)
			: 0;

	if (r == AGAIN)
		return api_status_starting(&request->status);
	if (r != 1)
		return r;
	api_status_unknown_path(&request->status);
	buf_printf(&request->status.message,
		": with this serve.auth kinf-serve does not answer for %s.%s: an aggregated API "
		"server may decide otherwise than the API server",
		request->path.version, request->path.group);
	return 404;
}

static int route_prepare(struct answer_request *request)
{
	struct api_path *path = &request->path;
	struct exchange *x = request->x;
	int r;

	if (!answer_is_read(request) || *path->subresource)
		return route_method_refused(request);
	r = api_accept_parse(
		exchange_header(x, "accept"), false, &request->accept, &request->status);
	if (r)
		return r;
	r = route_find_feed(request);
	if (r == 0)
		r = route_check_server(request);
	if (r)
		return r;
	const struct feed_definition *d = &request->feed->definition;
	bool is_custom = !custom_is_builtin_group(d->group);
	CLEANUP(buf_release) struct buf selectable = BUF_INIT;

	buf_reset(&request->deprecation); /* it may have been forwarded in vain */
	if (is_custom)
		err_ignore(answer_custom(request, CUSTOM_WARNING, &request->deprecation),
			"the answer only lacks a warning");
	if (request->verb != ANSWER_GET) {
		r = api_options_validate(
			&request->options, request->verb == ANSWER_WATCH, &request->status);
		if (r == 0 && request->options.fields && is_custom)
			r = answer_custom(request, CUSTOM_LABELS, &selectable);
		if (r)
			return r;
		r = api_kind_check_fields(&(struct api_kind_name){d->group, d->kind, d->namespaced},
			buf_cstr(&selectable), request->options.fields, &request->status);
		request->is_label_unknown = r == 400;
	}
	return r ? r : answer_form_init(request);
}

static void route_dispatch(struct answer_request *request)
{
	if (request->path.kind != API_PATH_RESOURCE) {
		answer_discovery(request);
		return;
	}
	int r = route_prepare(request);
	if (r == 0)
		r = answer_check_feed(request);
	/* The API server may have the form, the feed, the field label or fresher data. */
	bool elsewhere = r == 404 || r == 406 || r == 429 || r == 503 || request->is_label_unknown;
	if (r != 0 && elsewhere && answer_can_forward(request)) {
		answer_forward(request);
		return;
	}
	if (r != 0) {
		answer_refuse(request, r);
		return;
	}
	switch (request->verb) {
	case ANSWER_GET:
		answer_get(request);
		return;
	case ANSWER_LIST:
		if (serve_worker_held(request->worker->worker) > ROUTE_HELD_MAX)
			answer_refuse(request, api_status_overloaded(&request->status,
						       "too many answers wait for clients that do "
						       "not read them"));
		else
			answer_list(request);
		return;
	case ANSWER_WATCH:
		answer_watch(request);
		return;
	}
}

/* Returns true if the read must be proved current: with `freshness: quorum`, without RV and token.
 * Only the API server can. */
static bool route_needs_quorum(const struct answer_request *request)
{
	return __atomic_load_n(&request->worker->answer->quorum, __ATOMIC_ACQUIRE) &&
	       request->path.kind == API_PATH_RESOURCE && !*request->options.rv &&
	       !*request->options.token;
}

/* Returns true if the cache never has the answer. PARSED: the result of parsing the query. */
static bool route_is_elsewhere(struct answer_request *request, int parsed)
{
	const struct api_path *path = &request->path;

	if (!answer_is_read(request) || path->kind != API_PATH_RESOURCE || *path->subresource ||
		path->is_long || parsed != 0 ||
		(request->x->upgrade && !answer_takes_messages(request)))
		return true;
	/* The API server ignores a shard selector without its feature gate, which is not known. */
	if (route_needs_quorum(request) || request->options.sharded)
		return true;
	if (api_accept_parse(exchange_header(request->x, "accept"), false, &request->accept,
		    &request->status))
		return true;
	const struct coverage_request wanted = route_wanted(request);
	struct catalog_feed *feed = NULL;
	enum coverage_answer coverage;
	bool known;
	int r = catalog_find(request->worker->answer->catalog, &wanted, &feed, &coverage, &known);

	if (r == FOUND)
		catalog_release(&feed);
	return r != FOUND;
}

void serve_answer(struct answer_worker *worker, struct exchange *x)
{
	struct answer_request *request = calloc(1, sizeof(*request));

	if (!request) {
		exchange_refuse(x, 500, "InternalError", "no memory", 1);
		return;
	}
	request->magic = ANSWER_REQUEST_MAGIC;
	request->worker = worker;
	request->x = x;
	request->dispatch = route_dispatch;
	request->accept = (struct api_accept){.version = "v1"};
	int r = answer_parse(request);

	if (r == 0 && answer_is_who(request)) {
		answer_who(request);
		answer_authorize(request);
		return;
	}
	if (r == 0 && answer_is_mcp(request)) {
		answer_mcp(request);
		answer_authorize(request);
		return;
	}
	if (r == 0 && answer_is_access(request)) {
		request->is_message = true;
		request->dispatch = answer_access;
		(answer_can_forward(request) ? answer_forward : answer_access)(request);
		return;
	}
	bool elsewhere = r >= 0 && answer_may_forward(request) && route_is_elsewhere(request, r);
	bool reads = answer_is_read(request) && !x->upgrade && !*request->path.subresource;
	/* A client without credentials is refused only if the cache can't answer. */
	if (elsewhere && (answer_can_forward(request) || !reads || route_needs_quorum(request))) {
		answer_forward(request);
		return;
	}
	if (r != 0) {
		/* The error is about the query alone: it needs no decision. */
		answer_refuse(request, r);
		return;
	}
	answer_authorize(request);
}
