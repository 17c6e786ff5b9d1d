/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/api.h"

#include <stdio.h>
#include <strings.h>

#include "common/cleanup.h"
#include "common/text/decimal.h"
#include "tests/simulator/discovery.h"
#include "tests/simulator/jsontext.h"
#include "tests/simulator/list.h"
#include "tests/simulator/memory.h"
#include "tests/simulator/status.h"
#include "tests/simulator/watch.h"

#define SEGMENTS_MAX 10

/* A parsed path. */
struct api_target {
	char *path; /* owns the segments' text */
	const char *segments[SEGMENTS_MAX];
	size_t n;
	const char *group, *version;
	const char *resource, *namespace, *name; /* NULL: none */
	bool served;                             /* group and version are */
	struct collection *collection;           /* NULL: no such resource in this scope */
	char qualified[128];                     /* "deployments.apps", "" */
	const char *verb;
};

static void api_split_path(struct api_target *target, const char *path)
{
	char *save = NULL;

	target->path = memory_text(bytes_str(path));
	for (char *p = strtok_r(target->path, "/", &save); p; p = strtok_r(NULL, "/", &save))
		if (target->n < SEGMENTS_MAX)
			target->segments[target->n++] = p;
}

/* Segments after the group version: RESOURCE [NAME] or namespaces NS RESOURCE [NAME]. */
static void api_read_scope(struct api_target *target, const char *const *rest, size_t n)
{
	if (n >= 3 && !strcmp(rest[0], "namespaces")) {
		target->namespace = rest[1];
		rest += 2;
		n -= 2;
	}
	if (n >= 1 && n <= 2)
		target->resource = rest[0];
	if (n == 2)
		target->name = rest[1];
}

static void api_find_collection(struct api_target *target, struct world *world)
{
	struct collection *collection =
		world_find(world, target->group, target->version, target->resource);

	if (!collection)
		return;

	bool namespaced = collection->kind->namespaced;

	if ((target->namespace && !namespaced) ||
		(target->name && namespaced && !target->namespace))
		return;
	target->collection = collection;
	(void)snprintf(target->qualified, sizeof(target->qualified), "%s%s%s", target->resource,
		*target->group ? "." : "", target->group); /* cut names match nothing */
}

static void api_read_target(
	struct api_target *target, struct world *world, const struct http_request *request)
{
	size_t skip = 0;

	*target = (struct api_target){.group = "", .version = "", .verb = "discovery"};
	api_split_path(target, request->path);
	if (target->n >= 2 && !strcmp(target->segments[0], "api")) {
		target->version = target->segments[1];
		skip = 2;
	} else if (target->n >= 3 && !strcmp(target->segments[0], "apis")) {
		target->group = target->segments[1];
		target->version = target->segments[2];
		skip = 3;
	}
	target->served = skip && discovery_serves(world, target->group, target->version);
	if (!skip || target->n == skip)
		return;
	api_read_scope(target, target->segments + skip, target->n - skip);
	if (target->resource)
		api_find_collection(target, world);
	target->verb = target->name ? "get" : list_options_watch(request) ? "watch" : "list";
}

/* ---- content negotiation ------------------------------------------------ */

/* Returns true if a clause of Accept allows JSON; RET_FORM is the form it asks for. */
static bool api_clause_fits(struct bytes clause, bool is_list, enum object_form *ret_form)
{
	static const char *const types[] = {"application/json", "application/*", "*/*"};
	AUTO_FREE char *text = memory_text(clause);
	const char *as = strstr(text, "as=");
	bool fits = false;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		fits = fits || !strncmp(text + strspn(text, " "), types[i], strlen(types[i]));
	*ret_form = as ? OBJECT_METADATA : is_list ? OBJECT_ITEM : OBJECT_FULL;
	if (!fits || !as)
		return fits;
	as += strlen("as=");
	return !strncmp(as, "PartialObjectMetadata", strlen("PartialObjectMetadata")) &&
	       !strncmp(as + strlen("PartialObjectMetadata"), "List", 4) == is_list;
}

static bool api_negotiate(const char *accept, const char *verb, enum object_form *ret_form)
{
	bool is_list = !strcmp(verb, "list");

	if (!accept || !*accept)
		accept = "*/*";
	while (*accept) {
		size_t length = strcspn(accept, ",");

		if (api_clause_fits(BYTES(accept, length), is_list, ret_form))
			return true;
		accept += length + (accept[length] == ',');
	}
	return false;
}

static void api_refuse_accept(struct http_answer *answer)
{
	static const struct status status = {
		.code = 406, .reason = "NotAcceptable", .details = "{}"};

	status_answer(answer, &status,
		"406: Not Acceptable\n\nAvailable representations: application/json, "
		"application/json;stream=watch");
}

/* ---- verbs -------------------------------------------------------------- */

static void api_answer_missing(const struct api_target *target, struct http_answer *answer)
{
	const struct kind *kind = target->collection->kind;
	CLEANUP(buf_release) struct buf details = BUF_INIT;

	buf_str(&details, "{\"name\":");
	jsontext_put_string(&details, bytes_str(target->name));
	buf_byte(&details, ',');
	if (kind->group[0])
		buf_printf(&details, "\"group\":\"%s\",", kind->group);
	buf_printf(&details, "\"kind\":\"%s\"}", kind->resource);

	struct status status = {.code = 404, .reason = "NotFound", .details = buf_cstr(&details)};

	status_answer(answer, &status, "%s \"%s\" not found", target->qualified, target->name);
}

