/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/control.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "tests/simulator/jsontext.h"

/* One call: what its handler works with. Handlers hold world->lock unless their row says not. */
struct call {
	struct control *control;
	struct world *world;
	const struct http_request *request;
	struct http_answer *answer;
	struct buf *out;               /* the answer's body */
	const char *rest;              /* of the path, behind the row's */
	struct collection *collection; /* of ?resource= */
};

static void refuse(struct call *call, unsigned status, const char *text)
{
	call->answer->status = status;
	buf_reset(call->out);
	buf_str(call->out, "{\"error\":");
	jsontext_put_string(call->out, bytes_str(text));
	buf_str(call->out, "}\n");
}

static const char *query(const struct call *call, const char *name, const char *missing)
{
	const char *value = http_query(call->request, name);

	return value && *value ? value : missing;
}

static uint64_t number(const struct call *call, const char *name, uint64_t missing)
{
	const char *text = query(call, name, NULL);
	uint64_t n;

	return text && sscanf(text, "%" SCNu64, &n) == 1 ? n : missing;
}

static double real(const struct call *call, const char *name, double missing)
{
	const char *text = query(call, name, NULL);
	double n;

	return text && sscanf(text, "%lf", &n) == 1 ? n : missing;
}

static void put_rv(struct call *call)
{
	buf_printf(call->out, "{\"resourceVersion\":\"%" PRIu64 "\"}\n", call->world->rv);
}

/* ---- objects --------------------------------------------------------------------------------- */

static void objects_get(struct call *call)
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

/* The body: one object or an array of them. */
static void objects_put(struct call *call)
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
		put_rv(call);
	else
		refuse(call, 400, "no JSON, or an object without name or namespace");
}

static void objects_patch(struct call *call)
{
	struct bytes patch;

	if (!jsontext_single(call->request->body, &patch))
		refuse(call, 400, "no JSON");
	else if (churn_patch(call->world, call->collection, call->rest, patch))
		put_rv(call);
	else
		refuse(call, 404, "no such object");
}

static void objects_delete(struct call *call)
{
	if (!*call->rest)
		churn_delete(call->world, call->collection, number(call, "count", 0));
	else if (!world_delete(call->world, call->collection, call->rest)) {
		refuse(call, 404, "no such object");
		return;
	}
	put_rv(call);
}

static void create_post(struct call *call)
{
	struct generate_options options = {
		.namespaces = (unsigned)number(call, "namespaces", 10),
		.prefix = query(call, "prefix", call->collection->kind->singular),
		.size = (size_t)number(call, "size", 0),
	};
	CLEANUP(buf_release) struct buf prefix = BUF_INIT;

	if (!options.namespaces)
		options.namespaces = 1;
	buf_printf(&prefix, "%s-", options.prefix);
	options.prefix = buf_cstr(&prefix);
	churn_create(call->world, call->collection, number(call, "from", 0),
		number(call, "count", 1), &options);
	put_rv(call);
}

static void touch_post(struct call *call)
{
	churn_touch(call->world, call->collection, number(call, "count", 0));
	put_rv(call);
}

static void churn_post(struct call *call)
{
	churn_set(call->control->churn, call->collection, real(call, "rate", 0),
		(unsigned)number(call, "createDelete", 20));
	buf_str(call->out, "{}\n");
}

/* ---- history --------------------------------------------------------------------------------- */

static void compact_post(struct call *call)
{
	world_compact(call->world, number(call, "rv", 0));
	put_rv(call);
}

static void save_post(struct call *call)
{
	world_save(call->world);
	put_rv(call);
}

static void restore_post(struct call *call)
{
	if (!world_restore(call->world))
		refuse(call, 409, "nothing was saved");
	else
		put_rv(call);
}

/* kube-system is deleted and made anew: its uid is what tells clusters apart. */
static void identity_post(struct call *call)
{
	static const char text[] =
		"{\"metadata\":{\"name\":\"kube-system\",\"labels\":{"
		"\"kubernetes.io/metadata.name\":\"kube-system\"}},"
		"\"spec\":{\"finalizers\":[\"kubernetes\"]},\"status\":{\"phase\":\"Active\"}}";
	struct collection *namespaces = world_find(call->world, "", "v1", "namespaces");

	world_delete(call->world, namespaces, "kube-system");
	world_put(call->world, namespaces, bytes_str(text));
	put_rv(call);
}

