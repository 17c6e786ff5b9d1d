/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/control.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "tests/simulator/jsontext.h"

/* A call, as its handler gets it. Handlers hold world->lock unless their row has the flag UNLOCKED.
 */
struct control_call {
	struct control *control;
	struct world *world;
	const struct http_request *request;
	struct http_answer *answer;
	struct buf *out;               /* the answer's body */
	const char *rest;              /* the path after the row's */
	struct collection *collection; /* of ?resource= */
};

static void control_refuse(struct control_call *call, unsigned status, const char *text)
{
	call->answer->status = status;
	buf_reset(call->out);
	buf_str(call->out, "{\"error\":");
	jsontext_put_string(call->out, bytes_str(text));
	buf_str(call->out, "}\n");
}

static const char *control_query(
	const struct control_call *call, const char *name, const char *missing)
{
	const char *value = http_query(call->request, name);

	return value && *value ? value : missing;
}

static uint64_t control_query_number(
	const struct control_call *call, const char *name, uint64_t missing)
{
	const char *text = control_query(call, name, NULL);
	uint64_t n;

	return text && sscanf(text, "%" SCNu64, &n) == 1 ? n : missing;
}

static double control_query_real(const struct control_call *call, const char *name, double missing)
{
	const char *text = control_query(call, name, NULL);
	double n;

	return text && sscanf(text, "%lf", &n) == 1 ? n : missing;
}

static void control_put_rv(struct control_call *call)
{
	buf_printf(call->out, "{\"resourceVersion\":\"%" PRIu64 "\"}\n", call->world->rv);
}

/* ---- objects ------------------------------------------------------------ */

static void control_objects_get(struct control_call *call)
{
	struct collection *collection = call->collection;
	struct keylist_place place = {0, 0};
	const struct entry *entry;
	const char *comma = "";

	buf_init(call->out, SIZE_MAX / 2);
	buf_byte(call->out, '[');
	while ((entry = keylist_next(&collection->keys, &place))) {
		const struct version *version = version_at(entry, call->world->rv);

		if (!version || (*call->rest && strcmp(call->rest, entry->key)))
			continue;
		buf_str(call->out, comma);
		object_show(collection->kind, OBJECT_FULL, version_text(version), call->out);
		comma = ",\n";
	}
	buf_str(call->out, "]\n");
}

/* The body is an object or an array of objects. */
static void control_objects_put(struct control_call *call)
{
	struct bytes body;
	struct jsontext_iter iter;
	struct jsontext_member member;
	bool good = jsontext_single(call->request->body, &body);

	jsontext_iter_init(&iter, body);
	if (good && iter.is_object)
		good = world_put(call->world, call->collection, body);
	while (good && !iter.is_object && jsontext_iter_next(&iter, &member))
		good = world_put(call->world, call->collection, member.value);
	if (good)
		control_put_rv(call);
	else
		control_refuse(call, 400,
			"the body is not JSON, or an object in it has no metadata.name or "
			"metadata.namespace");
}

static void control_objects_patch(struct control_call *call)
{
	struct bytes patch;

	if (!jsontext_single(call->request->body, &patch))
		control_refuse(call, 400, "the body is not JSON");
	else if (churn_patch(call->world, call->collection, call->rest, patch))
		control_put_rv(call);
	else
		control_refuse(call, 404, "no such object");
}

static void control_objects_delete(struct control_call *call)
{
	if (!*call->rest)
		churn_delete(call->world, call->collection, control_query_number(call, "count", 0));
	else if (!world_delete(call->world, call->collection, call->rest)) {
		control_refuse(call, 404, "no such object");
		return;
	}
	control_put_rv(call);
}

static void control_create_post(struct control_call *call)
{
	struct generate_options options = {
		.namespaces = (unsigned)control_query_number(call, "namespaces", 10),
		.prefix = control_query(call, "prefix", call->collection->kind->singular),
		.size = (size_t)control_query_number(call, "size", 0),
		.seed = call->world->seed,
	};
	CLEANUP(buf_release) struct buf prefix = BUF_INIT;

	if (!options.namespaces)
		options.namespaces = 1;
	buf_printf(&prefix, "%s-", options.prefix);
	options.prefix = buf_cstr(&prefix);
	churn_create(call->world, call->collection, control_query_number(call, "from", 0),
		control_query_number(call, "count", 1), &options);
	control_put_rv(call);
}

static void control_touch_post(struct control_call *call)
{
	churn_touch(call->world, call->collection, control_query_number(call, "count", 0));
	control_put_rv(call);
}

static void control_churn_post(struct control_call *call)
{
	churn_set(call->control->churn, call->collection, control_query_real(call, "rate", 0),
		(unsigned)control_query_number(call, "createDelete", 20));
	buf_str(call->out, "{}\n");
}

/* ---- history ------------------------------------------------------------ */