/* Returns a get's lowest accepted resourceVersion; 0: any. */
static uint64_t api_wanted_rv(const struct http_request *request)
{
	const char *text = http_query(request, "resourceVersion");
	uint64_t rv;

	return text && decimal_parse(bytes_str(text), UINT64_MAX, &rv) == 0 ? rv : 0;
}

static void api_answer_get(struct world *world, const struct api_target *target,
	enum object_form form, const struct http_request *request, struct http_answer *answer)
{
	CLEANUP(buf_release) struct buf key = BUF_INIT;
	const struct entry *entry;
	const struct version *version = NULL;

	if (target->namespace)
		buf_printf(&key, "%s/", target->namespace);
	buf_str(&key, target->name);
	pthread_mutex_lock(&world->lock);
	bool reached = list_await_rv(world, target->collection, api_wanted_rv(request), answer);
	entry = keylist_find(&target->collection->keys, buf_cstr(&key));
	if (reached && entry)
		version = version_at(entry, world->rv);
	if (version) {
		object_show(target->collection->kind, form, version_text(version), &answer->body);
		buf_byte(&answer->body, '\n');
		http_answer_header(answer, "Content-Type", "application/json");
	}
	pthread_mutex_unlock(&world->lock);
	if (reached && !version)
		api_answer_missing(target, answer);
}

static void api_answer_objects(struct world *world, const struct api_target *target,
	enum object_form form, const struct http_request *request, struct http_answer *answer)
{
	struct view view = {.world = world, .collection = target->collection, .form = form};
	struct list_options options;
	bool watch_list;

	pthread_mutex_lock(&world->lock);
	watch_list = world->settings.watch_list;
	pthread_mutex_unlock(&world->lock);
	if (!list_options_read(request, watch_list, &options, answer))
		return;
	if (!view_init(&view, target->namespace, options.labels, options.fields, answer))
		view_release(&view);
	else if (options.watch)
		watch_answer(&view, &options, request->fd, answer);
	else
		list_answer(&view, &options, answer);
}

static void api_answer_resource(struct world *world, const struct api_target *target,
	const struct http_request *request, struct http_answer *answer)
{
	static const struct status not_allowed = {
		.code = 405, .reason = "MethodNotAllowed", .details = "{}"};
	enum object_form form;

	if (!target->collection)
		status_no_resource(answer);
	else if (strcmp(request->method, "GET"))
		status_answer(answer, &not_allowed,
			"the server does not allow this method on the requested resource");
	else if (!api_negotiate(http_header(request, "Accept"), target->verb, &form))
		api_refuse_accept(answer);
	else if (target->name)
		api_answer_get(world, target, form, request, answer);
	else
		api_answer_objects(world, target, form, request, answer);
}

static bool api_is_authorized(const struct api *api, const struct http_request *request)
{
	const char *given = http_header(request, "Authorization");

	return !api->token || (given && !strncasecmp(given, "Bearer ", strlen("Bearer ")) &&
				      !strcmp(given + strlen("Bearer "), api->token));
}

static void api_answer_true(struct api *api, const struct api_target *target,
	const struct http_request *request, struct http_answer *answer)
{
	static const struct status unauthorized = {.code = 401, .reason = "Unauthorized"};
	bool found;

	if (!api_is_authorized(api, request)) {
		status_answer(answer, &unauthorized, "Unauthorized");
		return;
	}
	pthread_mutex_lock(&api->world->lock);
	found = discovery_answer(api->world, request, answer);
	pthread_mutex_unlock(&api->world->lock);
	if (found)
		return;
	if (target->served) {
		api_answer_resource(api->world, target, request, answer);
		return;
	}
	answer->status = 404;
	buf_str(&answer->body, "404 page not found\n");
	http_answer_header(answer, "Content-Type", "text/plain; charset=utf-8");
	http_answer_header(answer, "X-Content-Type-Options", "nosniff");
}

/* Counts a request, even if a fault answers it. */
static void api_count_request(const struct api_target *target)
{
	struct collection *collection = target->collection;

	if (!collection)
		return;
	if (!strcmp(target->verb, "watch"))
		collection->watches++;
	else if (!strcmp(target->verb, "list"))
		collection->lists++;
	else
		collection->gets++;
}

void api_handle(void *arg, const struct http_request *request, struct http_answer *answer)
{
	struct api *api = arg;
	struct api_target target;
	struct fault fault;
	char audit_id[OBJECT_UID_SIZE];

	object_new_uid(audit_id);
	http_answer_header(answer, "Audit-Id", audit_id);
	http_answer_header(answer, "Cache-Control", "no-cache, private");
	pthread_mutex_lock(&api->world->lock);
	api_read_target(&target, api->world, request);
	api_count_request(&target);
	pthread_mutex_unlock(&api->world->lock);
	if (faults_match(api->faults, request->target, target.qualified, target.verb, &fault)) {
		if (!fault_replaces(api->faults, &fault, request->fd, answer))
			api_answer_true(api, &target, request, answer);
		fault_wrap(api->faults, &fault, request->fd, answer);
		fault_release(&fault);
	} else {
		api_answer_true(api, &target, request, answer);
	}
	requestlog_add(api->log, request, target.verb, target.qualified,
		answer->hang_up ? 0 : answer->status);
	free(target.path);
}