static void kinds_post(struct call *call)
{
	const struct kind *kind = kind_describe(call->request->body);

	if (kind && world_add(call->world, kind)) {
		buf_str(call->out, "{}\n");
		return;
	}
	kind_free(&kind);
	refuse(call, 400, "group, version, resource, kind are needed, and a new resource");
}

static void kinds_delete(struct call *call)
{
	world_remove(call->world, call->collection);
	put_rv(call);
}

/* ---- watches and connections ------------------------------------------------------------------
 */

static void bookmark_post(struct call *call)
{
	call->world->bookmark_round++;
	world_wake(call->world);
	put_rv(call);
}

/* The next COUNT changes of a resource that a watch would tell are not told. */
static void swallow_post(struct call *call)
{
	call->collection->swallow = (unsigned)number(call, "count", 1);
	put_rv(call);
}

static void drop_post(struct call *call)
{
	http_server_drop(call->control->server);
	buf_str(call->out, "{}\n");
}

static void down_post(struct call *call)
{
	http_server_pause(call->control->server);
	buf_str(call->out, "{}\n");
}

static void *end_outage(void *arg)
{
	struct control *control = arg;
	struct world *world = control->api->world;
	bool closing;

	pthread_mutex_lock(&world->lock);
	while (!control->closing && world_now_ms() < control->outage_until_ms)
		world_wait(world, control->outage_until_ms);
	closing = control->closing;
	pthread_mutex_unlock(&world->lock);
	if (!closing)
		REQUIRE(http_server_resume(control->server) == 0);
	return NULL;
}

static void join_outage(struct control *control)
{
	if (control->outage_begun)
		REQUIRE(pthread_join(control->outage, NULL) == 0);
	control->outage_begun = false;
}

/* One outage after the other: a second call waits for the end of the first. */
static void refuse_post(struct call *call)
{
	struct control *control = call->control;
	uint64_t ms = (uint64_t)(real(call, "seconds", 1) * 1000);

	join_outage(control);
	http_server_pause(control->server);
	control->outage_until_ms = world_now_ms() + ms;
	REQUIRE(pthread_create(&control->outage, NULL, end_outage, control) == 0);
	control->outage_begun = true;
	buf_str(call->out, "{}\n");
}

void control_release(struct control *control)
{
	struct world *world = control->api->world;

	pthread_mutex_lock(&world->lock);
	control->closing = true;
	world_wake(world);
	pthread_mutex_unlock(&world->lock);
	join_outage(control);
	pthread_mutex_destroy(&control->serial);
}

void control_init(struct control *control, struct api *api, struct churn *churn)
{
	*control = (struct control){.api = api, .churn = churn};
	REQUIRE(pthread_mutex_init(&control->serial, NULL) == 0);
}

static void up_post(struct call *call)
{
	int r = http_server_resume(call->control->server);

	if (r < 0)
		refuse(call, 500, err_text(r));
	else
		buf_str(call->out, "{}\n");
}

static void set_number(const struct call *call, const char *name, uint64_t *setting)
{
	*setting = number(call, name, *setting);
}

static void set_flag(const struct call *call, const char *name, bool *setting)
{
	*setting = number(call, name, *setting) != 0;
}

static void settings_post(struct call *call)
{
	struct settings *settings = &call->world->settings;

	set_number(call, "bookmarkMs", &settings->bookmark_ms);
	set_number(call, "futureWaitMs", &settings->future_wait_ms);
	set_number(call, "history", &settings->history);
	set_flag(call, "watchList", &settings->watch_list);
	set_flag(call, "aggregated", &settings->aggregated);
	world_wake(call->world);
	buf_printf(call->out,
		"{\"bookmarkMs\":%" PRIu64 ",\"futureWaitMs\":%" PRIu64 ",\"history\":%" PRIu64
		",\"watchList\":%d,\"aggregated\":%d}\n",
		settings->bookmark_ms, settings->future_wait_ms, settings->history,
		settings->watch_list, settings->aggregated);
}

/* ---- faults and what was asked ----------------------------------------------------------------
 */