static void control_compact_post(struct control_call *call)
{
	world_compact(call->world, control_query_number(call, "rv", 0));
	control_put_rv(call);
}

static void control_save_post(struct control_call *call)
{
	world_save(call->world);
	control_put_rv(call);
}

static void control_restore_post(struct control_call *call)
{
	if (!world_restore(call->world))
		control_refuse(call, 409, "nothing was saved");
	else
		control_put_rv(call);
}

/* Deletes kube-system and creates it again: its uid identifies the cluster. */
static void control_identity_post(struct control_call *call)
{
	static const char text[] =
		"{\"metadata\":{\"name\":\"kube-system\",\"labels\":{"
		"\"kubernetes.io/metadata.name\":\"kube-system\"}},"
		"\"spec\":{\"finalizers\":[\"kubernetes\"]},\"status\":{\"phase\":\"Active\"}}";
	struct collection *namespaces = world_find(call->world, "", "v1", "namespaces");

	world_delete(call->world, namespaces, "kube-system");
	world_put(call->world, namespaces, bytes_str(text));
	control_put_rv(call);
}

static void control_kinds_post(struct control_call *call)
{
	const struct kind *kind = kind_describe(call->request->body);

	if (kind && world_add(call->world, kind)) {
		buf_str(call->out, "{}\n");
		return;
	}
	kind_free(&kind);
	control_refuse(call, 400,
		"the body needs group, version, resource and kind of a resource that does not "
		"exist");
}

static void control_kinds_delete(struct control_call *call)
{
	world_remove(call->world, call->collection);
	control_put_rv(call);
}

/* ---- watches and connections ------------------------------------------------------------------
 */

static void control_bookmark_post(struct control_call *call)
{
	call->world->bookmark_round++;
	world_wake(call->world);
	control_put_rv(call);
}

/* Makes watches of the resource lose their next COUNT events. */
static void control_swallow_post(struct control_call *call)
{
	call->collection->swallow = (unsigned)control_query_number(call, "count", 1);
	control_put_rv(call);
}

static void control_drop_post(struct control_call *call)
{
	http_server_drop(call->control->server);
	buf_str(call->out, "{}\n");
}

static void control_down_post(struct control_call *call)
{
	http_server_pause(call->control->server);
	buf_str(call->out, "{}\n");
}

void control_release(struct control *control)
{
	pthread_mutex_destroy(&control->serial);
}

void control_init(struct control *control, struct api *api, struct churn *churn)
{
	*control = (struct control){.api = api, .churn = churn};
	REQUIRE(pthread_mutex_init(&control->serial, NULL) == 0);
}

static void control_up_post(struct control_call *call)
{
	int r = http_server_resume(call->control->server);

	if (r < 0)
		control_refuse(call, 500, err_text(r));
	else
		buf_str(call->out, "{}\n");
}

static void control_set_number(const struct control_call *call, const char *name, uint64_t *setting)
{
	*setting = control_query_number(call, name, *setting);
}

static void control_set_flag(const struct control_call *call, const char *name, bool *setting)
{
	*setting = control_query_number(call, name, *setting) != 0;
}

static void control_settings_post(struct control_call *call)
{
	struct settings *settings = &call->world->settings;

	control_set_number(call, "bookmarkMs", &settings->bookmark_ms);
	control_set_number(call, "futureWaitMs", &settings->future_wait_ms);
	control_set_number(call, "history", &settings->history);
	control_set_number(call, "progressMs", &settings->progress_ms);
	world_set_fresh(call->world);
	control_set_flag(call, "watchList", &settings->watch_list);
	control_set_flag(call, "aggregated", &settings->aggregated);
	world_wake(call->world);
	buf_printf(call->out,
		"{\"bookmarkMs\":%" PRIu64 ",\"futureWaitMs\":%" PRIu64 ",\"history\":%" PRIu64
		",\"progressMs\":%" PRIu64 ",\"watchList\":%d,\"aggregated\":%d}\n",
		settings->bookmark_ms, settings->future_wait_ms, settings->history,
		settings->progress_ms, settings->watch_list, settings->aggregated);
}

/* ---- faults, log and status ----------------------------------------------------------------
 */

static void control_faults_post(struct control_call *call)
{
	struct bytes rule;
	unsigned id = 0;

	if (jsontext_single(call->request->body, &rule))
		id = faults_add(call->control->api->faults, rule);
	if (id)
		buf_printf(call->out, "{\"id\":%u}\n", id);
	else
		control_refuse(call, 400,
			"the body is not JSON, or its path is not a POSIX regular expression");
}

static void control_faults_get(struct control_call *call)
{
	faults_list(call->control->api->faults, call->out);
}

static void control_faults_delete(struct control_call *call)
{
	unsigned id = 0;

	(void)sscanf(call->rest, "%u", &id); /* no id: all faults */
	faults_remove(call->control->api->faults, id);
	buf_str(call->out, "{}\n");
}