static void faults_post(struct call *call)
{
	struct bytes rule;
	unsigned id = 0;

	if (jsontext_single(call->request->body, &rule))
		id = faults_add(call->control->api->faults, rule);
	if (id)
		buf_printf(call->out, "{\"id\":%u}\n", id);
	else
		refuse(call, 400, "no JSON, or a bad regular expression");
}

static void faults_get(struct call *call)
{
	faults_list(call->control->api->faults, call->out);
}

static void faults_delete(struct call *call)
{
	unsigned id = 0;

	(void)sscanf(call->rest, "%u", &id); /* none: all */
	faults_remove(call->control->api->faults, id);
	buf_str(call->out, "{}\n");
}

static void log_get(struct call *call)
{
	buf_init(call->out, SIZE_MAX / 2);
	requestlog_copy(call->control->api->log, call->out);
}

static void log_delete(struct call *call)
{
	requestlog_clear(call->control->api->log);
	for (size_t i = 0; i < call->world->n_collections; i++) {
		struct collection *collection = &call->world->collections[i];

		collection->lists = collection->watches = collection->gets = 0;
	}
	buf_str(call->out, "{}\n");
}

static void status_get(struct call *call)
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

/* ---- the calls ------------------------------------------------------------------------------- */

enum { NEEDS_RESOURCE = 1u << 0, UNLOCKED = 1u << 1 };

static const struct row {
	const char *method, *path;
	void (*handle)(struct call *call);
	unsigned flags;
} rows[] = {
	{"GET", "/objects", objects_get, NEEDS_RESOURCE},
	{"PUT", "/objects", objects_put, NEEDS_RESOURCE},
	{"PATCH", "/objects", objects_patch, NEEDS_RESOURCE},
	{"DELETE", "/objects", objects_delete, NEEDS_RESOURCE},
	{"POST", "/create", create_post, NEEDS_RESOURCE},
	{"POST", "/touch", touch_post, NEEDS_RESOURCE},
	{"POST", "/churn", churn_post, NEEDS_RESOURCE | UNLOCKED},
	{"POST", "/compact", compact_post},
	{"POST", "/save", save_post},
	{"POST", "/restore", restore_post},
	{"POST", "/identity", identity_post},
	{"POST", "/kinds", kinds_post},
	{"DELETE", "/kinds", kinds_delete, NEEDS_RESOURCE},
	{"POST", "/bookmark", bookmark_post},
	{"POST", "/settings", settings_post},
	{"POST", "/swallow", swallow_post, NEEDS_RESOURCE},
	{"POST", "/drop", drop_post, UNLOCKED},
	{"POST", "/down", down_post, UNLOCKED},
	{"POST", "/up", up_post, UNLOCKED},
	{"POST", "/refuse", refuse_post, UNLOCKED},
	{"POST", "/faults", faults_post},
	{"GET", "/faults", faults_get},
	{"DELETE", "/faults", faults_delete},
	{"GET", "/log", log_get},
	{"DELETE", "/log", log_delete},
	{"GET", "/status", status_get},
};

static const struct row *find_row(const struct http_request *request, const char **ret_rest)
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

static void run(struct call *call, const struct row *row)
{
	const char *resource = query(call, "resource", "");

	call->collection = world_named(call->world, resource);
	if ((row->flags & NEEDS_RESOURCE) && !call->collection)
		refuse(call, 404, "no such resource");
	else if (!(row->flags & UNLOCKED))
		row->handle(call);
}

void control_handle(void *arg, const struct http_request *request, struct http_answer *answer)
{
	struct control *control = arg;
	struct call call = {.control = control,
		.world = control->api->world,
		.request = request,
		.answer = answer,
		.out = &answer->body,
		.rest = ""};
	const struct row *row = find_row(request, &call.rest);

	http_answer_header(answer, "Content-Type", "application/json");
	if (!row) {
		refuse(&call, 404, "no such call");
		return;
	}
	pthread_mutex_lock(&call.world->lock);
	run(&call, row);
	pthread_mutex_unlock(&call.world->lock);
	if ((row->flags & UNLOCKED) && answer->status == 200) {
		pthread_mutex_lock(&control->serial);
		row->handle(&call);
		pthread_mutex_unlock(&control->serial);
	}
}