static void control_log_get(struct control_call *call)
{
	buf_init(call->out, SIZE_MAX / 2);
	requestlog_copy(call->control->api->log, call->out);
}

static void control_log_delete(struct control_call *call)
{
	requestlog_clear(call->control->api->log);
	for (size_t i = 0; i < call->world->n_collections; i++) {
		struct collection *collection = &call->world->collections[i];

		collection->lists = collection->watches = collection->gets = 0;
	}
	buf_str(call->out, "{}\n");
}

static void control_status_get(struct control_call *call)
{
	const struct world *world = call->world;

	buf_printf(call->out,
		"{\"resourceVersion\":\"%" PRIu64 "\",\"compacted\":\"%" PRIu64
		"\",\"resources\":{",
		world->rv, world->compacted);
	for (size_t i = 0; i < world->n_collections; i++) {
		const struct collection *collection = &world->collections[i];

		buf_printf(call->out, "%s\"", i ? "," : "");
		kind_put_qualified(collection->kind, call->out);
		buf_printf(call->out,
			"\":{\"objects\":%zu,\"lists\":%u,\"watches\":%u,\"gets\":%u,"
			"\"watching\":%u,\"history\":%zu}",
			collection->live, collection->lists, collection->watches, collection->gets,
			collection->watching, collection->end - collection->begin);
	}
	buf_str(call->out, "}}\n");
}

/* ---- the calls ---------------------------------------------------------- */

enum { NEEDS_RESOURCE = 1u << 0, UNLOCKED = 1u << 1 };

static const struct control_row {
	const char *method, *path;
	void (*handle)(struct control_call *call);
	unsigned flags;
} rows[] = {
	{"GET", "/objects", control_objects_get, NEEDS_RESOURCE},
	{"PUT", "/objects", control_objects_put, NEEDS_RESOURCE},
	{"PATCH", "/objects", control_objects_patch, NEEDS_RESOURCE},
	{"DELETE", "/objects", control_objects_delete, NEEDS_RESOURCE},
	{"POST", "/create", control_create_post, NEEDS_RESOURCE},
	{"POST", "/touch", control_touch_post, NEEDS_RESOURCE},
	{"POST", "/churn", control_churn_post, NEEDS_RESOURCE | UNLOCKED},
	{"POST", "/compact", control_compact_post},
	{"POST", "/save", control_save_post},
	{"POST", "/restore", control_restore_post},
	{"POST", "/identity", control_identity_post},
	{"POST", "/kinds", control_kinds_post},
	{"DELETE", "/kinds", control_kinds_delete, NEEDS_RESOURCE},
	{"POST", "/bookmark", control_bookmark_post},
	{"POST", "/settings", control_settings_post},
	{"POST", "/swallow", control_swallow_post, NEEDS_RESOURCE},
	{"POST", "/drop", control_drop_post, UNLOCKED},
	{"POST", "/down", control_down_post, UNLOCKED},
	{"POST", "/up", control_up_post, UNLOCKED},
	{"POST", "/faults", control_faults_post},
	{"GET", "/faults", control_faults_get},
	{"DELETE", "/faults", control_faults_delete},
	{"GET", "/log", control_log_get},
	{"DELETE", "/log", control_log_delete},
	{"GET", "/status", control_status_get},
};

static const struct control_row *control_find_row(
	const struct http_request *request, const char **ret_rest)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t length = strlen(rows[i].path);
		const char *rest = request->path + length;

		if (strcmp(request->method, rows[i].method) ||
			strncmp(request->path, rows[i].path, length) || (*rest && *rest != '/'))
			continue;
		*ret_rest = rest + (*rest == '/');
		return &rows[i];
	}
	return NULL;
}

static void control_run_locked(struct control_call *call, const struct control_row *row)
{
	const char *resource = control_query(call, "resource", "");

	call->collection = world_named(call->world, resource);
	if ((row->flags & NEEDS_RESOURCE) && !call->collection)
		control_refuse(call, 404, "no such resource");
	else if (!(row->flags & UNLOCKED))
		row->handle(call);
}

void control_handle(void *arg, const struct http_request *request, struct http_answer *answer)
{
	struct control *control = arg;
	struct control_call call = {.control = control,
		.world = control->api->world,
		.request = request,
		.answer = answer,
		.out = &answer->body,
		.rest = ""};
	const struct control_row *row = control_find_row(request, &call.rest);

	http_answer_header(answer, "Content-Type", "application/json");
	if (!row) {
		control_refuse(&call, 404, "no such call");
		return;
	}
	pthread_mutex_lock(&call.world->lock);
	control_run_locked(&call, row);
	pthread_mutex_unlock(&call.world->lock);
	if ((row->flags & UNLOCKED) && answer->status == 200) {
		pthread_mutex_lock(&control->serial);
		row->handle(&call);
		pthread_mutex_unlock(&control->serial);
	}
}
